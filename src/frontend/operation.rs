//! One operation of a lane: a request is placed, gets other tokens, or is taken back.

use crate::algorithm::counter::Counter;
use crate::algorithm::lifetime::retired::Retire;
use crate::algorithm::lifetime::{LaneUse, PermitCount};
use crate::algorithm::place::{Choice, Refusal};
use crate::algorithm::queue::Bound;
use crate::algorithm::word::{Amount, LaneId};
use crate::error::Cap;
use crate::error::RouteError;
use crate::frontend::choose::load::{Loads, PolicyKey};
use crate::frontend::choose::{Chooser, LaneMemory};
use crate::frontend::lanes::LaneGuard;
use crate::frontend::membership::Membership;
use crate::frontend::request::Request;
use crate::table::Table;
use std::ptr::NonNull;

/// One operation of a frontend, and the lane that it runs in.
#[derive(Debug)]
pub(crate) struct Operation<'a> {
    membership: &'a Membership,
    lane: LaneGuard<'a>,
}

/// A request that was counted.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) engine: usize,
    pub(crate) count: PermitCount,
}

impl<'a> Operation<'a> {
    /// Begins an operation. `None` in a forked child.
    #[inline]
    pub(crate) fn begin(membership: &'a Membership) -> Option<Self> {
        let lane = membership.enter()?;
        Some(Self { membership, lane })
    }

    /// Chooses an engine by a policy that has terms, and counts a request of so many tokens on it that may go anywhere.
    /// `None`, and nothing counted, if there is none.
    #[inline(always)] // a caller that knows the tokens makes half of it go away
    pub(crate) fn place_anywhere(&mut self, policy: &PolicyKey, tokens: u32) -> Option<Placed> {
        if self.membership.awaited().is_so() {
            return None;
        }
        let loads = Loads::new(self.membership.table(), policy);
        let id = self.lane.id();
        let counter = &loads.rows().counter;
        let lane = counter.prepare(id, None);
        let engine = self.lane.with_memory(
            #[inline(always)]
            |memory| {
                // One attempt without a loop, which nearly always succeeds.
                if tokens == 0
                    && let Some(choice) = memory.choose_shortly(&loads)
                    && counter.attempt_in(lane, choice.engine(), choice.seen, Amount::request(0))
                {
                    if choice.is_tied() {
                        memory.tie_break.choose(choice.engine());
                    }
                    return Some(choice.engine());
                }
                place_anywhere(self.membership, id, memory, &loads, tokens)
            },
        )?;
        Some(self.placed(engine))
    }

    /// Chooses an engine by all that counts, and counts a request on it.
    pub(crate) fn place(
        &mut self,
        chooser: &Chooser<'_>,
        request: &Request<'_>,
    ) -> Result<Placed, RouteError> {
        let table = self.membership.table();
        let (id, rows) = (self.lane.id(), table.mapping().rows());
        let placed = self.lane.with_memory(|memory| {
            let placed = rows.place(id, Amount::request(request.tokens), || {
                chooser.choose(memory)
            });
            placed.inspect(|choice| {
                if choice.is_tied() {
                    memory.tie_break.choose(choice.engine());
                }
            })
        });
        match placed {
            Ok(choice) => Ok(self.placed(choice.engine())),
            Err(Refusal::AtTheTotal(full)) => Err(chooser.saturated(Cap::of_table(full), 1)),
            Err(Refusal::Unchosen(no_choice)) => Err(chooser.explain(no_choice, 1)),
        }
    }

    /// A number for an engine, smaller the longer ago this lane chose it among equals.
    pub(crate) fn last_chosen(&mut self, engine: usize) -> i32 {
        (self.lane).with_memory(|memory| memory.tie_break.last_chosen(engine))
    }

    /// Counts a request on an engine that was chosen before the lane was entered, if its word still stands.
    pub(crate) fn place_chosen(
        &mut self,
        chooser: &Chooser<'_>,
        choice: Choice,
    ) -> Result<Option<Placed>, RouteError> {
        let rows = self.membership.table().mapping().rows();
        let change = Amount::request(chooser.tokens());
        match rows.place_chosen(self.lane.id(), change, choice) {
            Ok(choice) => {
                if choice.is_tied() {
                    (self.lane).with_memory(|memory| memory.tie_break.choose(choice.engine()));
                }
                Ok(Some(self.placed(choice.engine())))
            }
            Err(Refusal::AtTheTotal(full)) => Err(chooser.saturated(Cap::of_table(full), 1)),
            // Asked again: the word has changed.
            Err(Refusal::Unchosen(())) => Ok(None),
        }
    }

    #[inline]
    fn placed(&self, engine: usize) -> Placed {
        let count = self.lane.add_permit();
        Placed { engine, count }
    }

    /// Changes the tokens of a request on `engine` from `before` to `after`.
    pub(crate) fn change_tokens(
        &self,
        engine: usize,
        before: u32,
        after: u32,
    ) -> Result<(), RouteError> {
        let rows = self.membership.table().mapping().rows();
        rows.counter.prepare(self.lane.id(), Some(engine));
        rows.change_tokens(self.lane.id(), engine, before, after)
            .map_err(|refusal| {
                // A cap that the request would exceed alone is named before the one that was in the way.
                let table = rows.total_caps().tokens;
                let too_small = if after > rows.max_tokens(engine) {
                    Some(Cap::EngineTokens)
                } else {
                    table.filter(|most| after > *most).map(|_| Cap::TableTokens)
                };
                let cap = match refusal {
                    Refusal::AtTheTotal(full) => Cap::of_table(full),
                    Refusal::Unchosen(()) => Cap::EngineTokens,
                };
                RouteError::Saturated {
                    cap: too_small.unwrap_or(cap),
                    passes: too_small.is_none(),
                }
            })
    }

    /// Counts a request of a class that is going to wait.
    pub(crate) fn enter_queue(&self, class: usize) -> Result<(), Bound> {
        let queue = self.membership.table().queue();
        queue.enter(self.lane.id(), class)
    }

    /// Takes a request of a class off that waits no more.
    pub(crate) fn leave_queue(&self, class: usize) {
        let queue = self.membership.table().queue();
        queue.leave(self.lane.id(), class);
    }

    /// Takes a request off its engine.
    #[inline]
    pub(crate) fn finish(&self, engine: usize, tokens: u32) {
        let (counter, id) = (self.membership.table().mapping().counter(), self.lane.id());
        let lane = counter.prepare(id, Some(engine));
        let change = Amount::request(0).negated();
        // One attempt without a loop, which nearly always succeeds: with a loop around it a compiler keeps too much at
        // hand.
        if tokens > 0 || !counter.attempt_in(lane, engine, counter.load(engine), change) {
            finish_after_all(counter, id, engine, tokens);
        }
    }

    /// Whether a request waits, which may want the place that this operation has just freed.
    #[inline]
    pub(crate) fn is_awaited(&self) -> bool {
        self.membership.awaited().is_so_after_a_swap()
    }

    #[inline]
    pub(crate) fn table(&self) -> &'a Table {
        self.membership.table()
    }

    /// Takes back the count of the permit whose request was finished. See [`LaneGuard::end_permit`].
    #[inline]
    pub(crate) fn end_permit(self) -> (NonNull<LaneUse>, bool) {
        self.lane.end_permit(self.membership.handles())
    }

    /// Counts a call that was refused, for people.
    pub(crate) fn count_refusal(&self, reason: usize) {
        let counter = self.membership.table().mapping().counter();
        counter.count_refusal(self.lane.id(), reason);
    }
}

/// Takes a request of so many tokens off its engine, as the lane `id`.
#[inline(never)]
fn finish_after_all(counter: &Counter<'_>, id: LaneId, engine: usize, tokens: u32) {
    counter.add(id, engine, Amount::request(tokens).negated());
}

/// Counts a request that may go anywhere, as the lane `id`. Returns the engine.
#[inline(never)]
fn place_anywhere(
    membership: &Membership,
    id: LaneId,
    memory: &mut LaneMemory,
    loads: &Loads<'_>,
    tokens: u32,
) -> Option<usize> {
    // Two copies of the same code, of which the first knows that there are no tokens.
    let placed = match tokens {
        0 => place_tokens_anywhere(id, memory, loads, 0),
        tokens => place_tokens_anywhere(id, memory, loads, tokens),
    };
    membership.table().wake_after_placing();
    placed.map(|choice| {
        if choice.is_tied() {
            memory.tie_break.choose(choice.engine());
        }
        choice.engine()
    })
}

#[inline(always)]
fn place_tokens_anywhere(
    id: LaneId,
    memory: &mut LaneMemory,
    loads: &Loads<'_>,
    tokens: u32,
) -> Option<Choice> {
    let choose = || memory.choose_anywhere(loads, tokens).ok_or(());
    loads.rows().place(id, Amount::request(tokens), choose).ok()
}
