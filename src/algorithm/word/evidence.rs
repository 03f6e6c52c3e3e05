//! The word of the evidence that an operation took effect.
//!
//! ```text
//! Witness     0 (2) | is there 1 | tag 29; two in a word
//! ```

use super::{TAG_BITS, TURN, Tag};
use bytemuck::{Pod, Zeroable};

/// The latest operation of one lane that another lane has seen take effect.
///
/// Zero bytes are none.
#[derive(Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub(crate) struct Witness(u32);

const IS_THERE: u32 = 1 << TAG_BITS;

impl Witness {
    pub(crate) const NONE: Self = Self(0);

    #[inline]
    pub(crate) fn of(tag: Tag) -> Self {
        Self(IS_THERE | tag.0 as u32)
    }

    /// Whether it names a later operation than `last`, which may name none. Right if the two are less than half of a
    /// turn of the tags apart.
    #[inline]
    pub(crate) fn is_after(self, last: Self) -> bool {
        let step = u64::from(self.0.wrapping_sub(last.0)) % TURN;
        self != Self::NONE && (last == Self::NONE || (1..TURN / 2).contains(&step))
    }
}

/// Returns the lines of a lane's witnesses, of so many lanes: two in a word, and padding to `stride` of them.
#[cfg(not(loom))]
pub(crate) fn witness_fields(lanes: usize, stride: usize) -> [crate::algorithm::record::Field; 2] {
    use crate::algorithm::record::Field;
    const USED: u64 = (1 << (TAG_BITS + 1)) - 1;
    let two = Field::new("witness", |found| {
        let [one, other] = found.typed::<[Witness; 2]>();
        let lane = 2 * found.index + 1;
        format!("lane {lane}: {one:?}, lane {}: {other:?}", lane + 1)
    });
    let words = lanes.div_ceil(2);
    [
        two.times(words).using(USED << u32::BITS | USED),
        Field::padding(stride / 2 - words),
    ]
}

impl core::fmt::Debug for Witness {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match *self {
            Self::NONE => write!(f, "saw none"),
            Self(bits) => write!(f, "saw tag {}", bits & !IS_THERE),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_later_of_two_operations_is_told(operation: u64, step in 1..TURN / 2) {
            let witness = |operation| Witness::of(Tag::of(operation));
            let [one, later] = [operation, operation.wrapping_add(step)].map(witness);
            prop_assert!(later.is_after(one));
            prop_assert!(!one.is_after(later));
            prop_assert!(!one.is_after(one));
            prop_assert!(one.is_after(Witness::NONE));
            prop_assert!(!Witness::NONE.is_after(one));
        }
    }
}
