//! A slot for a frontend: whether it is taken, and by which process.
//!
//! ```text
//! word
//!    0  slot    joins 62 | being reaped 1 | taken 1
//!    1  pid     0 (32) | pid 32
//!    2  since   nanoseconds of the Unix epoch: 64
//!  3-7  padding
//! ```

use super::{Field, fields, words};
use crate::algorithm::primitive::{Atomic, AtomicU64, Ordering};
use bytemuck::{Pod, Zeroable};

/// The state of a slot: vacant, taken or being reaped, and how often it was joined.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Pod, Zeroable)]
#[repr(transparent)]
pub(crate) struct SlotWord(u64);

const TAKEN: u64 = 1;
const REAPING: u64 = 2;

impl SlotWord {
    pub(crate) fn is_taken(self) -> bool {
        self.0 & TAKEN != 0
    }

    /// Whether its frontend died, and a reaper is or was at work.
    pub(crate) fn is_reaping(self) -> bool {
        self.0 & REAPING != 0
    }

    /// How many frontends have joined in this slot.
    pub(crate) fn joins(self) -> u64 {
        self.0 >> 2
    }

    pub(in crate::algorithm) fn taken(self) -> Self {
        Self((self.joins().wrapping_add(1) << 2) | TAKEN)
    }

    pub(in crate::algorithm) fn reaping(self) -> Self {
        Self(self.0 | REAPING)
    }

    pub(in crate::algorithm) fn vacant(self) -> Self {
        Self(self.0 & !(TAKEN | REAPING))
    }
}

/// A slot as it lies in the table.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct SlotRecord {
    word: Atomic<SlotWord>,
    /// The process, as it sees itself: for people only, since pid namespaces differ.
    pub(crate) pid: AtomicU64,
    /// When it joined, in nanoseconds of the Unix epoch: for people only.
    pub(crate) since: AtomicU64,
    _rest_of_the_line: [AtomicU64; 5],
}

impl SlotRecord {
    pub(crate) const FIELDS: [Field; 4] = fields!(SlotRecord {
        word: [Field::new("slot", |found| {
            let word = found.typed::<SlotWord>();
            let state = match (word.is_taken(), word.is_reaping()) {
                (false, false) => "vacant",
                (true, false) => "taken",
                (_, true) => "being reaped",
            };
            format!("{state}, joined {} times", word.joins())
        })],
        pid: [Field::number("pid").of_bits(32)],
        since: [Field::new("since", |found| {
            format!("{} ns after the Unix epoch", found.word)
        })],
        _rest_of_the_line: [Field::padding(5)],
    });
}

const _: () = assert!(words(&SlotRecord::FIELDS) * 8 == 64);

#[cfg(loom)]
impl SlotRecord {
    pub(crate) fn new() -> Self {
        Self {
            word: Atomic::new(SlotWord(0)),
            pid: AtomicU64::new(0),
            since: AtomicU64::new(0),
            _rest_of_the_line: core::array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

impl SlotRecord {
    pub(crate) fn word(&self) -> SlotWord {
        // Acquire: pairs with the Release in `Registry::vacate`. Who finds a slot vacant may take
        // it, and must then see its lanes as the reaper left them.
        self.word.load(Ordering::Acquire)
    }

    pub(in crate::algorithm) fn set(&self, word: SlotWord) {
        // Release: pairs with the Acquire in `word`.
        self.word.store(word, Ordering::Release);
    }
}
