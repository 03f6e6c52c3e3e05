//! Placing a request, and taking it back: the counter's operations in the order that keeps caps.
//!
//! If the table as a whole has a cap, every request is counted on one more row, the table's own:
//! before its engine's row when it is placed, and after it when it finishes. So the table's count is
//! at no instant below the sum of the engines', and a cap that the one keeps the other keeps too.

use super::counter::Counter;
use super::word::{Amount, LaneId, Word};
use crossbeam_utils::Backoff;

/// An engine, and the word by which it was chosen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice {
    pub(crate) engine: usize,
    pub(crate) seen: Word,
}

/// The row of the table as a whole, and what it may count. What has no cap is not counted there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Total {
    pub(crate) row: usize,
    pub(crate) max_requests: Option<u32>,
    pub(crate) max_tokens: Option<u32>,
}

impl Total {
    /// What a request adds to this row.
    fn share(&self, change: Amount) -> Amount {
        Amount::new(
            self.max_requests.map_or(0, |_| change.requests()),
            self.max_tokens.map_or(0, |_| change.tokens()),
        )
    }
}

/// What there is no room for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Full {
    /// One more request.
    Requests,
    /// The tokens of a request that has a place.
    Tokens,
}

/// Why a request was not placed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal<E> {
    /// The table as a whole is at its cap.
    AtTheTotal(Full),
    /// No engine was chosen.
    Unchosen(E),
}

impl Counter<'_> {
    /// Counts a request on the engine that `choose` names, as lane `me`, and returns that engine.
    ///
    /// The choice is atomic: it counts only if the word that it was made by still stands; otherwise
    /// `choose` is asked again.
    #[inline(always)]
    pub(crate) fn place<E>(
        &self,
        me: LaneId,
        change: Amount,
        total: Option<&Total>,
        mut choose: impl FnMut() -> Result<Choice, E>,
    ) -> Result<usize, Refusal<E>> {
        let backoff = Backoff::new();
        loop {
            let choice = choose().map_err(Refusal::Unchosen)?;
            if let Some(total) = total {
                self.add_within(me, total, change)
                    .map_err(Refusal::AtTheTotal)?;
            }
            if self.attempt(me, choice.engine, choice.seen, change) {
                return Ok(choice.engine);
            }
            // Somebody else's request was counted there meanwhile.
            if let Some(total) = total {
                self.take_from(me, total, change);
            }
            backoff.spin();
        }
    }

    /// Takes a request off its engine, as lane `me`.
    #[inline(always)]
    pub(crate) fn finish(&self, me: LaneId, engine: usize, change: Amount, total: Option<&Total>) {
        self.add(me, engine, change.negated());
        if let Some(total) = total {
            self.take_from(me, total, change);
        }
    }

    /// Takes a request off the table's own row.
    #[inline(never)]
    fn take_from(&self, me: LaneId, total: &Total, change: Amount) {
        self.add(me, total.row, total.share(change).negated());
    }

    /// Counts on the table's own row, unless that is at a cap.
    #[inline(never)]
    fn add_within(&self, me: LaneId, total: &Total, change: Amount) -> Result<(), Full> {
        let backoff = Backoff::new();
        let change = total.share(change);
        let fits = |cap: Option<u32>, taken: u32, more: i64| {
            cap.is_none_or(|cap| i64::from(taken) + more <= i64::from(cap))
        };
        loop {
            let (word, tokens) = self.observe(total.row);
            if !fits(total.max_requests, word.value(), change.requests()) {
                return Err(Full::Requests);
            }
            if !fits(total.max_tokens, tokens, change.tokens()) {
                return Err(Full::Tokens);
            }
            if self.attempt(me, total.row, word, change) {
                return Ok(());
            }
            backoff.spin();
        }
    }
}
