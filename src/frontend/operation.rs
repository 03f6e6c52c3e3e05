//! One operation of a lane: a request is placed, gets other tokens, or is taken back.

use crate::algorithm::lifetime::retired::Retire;
use crate::algorithm::lifetime::{LaneUse, PermitCount};
use crate::algorithm::place::{Choice, Refusal};
use crate::algorithm::word::Amount;
use crate::error::Cap;
use crate::error::RouteError;
use crate::frontend::choose::Chooser;
use crate::frontend::lanes::LaneGuard;
use crate::frontend::membership::Membership;
use crate::frontend::policy::Policy;
use crate::frontend::request::Request;
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

    /// Chooses an engine by the counts alone, which is nearly always right, and counts a request of so many
    /// tokens on it. `None`, and nothing counted, if there is more to consider.
    #[inline]
    pub(crate) fn place_by_count(&self, tokens: u32) -> Option<Placed> {
        // Two copies of the same code, of which the first knows that there are no tokens.
        match tokens {
            0 => self.place_tokens_by_count(0),
            tokens => self.place_tokens_by_count(tokens),
        }
    }

    #[inline(always)]
    fn place_tokens_by_count(&self, tokens: u32) -> Option<Placed> {
        let table = self.membership.table();
        let rows = table.mapping().rows();
        rows.counter.prepare(self.lane.id(), None);
        let mut tied = false;
        let engine = rows
            .place(
                self.lane.id(),
                Amount::request(tokens),
                #[inline(always)]
                || {
                    if table.mapping().latch().is_under_pressure() {
                        return Err(());
                    }
                    let last_chosen = self.lane.tie_break().numbers();
                    let choice = rows.choose_by_count(last_chosen, tokens);
                    let (choice, is_tied) = choice.ok_or(())?;
                    tied = is_tied;
                    Ok::<_, ()>(choice)
                },
            )
            .ok()?;
        Some(self.placed(engine, tied))
    }

    /// Chooses an engine by all that counts, and counts a request on it.
    pub(crate) fn place(
        &self,
        policy: &Policy,
        request: &Request<'_>,
    ) -> Result<Placed, RouteError> {
        let table = self.membership.table();
        let chooser = Chooser::new(table, policy, request, self.lane.tie_break());
        let placed =
            table
                .mapping()
                .rows()
                .place(self.lane.id(), Amount::request(request.tokens), || {
                    chooser.choose()
                });
        match placed {
            Ok(engine) => Ok(self.placed(engine, chooser.was_tied())),
            Err(Refusal::AtTheTotal(full)) => Err(chooser.saturated(Cap::of_table(full), 1)),
            Err(Refusal::Unchosen(no_choice)) => Err(chooser.explain(no_choice, 1)),
        }
    }

    /// Counts a request on an engine that was chosen before the lane was entered, if its word still stands.
    pub(crate) fn place_chosen(
        &self,
        chooser: &Chooser<'_>,
        choice: Choice,
    ) -> Result<Option<Placed>, RouteError> {
        let rows = self.membership.table().mapping().rows();
        let change = Amount::request(chooser.tokens());
        match rows.place_chosen(self.lane.id(), change, choice) {
            Ok(engine) => Ok(Some(self.placed(engine, false))),
            Err(Refusal::AtTheTotal(full)) => Err(chooser.saturated(Cap::of_table(full), 1)),
            // Asked again: the word has changed.
            Err(Refusal::Unchosen(())) => Ok(None),
        }
    }

    #[inline]
    fn placed(&self, engine: usize, tied: bool) -> Placed {
        if tied {
            self.lane.tie_break().choose(engine);
        }
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

    /// Takes a request off its engine.
    #[inline]
    pub(crate) fn finish(&self, engine: usize, tokens: u32) {
        let table = self.membership.table();
        let counter = table.mapping().counter();
        counter.prepare(self.lane.id(), Some(engine));
        // Two copies of the same code, of which the first knows that there are no tokens.
        match tokens {
            0 => counter.add(self.lane.id(), engine, Amount::request(0).negated()),
            tokens => counter.add(self.lane.id(), engine, Amount::request(tokens).negated()),
        }
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
