//! A lane: the operation that it is in, for other processes to see.
//!
//! ```text
//!  word
//!     0  operation           number of the current operation, or of the last one: 64
//!     1  intent              active 1 | 0 (21) | row 13 | tag 29
//!     2  change              requests 24 | tokens 40, both signed
//!     3  total before        requests: 64
//!     4  held tokens before  tokens, signed: 64
//!     5  tokens before       tokens 32 | version 32
//!   6-7  padding
//!   ------------------------------------------------- a new cache line: other processes write here, or seldom
//!     8  confirmed           number of an operation: 64
//!  9-13  refusals            calls, by reason: 64 each
//! 14-15  padding
//! ```

use super::{Field, fields, words};
use crate::algorithm::primitive::{Atomic, AtomicU64};
use crate::algorithm::word::{Amount, Intent, TokenWord};

/// A lane as it lies in the table.
///
/// All words but `confirmed` are written by the lane's holder only.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct LaneRecord {
    /// The number of the current operation, or of the last one. Only grows.
    pub(in crate::algorithm) operation: AtomicU64,
    pub(in crate::algorithm) intent: Atomic<Intent>,
    pub(in crate::algorithm) change: Atomic<Amount>,
    /// The total in the ledger that the operation changes, as it was before.
    pub(in crate::algorithm) total_before: AtomicU64,
    /// The tokens in the ledger before an operation with tokens.
    pub(in crate::algorithm) held_tokens_before: AtomicU64,
    /// The tokens of the row before an operation with tokens.
    pub(in crate::algorithm) tokens_before: Atomic<TokenWord>,
    _rest_of_the_line: [AtomicU64; 2],
    /// The highest operation that another lane has seen take effect. Other lanes write it, and only raise it. On a
    /// line of its own, since its writers are others.
    pub(in crate::algorithm) confirmed: AtomicU64,
    /// The calls of its frontends that were refused, by reason: for people only. Beside a word that is written seldom,
    /// so that a table at its cap refuses without any two lanes writing to one line.
    pub(in crate::algorithm) refusals: [AtomicU64; REASONS],
    _rest_of_the_last_line: [AtomicU64; 2],
}

/// Why a call was refused, in the order of a lane's totals.
pub(crate) const REFUSED_FOR: [&str; REASONS] = [
    "engine_requests",
    "engine_tokens",
    "table_requests",
    "table_tokens",
    "unavailable",
];

/// How many reasons there are for a refusal.
pub(crate) const REASONS: usize = 5;

impl LaneRecord {
    pub(crate) const FIELDS: [Field; 10] = fields!(LaneRecord {
        operation: [Field::number("operation")],
        intent: [Field::new("intent", |found| {
            match found.typed::<Intent>().operation() {
                Some((row, tag)) => format!("row {row}, {tag:?}"),
                None => "none".to_owned(),
            }
        })
        .using(Intent::BITS)],
        change: [Field::new("change", |found| format!(
            "{:?}",
            found.typed::<Amount>()
        ))],
        total_before: [Field::number("total before")],
        held_tokens_before: [Field::new("held tokens before", |found| found.signed())],
        tokens_before: [TokenWord::field("tokens before")],
        _rest_of_the_line: [Field::padding(2)],
        confirmed: [Field::number("confirmed")],
        refusals: [Field::new("refusals", |found| {
            format!("{} calls refused: {}", found.word, REFUSED_FOR[found.index])
        })
        .times(REASONS)],
        _rest_of_the_last_line: [Field::padding(2)],
    });
}

const _: () = assert!(words(&LaneRecord::FIELDS) * 8 == 128);

#[cfg(loom)]
impl LaneRecord {
    pub(crate) fn new() -> Self {
        use bytemuck::Zeroable;
        let zero = || AtomicU64::new(0);
        Self {
            operation: zero(),
            intent: Atomic::new(Intent::IDLE),
            change: Atomic::new(Amount::ZERO),
            total_before: zero(),
            held_tokens_before: zero(),
            tokens_before: Atomic::new(TokenWord::zeroed()),
            _rest_of_the_line: [zero(), zero()],
            confirmed: zero(),
            refusals: core::array::from_fn(|_| zero()),
            _rest_of_the_last_line: [zero(), zero()],
        }
    }

    /// As if it had come to that operation, without a sweep.
    pub(crate) fn skip_to(&self, operation: u64) {
        use crate::algorithm::primitive::Ordering;
        self.operation.store(operation, Ordering::Release);
    }
}
