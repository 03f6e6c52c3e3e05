//! The 64-bit words of the counter, and what their bits mean.
//!
//! `lane` and `tag` name the operation that wrote a word; the tag is the low bits of that
//! operation's number. Lane 0 is no lane: a word written without a lane owes nothing to any ledger.

mod evidence;
mod operation;
mod row;

pub(crate) use evidence::Witness;
#[cfg(not(loom))]
pub(crate) use evidence::witness_fields;
pub(crate) use operation::{Amount, Intent};
#[cfg(not(loom))]
pub(crate) use row::MAX_TOKENS;
pub(crate) use row::{MAX_REQUESTS, RowState, TokenWord, Word};

const TAG_BITS: u32 = 29;
const LANE_BITS: u32 = 12;
const TAG_MASK: u64 = (1 << TAG_BITS) - 1;

/// After so many operations of a lane its tags come again.
pub(crate) const TURN: u64 = 1 << TAG_BITS;
const LANE_MASK: u64 = (1 << LANE_BITS) - 1;

/// The most lanes that a table can have; they are numbered from 1.
pub(crate) const MAX_LANES: usize = LANE_MASK as usize;

/// A lane's number, from 1. 0 is [`NO_LANE`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LaneId(pub(crate) u16);

/// The writer of a word that belongs to no lane: a fresh row, or a change of state.
pub(crate) const NO_LANE: LaneId = LaneId(0);

/// The part of an operation's number that a word can show.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tag(u64);

impl Tag {
    pub(crate) fn of(operation: u64) -> Self {
        Self(operation % TURN)
    }

    /// Whether a quarter of a turn of the tags ends between two operations of a lane.
    #[inline]
    pub(crate) fn quarter_ends_between(one: u64, next: u64) -> bool {
        one / (TURN / 4) != next / (TURN / 4)
    }
}
