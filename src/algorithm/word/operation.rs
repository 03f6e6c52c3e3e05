//! The words of an operation: which row it changes, under which tag, and by how much.
//!
//! ```text
//! Amount      requests 24 | tokens 40
//! Intent      active 1 | 0 (21) | row 13 | tag 29
//! ```

use super::{TAG_BITS, TAG_MASK, Tag};
use bytemuck::{Pod, Zeroable};

/// Requests and their tokens, by which an operation changes a row: signed, and wider than what
/// [`Word`](super::Word) and [`TokenWord`](super::TokenWord) can count.
#[derive(Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub(crate) struct Amount(u64);

const AMOUNT_TOKEN_BITS: u32 = 40;
const AMOUNT_TOKEN_MASK: u64 = (1 << AMOUNT_TOKEN_BITS) - 1;

impl Amount {
    pub(crate) const ZERO: Self = Self(0);

    #[inline]
    pub(crate) fn new(requests: i64, tokens: i64) -> Self {
        Self(((requests as u64) << AMOUNT_TOKEN_BITS) | (tokens as u64 & AMOUNT_TOKEN_MASK))
    }

    /// One request of so many tokens.
    #[inline]
    pub(crate) fn request(tokens: u32) -> Self {
        Self::new(1, tokens.into())
    }

    #[inline]
    pub(crate) fn requests(self) -> i64 {
        self.0 as i64 >> AMOUNT_TOKEN_BITS
    }

    #[inline]
    pub(crate) fn tokens(self) -> i64 {
        const UP: u32 = u64::BITS - AMOUNT_TOKEN_BITS;
        ((self.0 << UP) as i64) >> UP
    }

    #[inline]
    pub(crate) fn negated(self) -> Self {
        Self::new(-self.requests(), -self.tokens())
    }
}

impl core::fmt::Debug for Amount {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} requests, {} tokens", self.requests(), self.tokens())
    }
}

/// The operation that a lane is in: none, or one on a row under a tag.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Pod, Zeroable)]
#[repr(transparent)]
pub(crate) struct Intent(u64);

const ACTIVE: u64 = 1 << 63;
const ROW_MASK: u64 = (1 << 13) - 1;

impl Intent {
    pub(crate) const IDLE: Self = Self(0);
    /// The bits that are used.
    pub(crate) const BITS: u64 = ACTIVE | (ROW_MASK << TAG_BITS) | TAG_MASK;

    #[inline]
    pub(crate) fn active(row: usize, tag: Tag) -> Self {
        debug_assert!(row as u64 <= ROW_MASK, "no table has so many rows");
        Self(ACTIVE | ((row as u64) << TAG_BITS) | tag.0)
    }

    /// The row and tag, if there is an operation.
    #[inline]
    pub(crate) fn operation(self) -> Option<(usize, Tag)> {
        (self.0 & ACTIVE != 0).then_some((
            ((self.0 >> TAG_BITS) & ROW_MASK) as usize,
            Tag(self.0 & TAG_MASK),
        ))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::algorithm::word::{MAX_REQUESTS, MAX_TOKENS};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_amount_keeps_its_parts_apart(
            requests in -i64::from(MAX_REQUESTS)..=i64::from(MAX_REQUESTS),
            tokens in -i64::from(MAX_TOKENS)..=i64::from(MAX_TOKENS),
        ) {
            let amount = Amount::new(requests, tokens);
            prop_assert_eq!((amount.requests(), amount.tokens()), (requests, tokens));
            let back = amount.negated();
            prop_assert_eq!((back.requests(), back.tokens()), (-requests, -tokens));
        }

        #[test]
        fn an_intent_names_its_row_and_tag(row in 0..=4096_usize, operation: u64) {
            let tag = Tag::of(operation);
            prop_assert_eq!(Intent::active(row, tag).operation(), Some((row, tag)));
        }
    }

    #[test]
    fn zero_bytes_are_no_operation() {
        let intent: Intent = bytemuck::Zeroable::zeroed();
        assert_eq!(intent, Intent::IDLE);
        assert_eq!(intent.operation(), None);
    }
}
