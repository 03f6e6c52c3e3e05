//! The words of a row: how many requests and tokens are in flight there, and which operation wrote that.
//!
//! ```text
//! Word        state 2 | value 20 | lane 12 | tokens 1 | tag 29
//! TokenWord   tokens 32 | version 32
//! ```
//!
//! `tokens` of a `Word` says whether the operation that wrote it changed any.

use super::operation::Amount;
use super::{LANE_BITS, LANE_MASK, LaneId, NO_LANE, TAG_BITS, TAG_MASK, Tag};
use crate::algorithm::record::Field;
use bytemuck::{Pod, Zeroable};

const VALUE_BITS: u32 = 20;
const WITH_TOKENS: u64 = 1 << TAG_BITS;
const LANE_SHIFT: u32 = TAG_BITS + 1;
const VALUE_SHIFT: u32 = LANE_SHIFT + LANE_BITS;
const STATE_SHIFT: u32 = VALUE_SHIFT + VALUE_BITS;
const VALUE_MASK: u64 = (1 << VALUE_BITS) - 1;

/// The most requests that one row can count.
pub(crate) const MAX_REQUESTS: u32 = (1 << VALUE_BITS) - 1;
/// The most tokens that one row can count.
pub(crate) const MAX_TOKENS: u32 = u32::MAX;

/// Whether a row takes requests. Zero bytes are a row that does not exist; read as the upper bits of
/// a signed number, `Active` is the least.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RowState {
    /// No engine has this row, or one that was removed still has requests in flight.
    Removed = 0,
    /// Takes nothing new; what is in flight finishes.
    Draining = 1,
    /// Takes requests.
    Active = 2,
    /// Takes nothing: the engine does not answer.
    Down = 3,
}

/// What is in flight on a row, whether the row takes more, and which operation said so last.
#[derive(Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub(crate) struct Word(u64);

impl Word {
    pub(crate) const FIELD: Field =
        Field::new("requests", |found| format!("{:?}", found.typed::<Self>()));

    #[inline]
    pub(crate) fn value(self) -> u32 {
        ((self.0 >> VALUE_SHIFT) & VALUE_MASK) as u32
    }

    #[inline]
    pub(crate) fn state(self) -> RowState {
        match self.0 >> STATE_SHIFT {
            0 => RowState::Removed,
            1 => RowState::Draining,
            2 => RowState::Active,
            _ => RowState::Down,
        }
    }

    #[inline]
    pub(crate) fn is_active(self) -> bool {
        self.state() == RowState::Active
    }

    #[inline]
    pub(crate) fn lane(self) -> LaneId {
        LaneId(((self.0 >> LANE_SHIFT) & LANE_MASK) as u16)
    }

    #[inline]
    pub(crate) fn tag(self) -> Tag {
        Tag(self.0 & TAG_MASK)
    }

    /// Whether the operation that wrote it changed the row's tokens, too.
    #[inline]
    pub(crate) fn is_with_tokens(self) -> bool {
        self.0 & WITH_TOKENS != 0
    }

    #[inline]
    pub(crate) fn is_by(self, lane: LaneId, tag: Tag) -> bool {
        self.lane() == lane && self.tag() == tag
    }

    /// Returns the requests in flight if the row takes more, and a number above [`MAX_REQUESTS`] if it does
    /// not. So one comparison with a cap says both: [`has_room`](Self::has_room).
    #[inline]
    pub(crate) fn occupancy(self) -> i32 {
        self.rank() + Self::OCCUPANCY_OF_RANK
    }

    /// What an occupancy is more than a rank.
    pub(crate) const OCCUPANCY_OF_RANK: i32 = 1 << (VALUE_BITS + 1);

    /// Returns a number by which words can be compared: the less is in flight, the smaller; those of rows that take
    /// no requests are above [`MOST_RANK`](Self::MOST_RANK).
    #[inline]
    pub(crate) fn rank(self) -> i32 {
        (self.0 as i64 >> VALUE_SHIFT) as i32
    }

    /// Returns the upper half of its bits, which has the rank.
    #[inline]
    pub(crate) fn upper_half(self) -> i32 {
        (self.0 >> 32) as i32
    }

    /// By how much the upper half has to be shifted to be the rank.
    pub(crate) const RANK_SHIFT: i32 = VALUE_SHIFT as i32 - 32;

    /// How many bits are below a rank.
    pub(crate) const BELOW_RANK: u32 = VALUE_SHIFT;

    /// The rank of a row that takes one more request, and then none.
    pub(crate) const MOST_RANK: i32 = (-1 << VALUE_BITS) - 2;

    /// Whether the row takes requests, and counts less than `cap`, which is [`MAX_REQUESTS`] at most.
    #[inline]
    pub(crate) fn has_room(self, cap: i32) -> bool {
        self.occupancy() < cap
    }

    /// This word after `change`, written by the operation `tag` of `lane`.
    #[inline]
    pub(crate) fn changed(self, change: Amount, lane: LaneId, tag: Tag) -> Self {
        let value = (i64::from(self.value()) + change.requests()).clamp(0, MAX_REQUESTS.into());
        let tokens = u64::from(change.tokens() != 0) * WITH_TOKENS;
        Self(Self::pack(value as u64, self.state(), lane, tag).0 | tokens)
    }

    /// Returns this word in another state, written without a lane.
    pub(crate) fn rewritten(self, state: RowState, tag: Tag) -> Self {
        Self::pack(self.value().into(), state, NO_LANE, tag)
    }

    #[inline]
    pub(super) fn pack(value: u64, state: RowState, lane: LaneId, tag: Tag) -> Self {
        Self(
            (value << VALUE_SHIFT)
                | ((state as u64) << STATE_SHIFT)
                | (u64::from(lane.0) << LANE_SHIFT)
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
    /// Describes a word of this type.
    pub(crate) const fn field(name: &'static str) -> Field {
        Field::new(name, |found| {
            let word = found.typed::<Self>();
            format!("{}, version {}", word.tokens(), word.version())
        })
    }

    #[inline]
    pub(crate) fn tokens(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline]
    fn version(self) -> u32 {
        self.0 as u32
    }

    #[inline]
    pub(crate) fn changed(self, change: Amount) -> Self {
        let tokens = (i64::from(self.tokens()) + change.tokens()).clamp(0, MAX_TOKENS.into());
        let version = self.version().wrapping_add(1);
        Self(((tokens as u64) << 32) | u64::from(version))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::algorithm::word::MAX_LANES;
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
        fn an_occupancy_is_the_count_of_a_row_that_takes_requests_and_above_all_caps_otherwise(
            value in 0..=MAX_REQUESTS,
            lane in 0..=MAX_LANES as u16,
            operation: u64,
        ) {
            let word = |state| Word::pack(value.into(), state, LaneId(lane), Tag::of(operation));
            let active = word(RowState::Active);
            prop_assert_eq!(active.occupancy(), value as i32);
            prop_assert_eq!(active.rank() <= Word::MOST_RANK, value < MAX_REQUESTS);
            prop_assert_eq!(Word::MOST_RANK - active.rank(), MAX_REQUESTS as i32 - 1 - value as i32);
            for state in [RowState::Removed, RowState::Draining, RowState::Down] {
                prop_assert!(word(state).occupancy() > MAX_REQUESTS as i32);
                prop_assert!(!word(state).has_room(MAX_REQUESTS as i32));
                prop_assert!(word(state).rank() > Word::MOST_RANK);
            }
        }

        #[test]
        fn a_word_says_whether_tokens_changed(tokens in -9..9_i64, operation: u64) {
            let word = Word::pack(5, RowState::Active, NO_LANE, Tag::of(0));
            let change = Amount::new(1, tokens);
            let changed = word.changed(change, LaneId(MAX_LANES as u16), Tag::of(operation));
            prop_assert_eq!(changed.is_with_tokens(), tokens != 0);
            prop_assert!(changed.is_by(LaneId(MAX_LANES as u16), Tag::of(operation)));
            prop_assert_eq!(changed.value(), 6);
        }
    }

    #[test]
    fn a_damaged_ledger_cannot_take_a_word_below_zero_or_above_its_width() {
        let word = Word::pack(3, RowState::Active, NO_LANE, Tag::of(0));
        let none = word.changed(Amount::new(-5, 0), NO_LANE, Tag::of(1));
        assert_eq!(none.value(), 0);
        let full = word.changed(Amount::new(8_000_000, 0), NO_LANE, Tag::of(1));
        assert_eq!(
            (full.value(), full.state()),
            (MAX_REQUESTS, RowState::Active)
        );
    }

    #[test]
    fn zero_bytes_are_a_row_without_an_engine() {
        let word: Word = bytemuck::Zeroable::zeroed();
        assert_eq!(
            (word.value(), word.state(), word.lane()),
            (0, RowState::Removed, NO_LANE)
        );
    }
}
