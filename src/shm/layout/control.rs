//! The words that belong to no row and no lane. Each cache line has its own writers.
//!
//! ```text
//!  word
//!     0  anonymous tags             count 64
//!  1-15  padding
//!   ------------------------------------------------- a new cache line
//!    16  sequence                   publication 63 | under pressure 1
//! 17-31  padding
//!   ------------------------------------------------- a new cache line
//!    32  hints                      version 30 | limits are being changed 1 | the table has a cap 1 |
//!                                   engine slots in use 32
//!    33  arrivals                   engines ever put into slots 64
//!    34  publisher's pid            0 (32) | pid 32
//!    35  changer's pid              0 (32) | pid 32
//!    36  deployment's pid           0 (32) | pid 32
//!    37  total max_in_flight        0 (32) | cap 32; all ones: none
//!    38  total max_tokens           0 (32) | cap 32; all ones: none
//!    39  configured engines         fingerprint 64; 0: not known
//!    40  configured max_in_flight   cap + 1 64; all ones: none; 0: not known
//!    41  configured max_tokens      cap + 1 64; all ones: none; 0: not known
//! 42-47  padding
//! ```

use crate::algorithm::primitive::{Atomic, AtomicU64};
use crate::algorithm::record::{Field, Found, fields, words};
use crate::algorithm::rows::ScanHints;
use crate::algorithm::total::TotalCaps;

/// The words that belong to no row and no lane, as they lie in the table.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Control {
    /// The source of tags for words that are written without a lane.
    pub(crate) anonymous_tags: Line,
    /// The number of the last complete publication, and its pressure bit.
    pub(crate) sequence: Line,
    /// What a scan has to know of the engines as a whole.
    pub(crate) hints: Atomic<ScanHints>,
    /// How many engines were ever put into slots.
    pub(crate) arrivals: AtomicU64,
    /// The publisher as it sees itself: for people only.
    pub(crate) publisher_pid: AtomicU64,
    /// The process that changed the engines last, as it sees itself: for people only.
    pub(crate) changer_pid: AtomicU64,
    /// The deployment's process as it sees itself: for people only.
    pub(crate) deployment_pid: AtomicU64,
    /// The caps of the table as a whole.
    pub(crate) total_caps: TotalCaps,
    /// What it was last configured with.
    pub(crate) configured: Configured,
    _rest_of_the_line: [AtomicU64; 6],
}

/// A word on a cache line of its own.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Line {
    pub(crate) word: AtomicU64,
    _rest: [AtomicU64; 15],
}

/// The configuration that a table was created with, or was brought to by the last
/// [`Table::apply`](crate::Table::apply).
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Configured {
    /// A fingerprint of the engines. 0: not known.
    pub(crate) engines: AtomicU64,
    /// The caps of the table, each in the form of [`cap_to_bits`]. 0: not known.
    pub(crate) max_in_flight: AtomicU64,
    pub(crate) max_tokens: AtomicU64,
}

/// Returns a configured cap as it lies in the table: one more than the cap, or the greatest number for none.
pub(crate) fn cap_to_bits(cap: Option<u32>) -> u64 {
    cap.map_or(u64::MAX, |cap| u64::from(cap) + 1)
}

fn show_cap(found: Found<'_>) -> String {
    match found.word {
        u64::MAX => "none".to_owned(),
        0 => "not known".to_owned(),
        bits => (bits - 1).to_string(),
    }
}

impl Control {
    pub(crate) const FIELDS: [Field; 15] = fields!(Control {
        anonymous_tags: Line::fields(Field::number("anonymous tags")),
        sequence: Line::fields(Field::new("sequence", |found| {
            let pressure = match found.word & 1 {
                0 => "",
                _ => ", under pressure",
            };
            format!("publication {}{pressure}", found.word >> 1)
        })),
        hints: [ScanHints::FIELD],
        arrivals: [Field::new("arrivals", |found| {
            format!("{} engines ever put into slots", found.word)
        })],
        publisher_pid: [Field::number("publisher's pid").of_bits(32)],
        changer_pid: [Field::number("changer's pid").of_bits(32)],
        deployment_pid: [Field::number("deployment's pid").of_bits(32)],
        total_caps: TotalCaps::FIELDS,
        configured: Configured::FIELDS,
        _rest_of_the_line: [Field::padding(6)],
    });
}

impl Line {
    /// Returns the lines of the description of one of these, whose word is that field.
    const fn fields(word: Field) -> [Field; 2] {
        let _ = |Line { word: _, _rest: _ }: &Line| {};
        [word, Field::padding(15)]
    }
}

impl Configured {
    const FIELDS: [Field; 3] = fields!(Configured {
        engines: [Field::new("configured engines", |found| {
            format!("fingerprint {}", found.word)
        })],
        max_in_flight: [Field::new("configured max_in_flight", show_cap)],
        max_tokens: [Field::new("configured max_tokens", show_cap)],
    });
}

const _: () = assert!(words(&Control::FIELDS) * 8 == 384);
