//! The words of the evidence that an operation took effect.
//!
//! ```text
//! Witness     era 23 | lane 12 | tag 29
//! ```

use super::row::Word;
use super::{LANE_BITS, LANE_MASK, LaneId, TAG_BITS, TAG_MASK, Tag};
use bytemuck::{Pod, Zeroable};

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
    pub(crate) fn names(self, lane: LaneId, tag: Tag, began: Era) -> bool {
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

/// The bits of an era.
pub(crate) const ERA_BITS: u32 = u64::BITS - WITNESS_SHIFT;

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
    use crate::algorithm::word::{MAX_LANES, RowState};
    use proptest::prelude::*;

    proptest! {
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
            let tells = witness.names(LaneId(lanes.1), other, Era::of(count));
            prop_assert_eq!(tells, lanes.0 == lanes.1 && one == other);
            let earlier = Era::of(count.wrapping_sub(later));
            prop_assert!(witness.names(LaneId(lanes.0), one, earlier));
            let after_it = Era::of(count.wrapping_add(later));
            prop_assert!(!witness.names(LaneId(lanes.0), one, after_it));
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
    }
}
