//! The heads of a frontend's waiting requests: what other processes see of them.
//!
//! A frontend keeps its waiting requests in its own memory, in groups: those of one class that may go to the same
//! engines. The first of a group is its *head*, and stands here.
//!
//! ```text
//!  word
//!  0-13  tag         class 2 | start, 0 for no head: 62
//!    14  wake        count, whose lower half the frontend sleeps on: 64
//!    15  woken at    ns of the monotonic clock, 0 for no wake-up under way: 64
//!   ------------------------------------------------- a new pair of cache lines
//! 16-29  engines     0 (1) | only one 1 | how many 3 | places but one 7 | four engines 52
//! 30-31  padding
//!   ------------------------------------------------- a new pair of cache lines
//! 32-45  size        began to wait, ms of the monotonic clock 32 | tokens 32
//! 46-47  padding
//! ```

use super::{Field, fields, words};
use crate::algorithm::primitive::{Atomic, AtomicU64};
use crate::algorithm::queue::order::{EngineSet, Size, Tag};

/// How many heads of a frontend other processes can see.
pub(crate) const HEADS: usize = 14;

/// The heads of a frontend as they lie in the table. Only that frontend writes them, or the process that reaps it; all
/// processes write `wake` and `woken_at`.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct HeadsRecord {
    /// On the line that all look at who wake or who want to know whether another request comes first.
    pub(in crate::algorithm) tags: [Atomic<Tag>; HEADS],
    pub(in crate::algorithm) wake: AtomicU64,
    pub(in crate::algorithm) woken_at: AtomicU64,
    pub(in crate::algorithm) engines: [Atomic<EngineSet>; HEADS],
    _rest_of_the_line: [AtomicU64; 2],
    pub(in crate::algorithm) sizes: [Atomic<Size>; HEADS],
    _rest_of_the_last_line: [AtomicU64; 2],
}

impl HeadsRecord {
    pub(crate) const FIELDS: [Field; 7] = fields!(HeadsRecord {
        tags: [Field::new("tag", |found| format!("{:?}", found.typed::<Tag>())).times(HEADS)],
        wake: [Field::number("wake")],
        woken_at: [Field::new("woken at", |found| match found.word {
            0 => "no wake-up is under way".to_owned(),
            at => format!("{at} ns of the monotonic clock"),
        })],
        engines: [Field::new("engines", |found| {
            format!("{:?}", found.typed::<EngineSet>())
        })
        .times(HEADS)
        .using(EngineSet::BITS)],
        _rest_of_the_line: [Field::padding(2)],
        sizes: [Field::new("size", |found| format!("{:?}", found.typed::<Size>())).times(HEADS)],
        _rest_of_the_last_line: [Field::padding(2)],
    });

    /// The word that the frontend sleeps on, for the kernel.
    #[cfg(not(loom))]
    pub(crate) fn wake(&self) -> &AtomicU64 {
        &self.wake
    }
}

const _: () = assert!(words(&HeadsRecord::FIELDS) * 8 == 384);

#[cfg(loom)]
impl HeadsRecord {
    pub(crate) fn new() -> Self {
        use bytemuck::Zeroable;
        let zero = || AtomicU64::new(0);
        Self {
            tags: core::array::from_fn(|_| Atomic::new(Tag::NONE)),
            wake: zero(),
            woken_at: zero(),
            engines: core::array::from_fn(|_| Atomic::new(EngineSet::ANY)),
            _rest_of_the_line: [zero(), zero()],
            sizes: core::array::from_fn(|_| Atomic::new(Size::zeroed())),
            _rest_of_the_last_line: [zero(), zero()],
        }
    }
}
