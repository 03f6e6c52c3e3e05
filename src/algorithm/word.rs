//! The 64-bit words of the counter, and what their bits mean.
//!
//! ```text
//! Word        value 20 | state 2 | lane 12 | tag 30      what is in flight on a row, and who said so
//! TokenWord   tokens 32          | version 32            the tokens of the same requests
//! Amount      requests 24 | tokens 40                    a ledger entry, or a change of one
//! Intent      active 1 | 0 (20) | row 13 | tag 30        the operation that a lane is in
//! ```
//!
//! `lane` and `tag` name the operation that wrote a word; the tag is the low bits of that
//! operation's number. Lane 0 is nobody: a word written by nobody owes nothing to any ledger.

use bytemuck::{Pod, Zeroable};

const TAG_BITS: u32 = 30;
const LANE_BITS: u32 = 12;
const STATE_BITS: u32 = 2;
const VALUE_BITS: u32 = 20;
const STATE_SHIFT: u32 = TAG_BITS + LANE_BITS;
const VALUE_SHIFT: u32 = STATE_SHIFT + STATE_BITS;
const TAG_MASK: u64 = (1 << TAG_BITS) - 1;
const LANE_MASK: u64 = (1 << LANE_BITS) - 1;

/// The most requests that one row can count.
pub(crate) const MAX_REQUESTS: u32 = (1 << VALUE_BITS) - 1;
/// The most tokens that one row can count.
pub(crate) const MAX_TOKENS: u32 = u32::MAX;
/// The most lanes that a table can have; they are numbered from 1.
pub(crate) const MAX_LANES: usize = LANE_MASK as usize;

/// A lane's number, from 1. 0 is [`NOBODY`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LaneId(pub(crate) u16);

/// The writer of a word that belongs to no lane: a fresh row, or a change of state.
pub(crate) const NOBODY: LaneId = LaneId(0);

/// The part of an operation's number that a word can show.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tag(u64);

impl Tag {
    pub(crate) fn of(operation: u64) -> Self {
        Self(operation & TAG_MASK)
    }
}

/// Whether a row takes requests. Zero bytes are a row that does not exist.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RowState {
    /// No engine has this row, or one that was removed still has requests in flight.
    Removed = 0,
    /// Takes requests.
    Active = 1,
    /// Takes nothing new; what is in flight finishes.
    Draining = 2,
    /// Takes nothing: the engine does not answer.
    Down = 3,
}

/// What is in flight on a row, whether the row takes more, and which operation said so last.
#[derive(Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub(crate) struct Word(u64);

impl Word {
    #[inline]
    pub(crate) fn value(self) -> u32 {
        (self.0 >> VALUE_SHIFT) as u32
    }

    #[inline]
    pub(crate) fn state(self) -> RowState {
        match (self.0 >> STATE_SHIFT) & 3 {
            0 => RowState::Removed,
            1 => RowState::Active,
            2 => RowState::Draining,
            _ => RowState::Down,
        }
    }

    #[inline]
    pub(crate) fn is_active(self) -> bool {
        self.state() == RowState::Active
    }

    #[inline]
    pub(crate) fn lane(self) -> LaneId {
        LaneId(((self.0 >> TAG_BITS) & LANE_MASK) as u16)
    }

    #[inline]
    pub(crate) fn tag(self) -> Tag {
        Tag(self.0 & TAG_MASK)
    }

    #[inline]
    pub(crate) fn is_by(self, lane: LaneId, tag: Tag) -> bool {
        self.lane() == lane && self.tag() == tag
    }

    /// This word after `change`, written by the operation `tag` of `lane`.
    #[inline]
    pub(crate) fn changed(self, change: Amount, lane: LaneId, tag: Tag) -> Self {
        let value = (i64::from(self.value()) + change.requests()).clamp(0, MAX_REQUESTS.into());
        Self::pack(value as u64, self.state(), lane, tag)
    }

    /// This word in another state, written by nobody.
    pub(crate) fn marked(self, state: RowState, tag: Tag) -> Self {
        Self::pack(self.value().into(), state, NOBODY, tag)
    }

    #[inline]
    fn pack(value: u64, state: RowState, lane: LaneId, tag: Tag) -> Self {
        Self(
            (value << VALUE_SHIFT)
                | ((state as u64) << STATE_SHIFT)
                | (u64::from(lane.0) << TAG_BITS)
                | tag.0,
        )
    }
}

impl core::fmt::Debug for Word {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "{} {:?} by {}/{}",
            self.value(),
            self.state(),
            self.lane().0,
            self.tag().0
        )
    }
}

/// The tokens in flight on a row. The version grows with every change, so that a change which was
/// computed from an older word cannot be applied a second time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Pod, Zeroable)]
#[repr(transparent)]
pub(crate) struct TokenWord(u64);

impl TokenWord {
    /// In the place of a row's tokens for an operation that does not touch them.
    pub(crate) const UNUSED: Self = Self(0);

    #[inline]
    pub(crate) fn tokens(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline]
    pub(crate) fn changed(self, change: Amount) -> Self {
        let tokens = (i64::from(self.tokens()) + change.tokens()).clamp(0, MAX_TOKENS.into());
        let version = (self.0 as u32).wrapping_add(1);
        Self(((tokens as u64) << 32) | u64::from(version))
    }
}

/// Requests and their tokens: what a lane holds on a row, or a change of that.
///
/// Both parts count modulo their width and are read as signed numbers. A lane that only finishes
/// what other lanes of its frontend admitted goes below zero and may wrap; the sum over the
/// frontend's lanes is what counts, and it stays within the widths of [`Word`] and [`TokenWord`].
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
    pub(crate) fn plus(self, other: Self) -> Self {
        Self::new(
            self.requests() + other.requests(),
            self.tokens() + other.tokens(),
        )
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

    #[inline]
    pub(crate) fn active(row: usize, tag: Tag) -> Self {
        Self(ACTIVE | ((row as u64 & ROW_MASK) << TAG_BITS) | tag.0)
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
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_word_keeps_its_parts_apart(
            value in 0..=MAX_REQUESTS,
            lane in 0..=MAX_LANES as u16,
            operation: u64,
        ) {
            let tag = Tag::of(operation);
            for state in [RowState::Removed, RowState::Active, RowState::Draining, RowState::Down] {
                let word = Word::pack(value.into(), state, LaneId(lane), tag);
                prop_assert_eq!(word.value(), value);
                prop_assert_eq!(word.state(), state);
                prop_assert!(word.is_by(LaneId(lane), tag));
            }
        }

        #[test]
        fn amounts_add_up_whatever_wraps_on_the_way(
            changes in prop::collection::vec((-1_000_000_i64..1_000_000, -(1_i64 << 38)..1 << 38), 0..60),
        ) {
            // Two ledgers share the changes; only their sum has to be right.
            let mut ledgers = [Amount::ZERO; 2];
            let (mut requests, mut tokens) = (0_i64, 0_i64);
            for (i, &(r, t)) in changes.iter().enumerate() {
                ledgers[i % 2] = ledgers[i % 2].plus(Amount::new(r, t));
                requests += r;
                tokens += t;
            }
            let back = ledgers[0].plus(ledgers[1]).plus(Amount::new(-requests, -tokens));
            prop_assert_eq!(back, Amount::ZERO);
        }

        #[test]
        fn an_intent_names_its_row_and_tag(row in 0..=4096_usize, operation: u64) {
            let tag = Tag::of(operation);
            prop_assert_eq!(Intent::active(row, tag).operation(), Some((row, tag)));
        }
    }

    #[test]
    fn a_damaged_ledger_cannot_take_a_word_below_zero_or_above_its_width() {
        let word = Word::pack(3, RowState::Active, NOBODY, Tag::of(0));
        let none = word.changed(Amount::new(-5, 0), NOBODY, Tag::of(1));
        assert_eq!(none.value(), 0);
        let full = word.changed(Amount::new(8_000_000, 0), NOBODY, Tag::of(1));
        assert_eq!(
            (full.value(), full.state()),
            (MAX_REQUESTS, RowState::Active)
        );
    }

    #[test]
    fn zero_bytes_are_a_row_that_nobody_has() {
        let word: Word = bytemuck::Zeroable::zeroed();
        assert_eq!(
            (word.value(), word.state(), word.lane()),
            (0, RowState::Removed, NOBODY)
        );
        assert_eq!(Intent::IDLE.operation(), None);
    }
}
