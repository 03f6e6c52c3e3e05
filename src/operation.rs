//! One operation of a lane: a request is placed, or taken back.

use crate::algorithm::hold::LaneHold;
use crate::algorithm::place::{Choice, Refusal};
use crate::algorithm::retired::Held;
use crate::algorithm::word::Amount;
use crate::cap::Cap;
use crate::choose::Chooser;
use crate::error::Result;
use crate::policy::Policy;
use crate::request::Request;
use crate::seat::{Lane, Seat};
use std::mem;
use std::ptr::NonNull;

/// A lane while one operation runs in it.
#[derive(Debug)]
pub(crate) struct Operation<'a> {
    seat: &'a Seat,
    lane: &'a Lane,
}

impl<'a> Operation<'a> {
    #[inline]
    pub(crate) fn new(seat: &'a Seat, lane: &'a Lane) -> Self {
        Self { seat, lane }
    }

    /// Chooses an engine by what is in flight and nothing else, as is nearly always right, and counts
    /// a request of so many tokens on it. `None`, and nothing counted, if there is more to consider.
    #[inline]
    pub(crate) fn place_by_count(&self, tokens: u32) -> Option<usize> {
        // Two copies of the same code, of which the first knows that there are no tokens.
        match tokens {
            0 => self.place_tokens_by_count(0),
            tokens => self.place_tokens_by_count(tokens),
        }
    }

    #[inline(always)]
    fn place_tokens_by_count(&self, tokens: u32) -> Option<usize> {
        let table = self.seat.table();
        let rows = table.mapping().rows();
        rows.counter.prepare(self.lane.id, None);
        let mut tied = false;
        let engine = rows
            .place(
                self.lane.id,
                Amount::request(tokens),
                #[inline(always)]
                || {
                    if table.mapping().latch().is_marked() {
                        return Err(());
                    }
                    let turns = self.lane.turns.numbers();
                    let choice = rows.choose_by_count(turns, tokens);
                    let (choice, is_tied) = choice.ok_or(())?;
                    tied = is_tied;
                    Ok::<_, ()>(choice)
                },
            )
            .ok()?;
        self.placed(engine, tied);
        Some(engine)
    }

    /// Chooses an engine by all that counts, and counts a request on it.
    pub(crate) fn place(&self, policy: &Policy, request: &Request<'_>) -> Result<usize> {
        let table = self.seat.table();
        let chooser = Chooser::new(table, policy, request, &self.lane.turns);
        let placed =
            table
                .mapping()
                .rows()
                .place(self.lane.id, Amount::request(request.tokens), || {
                    chooser.choose()
                });
        match placed {
            Ok(engine) => {
                self.placed(engine, chooser.was_tied());
                Ok(engine)
            }
            Err(Refusal::AtTheTotal(full)) => Err(chooser.saturated(Cap::of_table(full), 1)),
            Err(Refusal::Unchosen(no_choice)) => Err(chooser.explain(no_choice, 1)),
        }
    }

    /// Counts a request on an engine that was chosen before the lane was entered, if its word still stands.
    pub(crate) fn place_chosen(&self, chooser: &Chooser<'_>, choice: Choice) -> Result<bool> {
        let table = self.seat.table();
        let mut choice = Some(choice);
        let placed =
            table
                .mapping()
                .rows()
                .place(self.lane.id, Amount::request(chooser.tokens()), || {
                    choice.take().ok_or(())
                });
        match placed {
            Ok(_) => {
                self.lane.hold.add_permit();
                Ok(true)
            }
            Err(Refusal::AtTheTotal(full)) => Err(chooser.saturated(Cap::of_table(full), 1)),
            // Asked again: the word has changed.
            Err(Refusal::Unchosen(())) => Ok(false),
        }
    }

    #[inline]
    fn placed(&self, engine: usize, tied: bool) {
        if tied {
            self.lane.turns.choose(engine);
        }
        self.lane.hold.add_permit();
    }

    /// Takes a request off its engine.
    #[inline]
    pub(crate) fn finish(&self, engine: usize, tokens: u32) {
        let table = self.seat.table();
        let counter = table.mapping().counter();
        counter.prepare(self.lane.id, Some(engine));
        // Two copies of the same code, of which the first knows that there are no tokens.
        match tokens {
            0 => counter.add(self.lane.id, engine, Amount::request(0).negated()),
            tokens => counter.add(self.lane.id, engine, Amount::request(tokens).negated()),
        }
    }

    /// The permit of the request that was finished is gone. Returns what is left to do: to
    /// [leave](LaneHold::leave), and whether the last handle of the seat is gone as well.
    #[inline]
    pub(crate) fn end_permit(self) -> (NonNull<LaneHold>, bool) {
        let is_closed = self.lane.hold.end_permit(self.seat.handles());
        let hold = NonNull::from(&self.lane.hold);
        mem::forget(self);
        (hold, is_closed)
    }

    /// Counts a call that was refused, for people.
    pub(crate) fn count_refusal(&self, reason: usize) {
        let counter = self.seat.table().mapping().counter();
        counter.count_refusal(self.lane.id, reason);
    }
}

impl Drop for Operation<'_> {
    #[inline]
    fn drop(&mut self) {
        self.lane.hold.leave();
    }
}
