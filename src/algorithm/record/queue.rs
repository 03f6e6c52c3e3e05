//! The queue as a whole: its bounds, and how far it has come.
//!
//! ```text
//!  word
//!     0  max_waiting           0 (44) | requests, 0 for no queue: 20
//!   1-4  max_waiting of class  0 (44) | requests, 0 for no own bound: 20
//!     5  by tokens             0 (63) | tenants share tokens 1
//!  6-15  padding
//!   ------------------------------------------------- a new pair of cache lines
//! 16-19  served                0 (2) | start of the last one served, by class: 62
//!    20  slots                 0 (52) | slots of which a request has ever waited: 12
//!    21  last served at        ns of the monotonic clock 64
//!    22  pace                  ns from one served request to the next, on average: 64
//!    23  reaped at             ns of the monotonic clock, by a frontend that waits: 64
//! 24-27  drawn                 0 (2) | latest start that was drawn, by class: 62
//! 28-31  padding
//! ```

use super::{Field, fields, words};
use crate::algorithm::primitive::AtomicU64;
use crate::algorithm::queue::order::{CLASSES, START_BITS};

/// The queue as a whole, as it lies in the table.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct QueueRecord {
    /// Read by each call that waits; written by changes of the table only.
    pub(in crate::algorithm) max_waiting: AtomicU64,
    pub(in crate::algorithm) max_waiting_of_class: [AtomicU64; CLASSES],
    pub(in crate::algorithm) by_tokens: AtomicU64,
    _rest_of_the_line: [AtomicU64; 10],
    /// Written each time that a request is served which has waited.
    pub(in crate::algorithm) served: [AtomicU64; CLASSES],
    pub(in crate::algorithm) slots: AtomicU64,
    pub(in crate::algorithm) last_served_at: AtomicU64,
    pub(in crate::algorithm) pace: AtomicU64,
    pub(in crate::algorithm) reaped_at: AtomicU64,
    /// Written each time that a request begins to wait.
    pub(in crate::algorithm) drawn: [AtomicU64; CLASSES],
    _rest_of_the_last_line: [AtomicU64; 4],
}

impl QueueRecord {
    pub(crate) const FIELDS: [Field; 11] = fields!(QueueRecord {
        max_waiting: [bound("max_waiting", |found| match found.word {
            0 => "the table has no queue".to_owned(),
            most => most.to_string(),
        })],
        max_waiting_of_class: [bound("max_waiting of class", |found| match found.word {
            0 => format!("class {}: no bound of its own", found.index),
            most => format!("class {}: {most}", found.index),
        })
        .times(CLASSES)],
        by_tokens: [Field::new("by tokens", |found| match found.word {
            0 => "tenants share requests".to_owned(),
            _ => "tenants share tokens".to_owned(),
        })
        .of_bits(1)],
        _rest_of_the_line: [Field::padding(10)],
        served: [Field::new("served", |found| format!(
            "class {}: start {}",
            found.index, found.word
        ))
        .times(CLASSES)
        .of_bits(START_BITS)],
        slots: [Field::number("slots").of_bits(12)],
        last_served_at: [Field::new("last served at", |found| {
            format!("{} ns of the monotonic clock", found.word)
        })],
        pace: [Field::new("pace", |found| format!(
            "{} ns from one to the next",
            found.word
        ))],
        reaped_at: [Field::new("reaped at", |found| {
            format!("{} ns of the monotonic clock", found.word)
        })],
        drawn: [Field::new("drawn", |found| format!(
            "class {}: start {}",
            found.index, found.word
        ))
        .times(CLASSES)
        .of_bits(START_BITS)],
        _rest_of_the_last_line: [Field::padding(4)],
    });
}

const fn bound(name: &'static str, show: fn(super::Found<'_>) -> String) -> Field {
    Field::new(name, show).of_bits(20)
}

const _: () = assert!(words(&QueueRecord::FIELDS) * 8 == 256);

#[cfg(loom)]
impl QueueRecord {
    pub(crate) fn new(max_waiting: u64) -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            max_waiting: AtomicU64::new(max_waiting),
            max_waiting_of_class: core::array::from_fn(|_| zero()),
            by_tokens: zero(),
            _rest_of_the_line: core::array::from_fn(|_| zero()),
            served: core::array::from_fn(|_| zero()),
            slots: zero(),
            last_served_at: zero(),
            pace: zero(),
            reaped_at: zero(),
            drawn: core::array::from_fn(|_| zero()),
            _rest_of_the_last_line: core::array::from_fn(|_| zero()),
        }
    }
}
