//! The 64-bit words of the counter, and what their bits mean.
//!
//! ```text
//! Word        state 2 | value 20 | lane 12 | tokens 1 | tag 29   what is in flight on a row, and who said so
//! TokenWord   tokens 32 | version 32                             the tokens of the same requests
//! Amount      requests 24 | tokens 40                            what an operation changes
//! Intent      active 1 | 0 (21) | row 13 | tag 29                the operation that a lane is in
//! Witness     era 23 | lane 12 | tag 29                          an operation that a lane has seen take effect
//! ```
//!
//! `lane` and `tag` name the operation that wrote a word; the tag is the low bits of that
//! operation's number, and `tokens` says whether it changed any. Lane 0 is nobody: a word written by
//! nobody owes nothing to any ledger.

use bytemuck::{Pod, Zeroable};

const TAG_BITS: u32 = 29;
const LANE_BITS: u32 = 12;
const VALUE_BITS: u32 = 20;
const WITH_TOKENS: u64 = 1 << TAG_BITS;
const LANE_SHIFT: u32 = TAG_BITS + 1;
const VALUE_SHIFT: u32 = LANE_SHIFT + LANE_BITS;
const STATE_SHIFT: u32 = VALUE_SHIFT + VALUE_BITS;
const VALUE_MASK: u64 = (1 << VALUE_BITS) - 1;
const TAG_MASK: u64 = (1 << TAG_BITS) - 1;
const LANE_MASK: u64 = (1 << LANE_BITS) - 1;

/// The bits below a [`Word::rank`].
pub(crate) const BELOW_RANK: i64 = (1 << VALUE_SHIFT) - 1;

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

    /// A number by which words can be compared, with room below it for another: the less is in
    /// flight, the smaller, and those that are not active come after those that are.
    #[inline]
    pub(crate) fn rank(self) -> i64 {
        (self.0 & !(BELOW_RANK as u64)) as i64
    }

    /// This word after `change`, written by the operation `tag` of `lane`.
    #[inline]
    pub(crate) fn changed(self, change: Amount, lane: LaneId, tag: Tag) -> Self {
        let value = (i64::from(self.value()) + change.requests()).clamp(0, MAX_REQUESTS.into());
        let tokens = u64::from(change.tokens() != 0) * WITH_TOKENS;
        Self(Self::pack(value as u64, self.state(), lane, tag).0 | tokens)
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

/// Requests and their tokens, by which an operation changes a row: signed, and wider than what
/// [`Word`] and [`TokenWord`] can count.
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

/// An operation that a lane has seen take effect on a row, and the era that it saw then.
///
/// Zero bytes are none.
#[derive(Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub(crate) struct Witness(u64);

const WITNESS_SHIFT: u32 = TAG_BITS + LANE_BITS;

impl Witness {
    /// That the operation which wrote `word` took effect.
    #[inline]
    pub(crate) fn of(word: Word, era: Era) -> Self {
        Self((era.0 << WITNESS_SHIFT) | (u64::from(word.lane().0) << TAG_BITS) | word.tag().0)
    }

    #[inline]
    pub(crate) fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    #[inline]
    pub(crate) fn to_bits(self) -> u64 {
        self.0
    }

    #[inline]
    pub(crate) fn lane(self) -> LaneId {
        LaneId(((self.0 >> TAG_BITS) & LANE_MASK) as u16)
    }

    #[inline]
    pub(crate) fn tag(self) -> Tag {
        Tag(self.0 & TAG_MASK)
    }

    fn era(self) -> Era {
        Era(self.0 >> WITNESS_SHIFT)
    }

    /// Whether it tells of the operation with this tag that `lane` is in, in an era that began with
    /// `began`.
    pub(crate) fn tells_of(self, lane: LaneId, tag: Tag, began: Era) -> bool {
        self.lane() == lane && self.tag() == tag && self.era().is_not_before(began)
    }
}

impl core::fmt::Debug for Witness {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (lane, tag, era) = (self.lane().0, self.tag().0, self.era().0);
        write!(f, "saw {lane}/{tag} in era {era}")
    }
}

/// A number that moves whenever the tags of any lane have gone half of their way around.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Pod, Zeroable)]
#[repr(transparent)]
pub(crate) struct Era(u64);

const ERA_BITS: u32 = u64::BITS - WITNESS_SHIFT;

impl Era {
    #[inline]
    pub(crate) fn of(count: u64) -> Self {
        Self(count & ((1 << ERA_BITS) - 1))
    }

    /// Whether an era ends between two operations of a lane.
    #[inline]
    pub(crate) fn ends_between(one: u64, next: u64) -> bool {
        (one ^ next) >> (TAG_BITS - 1) != 0
    }

    /// Whether it is `other` or a later one.
    pub(crate) fn is_not_before(self, other: Self) -> bool {
        Self::of(self.0.wrapping_sub(other.0)).0 < 1 << (ERA_BITS - 1)
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
        fn ranks_order_active_words_by_their_value_and_others_after_them(
            values in (0..=MAX_REQUESTS, 0..=MAX_REQUESTS),
            lanes in (0..=MAX_LANES as u16, 0..=MAX_LANES as u16),
            operation: u64,
        ) {
            let word = |value: u32, state, lane| {
                Word::pack(value.into(), state, LaneId(lane), Tag::of(operation))
            };
            let one = word(values.0, RowState::Active, lanes.0);
            let other = word(values.1, RowState::Active, lanes.1);
            prop_assert_eq!(one.rank().cmp(&other.rank()), values.0.cmp(&values.1));
            prop_assert_eq!(one.rank() & BELOW_RANK, 0);
            for state in [RowState::Removed, RowState::Draining, RowState::Down] {
                prop_assert!(word(values.1, state, lanes.1).rank() > one.rank());
            }
        }

        #[test]
        fn a_word_says_whether_tokens_changed(tokens in -9..9_i64, operation: u64) {
            let word = Word::pack(5, RowState::Active, NOBODY, Tag::of(0));
            let change = Amount::new(1, tokens);
            let changed = word.changed(change, LaneId(MAX_LANES as u16), Tag::of(operation));
            prop_assert_eq!(changed.is_with_tokens(), tokens != 0);
            prop_assert!(changed.is_by(LaneId(MAX_LANES as u16), Tag::of(operation)));
            prop_assert_eq!(changed.value(), 6);
        }

        #[test]
        fn a_witness_tells_of_one_operation(
            lanes in (1..=MAX_LANES as u16, 1..=MAX_LANES as u16),
            operations: (u64, u64),
            count: u64,
            later in 1..1_u64 << (ERA_BITS - 1),
        ) {
            let [one, other] = [operations.0, operations.1].map(Tag::of);
            let word = Word::pack(3, RowState::Active, LaneId(lanes.0), one);
            let witness = Witness::of(word, Era::of(count));
            let tells = witness.tells_of(LaneId(lanes.1), other, Era::of(count));
            prop_assert_eq!(tells, lanes.0 == lanes.1 && one == other);
            let earlier = Era::of(count.wrapping_sub(later));
            prop_assert!(witness.tells_of(LaneId(lanes.0), one, earlier));
            let after_it = Era::of(count.wrapping_add(later));
            prop_assert!(!witness.tells_of(LaneId(lanes.0), one, after_it));
        }

        #[test]
        fn two_eras_end_before_a_tag_comes_back(operation in ..u64::MAX / 2, step in 1..3_u64) {
            let mut ends = 0;
            let mut last = operation;
            // In steps that are not all those of a lane, but as fine as it takes.
            while last < operation + (1 << TAG_BITS) - (1 << 20) {
                let next = last + (1 << 20) + step;
                ends += u32::from(Era::ends_between(last, next));
                last = next;
            }
            let to_the_end = Era::ends_between(last, operation + (1 << TAG_BITS));
            prop_assert!(ends + u32::from(to_the_end) >= 2);
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
