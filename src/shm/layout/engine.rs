//! An engine slot: the name of the engine that has it.
//!
//! ```text
//!  word
//!     0  generation        engines that the slot has had, times two: 64; odd while the name changes
//!     1  length of name    bytes: 64
//!  2-30  name              bytes, then zeros
//!    31  admitted before   requests that engines in this slot had admitted before this one: 64
//! ```

use crate::algorithm::name::Name;
use crate::algorithm::primitive::AtomicU64;
use crate::algorithm::record::{Field, fields, words};

/// The longest engine name in bytes.
pub(crate) const MAX_NAME: usize = NAME_WORDS * 8;
/// The words of an engine's name.
const NAME_WORDS: usize = 29;

/// An engine slot as it lies in the table.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct EngineRecord {
    /// Its generation counts the engines that this slot has had.
    pub(crate) name: Name<NAME_WORDS>,
    /// The requests that engines in this slot had admitted before this one.
    pub(crate) admitted_before: AtomicU64,
}

impl EngineRecord {
    pub(crate) const FIELDS: [Field; 4] = fields!(EngineRecord {
        name: Name::<NAME_WORDS>::FIELDS,
        admitted_before: [Field::new("admitted before", |found| {
            format!("{} requests", found.word)
        })],
    });
}

const _: () = assert!(words(&EngineRecord::FIELDS) * 8 == 256);
