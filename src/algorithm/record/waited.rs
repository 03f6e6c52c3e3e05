//! How long the requests of a frontend's slot have waited, and how that ended: for people only.
//!
//! ```text
//!  word
//!  0-15  served        requests, by how long they waited 64
//!    16  waited        ns, of all that were served 64
//!    17  refused       requests 64
//!    18  timed out     requests 64
//!    19  cancelled     requests 64
//! 20-31  padding
//! ```

use super::{Field, fields, words};
use crate::algorithm::primitive::{AtomicU64, Ordering};

/// The upper bounds of the ranges in which waiting is counted, in milliseconds; the last range has none.
pub(crate) const BOUNDS: [f64; RANGES - 1] = [
    1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1e3, 2.5e3, 5e3, 1e4, 3e4, 6e4,
];

/// How many ranges there are.
pub(crate) const RANGES: usize = 16;

/// What has become of the waiting requests of a slot, as it lies in the table. Only the slot's frontend writes it, and
/// one thread at a time.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct WaitedRecord {
    served: [AtomicU64; RANGES],
    waited: AtomicU64,
    refused: AtomicU64,
    timed_out: AtomicU64,
    cancelled: AtomicU64,
    _rest_of_the_line: [AtomicU64; 12],
}

/// The totals of one slot, or of several.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Waited {
    /// By the ranges of [`BOUNDS`].
    pub(crate) served: [u64; RANGES],
    /// Nanoseconds, of all that were served.
    pub(crate) waited: u64,
    pub(crate) refused: u64,
    pub(crate) timed_out: u64,
    pub(crate) cancelled: u64,
}

/// How a request's waiting ended without a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unserved {
    /// It never began: the queue was full.
    Refused,
    /// Its deadline came.
    TimedOut,
    /// Its caller gave up, or no engine could take it any more.
    Cancelled,
}

impl WaitedRecord {
    pub(crate) const FIELDS: [Field; 6] = fields!(WaitedRecord {
        served: [Field::new("served", |found| {
            let requests = found.word;
            match BOUNDS.get(found.index) {
                Some(bound) => format!("{requests} requests within {bound} ms"),
                None => format!("{requests} requests later"),
            }
        })
        .times(RANGES)],
        waited: [Field::new("waited", |found| format!("{} ns", found.word))],
        refused: [Field::number("refused")],
        timed_out: [Field::number("timed out")],
        cancelled: [Field::number("cancelled")],
        _rest_of_the_line: [Field::padding(12)],
    });

    /// Counts a request that was served after so many nanoseconds.
    pub(crate) fn count_served(&self, waited: u64) {
        let milliseconds = waited as f64 / 1e6;
        let range = BOUNDS.partition_point(|bound| *bound < milliseconds);
        add(&self.served[range], 1);
        add(&self.waited, waited);
    }

    /// Counts a request that was not served.
    pub(crate) fn count_unserved(&self, how: Unserved) {
        let total = match how {
            Unserved::Refused => &self.refused,
            Unserved::TimedOut => &self.timed_out,
            Unserved::Cancelled => &self.cancelled,
        };
        add(total, 1);
    }

    pub(crate) fn totals(&self) -> Waited {
        // Relaxed: a glance, for people.
        let read = |word: &AtomicU64| word.load(Ordering::Relaxed);
        Waited {
            served: core::array::from_fn(|range| read(&self.served[range])),
            waited: read(&self.waited),
            refused: read(&self.refused),
            timed_out: read(&self.timed_out),
            cancelled: read(&self.cancelled),
        }
    }
}

impl Waited {
    pub(crate) fn plus(mut self, other: &Self) -> Self {
        for (sum, more) in self.served.iter_mut().zip(other.served) {
            *sum = sum.wrapping_add(more);
        }
        self.waited = self.waited.wrapping_add(other.waited);
        self.refused = self.refused.wrapping_add(other.refused);
        self.timed_out = self.timed_out.wrapping_add(other.timed_out);
        self.cancelled = self.cancelled.wrapping_add(other.cancelled);
        self
    }
}

fn add(total: &AtomicU64, more: u64) {
    // Relaxed, both: one thread writes it at a time, by a lock of its process, and the slot's lock hands it to the
    // next frontend.
    let before = total.load(Ordering::Relaxed);
    total.store(before.wrapping_add(more), Ordering::Relaxed);
}

const _: () = assert!(words(&WaitedRecord::FIELDS) * 8 == 256);
