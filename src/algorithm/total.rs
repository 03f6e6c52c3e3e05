//! The caps of the table as a whole, and the counts of all engines together.

use super::record::{Field, Found, fields};
use super::word::{Amount, Word};
use crate::algorithm::primitive::{AtomicU64, Ordering};

/// The caps of the table as a whole, as they lie in it, each in a word: 0 (32) | cap 32, or all ones for no cap.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct TotalCaps {
    requests: AtomicU64,
    tokens: AtomicU64,
}

const NO_CAP: u64 = u64::MAX;

impl TotalCaps {
    pub(crate) const FIELDS: [Field; 2] = fields!(TotalCaps {
        requests: [Field::new("total max_in_flight", show_cap)],
        tokens: [Field::new("total max_tokens", show_cap)],
    });

    #[cfg(loom)]
    pub(crate) fn none() -> Self {
        Self {
            requests: AtomicU64::new(NO_CAP),
            tokens: AtomicU64::new(NO_CAP),
        }
    }

    /// The caps. To be read after the hints said that there are caps, or after a row that was rewritten since
    /// they changed.
    pub(super) fn load(&self) -> Total {
        // Relaxed, both: written before the hints said so and before the rows were rewritten, and read after
        // the one or the other.
        let cap = |cap: &AtomicU64| u32::try_from(cap.load(Ordering::Relaxed)).ok();
        Total {
            requests: cap(&self.requests),
            tokens: cap(&self.tokens),
        }
    }

    /// Writes the caps. The caller rewrites the rows next, which makes them visible.
    pub(super) fn store(&self, caps: Total) {
        let bits = |cap: Option<u32>| cap.map_or(NO_CAP, u64::from);
        // Relaxed, both: made visible by the Releases of what follows.
        (self.requests).store(bits(caps.requests), Ordering::Relaxed);
        (self.tokens).store(bits(caps.tokens), Ordering::Relaxed);
    }

    /// The words as they are, to check those of a table that may be damaged.
    pub(crate) fn bits(&self) -> [u64; 2] {
        // Relaxed: a glance.
        [&self.requests, &self.tokens].map(|cap| cap.load(Ordering::Relaxed))
    }

    pub(crate) fn is_possible(bits: u64) -> bool {
        bits == NO_CAP || u32::try_from(bits).is_ok()
    }
}

fn show_cap(found: Found<'_>) -> String {
    match found.word {
        NO_CAP => "none".to_owned(),
        cap => cap.to_string(),
    }
}

/// The caps of a table as a whole. `None`: no such cap.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Total {
    pub(crate) requests: Option<u32>,
    pub(crate) tokens: Option<u32>,
}

impl Total {
    pub(crate) fn is_none(&self) -> bool {
        self.requests.is_none() && self.tokens.is_none()
    }

    /// The part of a change that has to be reserved.
    pub(super) fn share(&self, change: Amount) -> Amount {
        Amount::new(
            self.requests.map_or(0, |_| change.requests()),
            self.tokens.map_or(0, |_| change.tokens()),
        )
    }

    /// The cap below which there is no room for a change, if there is one.
    pub(in crate::algorithm) fn full(&self, taken: Taken, change: Amount) -> Option<Full> {
        let fits = |cap: Option<u32>, taken: u64, more: i64| {
            cap.is_none_or(|cap| taken.saturating_add_signed(more) <= u64::from(cap))
        };
        // What adds no requests needs no place, also when there are more than a cap that was lowered; and so for tokens.
        let lacks_place =
            change.requests() > 0 && !fits(self.requests, taken.requests, change.requests());
        if lacks_place {
            return Some(Full::Requests);
        }
        let lacks_tokens = change.tokens() > 0 && !fits(self.tokens, taken.tokens, change.tokens());
        lacks_tokens.then_some(Full::Tokens)
    }
}

/// The requests in flight on all engines together, and their tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Taken {
    pub(crate) requests: u64,
    pub(crate) tokens: u64,
}

impl Taken {
    pub(super) fn plus(self, (word, tokens): (Word, u32)) -> Self {
        Self {
            requests: self.requests + u64::from(word.value()),
            tokens: self.tokens + u64::from(tokens),
        }
    }
}

/// The kind of cap that is in the way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Full {
    /// One more request.
    Requests,
    /// The tokens of a request that has a place.
    Tokens,
}
