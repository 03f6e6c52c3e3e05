//! A publication: statistics of the first engines, and of which engines they are.
//!
//! ```text
//!      word
//!         0  published at  ns of the monotonic clock 64
//!       1-2  own words     64
//!         3  rows          0 (51) | engines 13
//!         4  arrivals      engines ever put into slots 64
//!       5-7  padding
//!      8 ..  row           statistics of an engine: waiting 17 | running 17 | KV usage, of an f32: 30
//! 8 + rows ..              of which engine they are, and from when: generation 44 | in flight 20
//! ```
//!
//! The words after these, up to `8 + 2 * max_engines`, are of an earlier publication with more rows.

use crate::algorithm::record::{Field, Found, fields, words};
use crate::algorithm::word::MAX_REQUESTS;
use bytemuck::{Pod, Zeroable};
use std::fmt;
use std::mem::offset_of;

/// The words of a publication before its first row.
pub(crate) const HEAD_WORDS: usize = size_of::<HeadRecord>() / 8;
/// The words of an engine in a publication.
pub(super) const ROW_WORDS: usize = 2;

/// The words of a publication before its first row, as they lie in the table.
#[derive(Clone, Copy, Default, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct HeadRecord {
    pub(crate) published_at: u64,
    /// The publisher's own two words.
    pub(crate) own: [u64; 2],
    /// Of how many engines there are statistics.
    pub(crate) rows: u64,
    /// How many engines had ever been put into slots.
    pub(crate) arrivals: u64,
    pub(crate) _unused: [u64; 3],
}

impl HeadRecord {
    pub(crate) const PUBLISHED_AT: usize = offset_of!(Self, published_at) / 8;
    pub(crate) const OWN: usize = offset_of!(Self, own) / 8;
    pub(crate) const ROWS: usize = offset_of!(Self, rows) / 8;
    pub(crate) const ARRIVALS: usize = offset_of!(Self, arrivals) / 8;

    const FIELDS: [Field; 5] = fields!(HeadRecord {
        published_at: [Field::new("published at", |found| {
            format!("{} ns of the monotonic clock", found.word)
        })],
        own: [Field::new("own words", |found| {
            format!("the publisher's word {}: {}", found.index, found.word)
        })
        .times(2)],
        rows: [Field::new("rows", |found| format!("{} engines", found.word)).of_bits(13)],
        arrivals: [Field::new("arrivals", |found| {
            format!("{} engines ever put into slots", found.word)
        })],
        _unused: [Field::padding(3)],
    });
}

const _: () = assert!(words(&HeadRecord::FIELDS) == 8);

/// Returns the lines of a publication in a table of so many engines.
pub(super) fn fields(max_engines: usize) -> Vec<Field> {
    let rows = Field::new("row", show_row).times(max_engines * ROW_WORDS);
    HeadRecord::FIELDS.into_iter().chain([rows]).collect()
}

fn show_row(found: Found<'_>) -> String {
    let (index, rows) = (found.index as u64, found.record[HeadRecord::ROWS]);
    if index < rows {
        let stats = PackedEngineStats::from_word(found.word);
        return format!("engine {index}: {stats:?}");
    }
    match index - rows {
        engine if engine < rows => {
            format!("engine {engine}: {:?}", Origin::from_word(found.word))
        }
        _ => "of an earlier publication of more engines".to_owned(),
    }
}

/// An engine's statistics in eight bytes, as they lie in the table.
///
/// See [`Table::read_stats`](crate::Table::read_stats). The default is an idle engine.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Pod, Zeroable)]
#[repr(transparent)]
pub struct PackedEngineStats(u64);

/// The most requests that packed statistics count.
const MOST: u32 = (1 << 17) - 1;
/// The bits of an `f32` from 0 to 1: it has no sign, and its exponent's upper bit is not set.
const SHARE_BITS: u32 = 30;

impl PackedEngineStats {
    #[inline]
    pub(crate) fn from_word(word: u64) -> Self {
        Self(word)
    }

    #[inline]
    pub(crate) fn to_word(self) -> u64 {
        self.0
    }

    /// The KV usage must be a share.
    pub(crate) fn new(waiting: u32, running: u32, kv_usage: f32) -> Self {
        let [waiting, running] = [waiting, running].map(|n| u64::from(n.min(MOST)));
        // Minus zero has a sign.
        let kv_usage = u64::from(kv_usage.abs().to_bits());
        Self((waiting << (SHARE_BITS + 17)) | (running << SHARE_BITS) | kv_usage)
    }

    /// Requests in the engine's queue. 131,071 stands for that and more.
    #[inline]
    pub fn waiting(self) -> u32 {
        (self.0 >> (SHARE_BITS + 17)) as u32
    }

    /// Requests in the engine's batch. 131,071 stands for that and more.
    #[inline]
    pub fn running(self) -> u32 {
        (self.0 >> SHARE_BITS) as u32 & MOST
    }

    /// The share of the engine's KV cache that is in use, from 0 to 1.
    #[inline]
    pub fn kv_usage(self) -> f32 {
        self.stored_kv_usage().min(1.0)
    }

    /// The KV usage as its bits say it. In a damaged file that is up to 2.
    #[inline]
    pub(crate) fn stored_kv_usage(self) -> f32 {
        f32::from_bits(self.0 as u32 & ((1 << SHARE_BITS) - 1))
    }
}

impl fmt::Debug for PackedEngineStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PackedEngineStats")
            .field("waiting", &self.waiting())
            .field("running", &self.running())
            .field("kv_usage", &self.kv_usage())
            .finish()
    }
}

/// Of which engine the statistics in a row are, and what was in flight on it when they were made.
#[derive(Clone, Copy)]
pub(crate) struct Origin(u64);

impl Origin {
    pub(crate) fn from_word(word: u64) -> Self {
        Self(word)
    }

    pub(crate) fn to_word(self) -> u64 {
        self.0
    }

    pub(crate) fn of(generation: u64, in_flight: u32) -> Self {
        Self((generation << 20) | u64::from(in_flight.min(MAX_REQUESTS)))
    }

    pub(crate) fn in_flight(self) -> u32 {
        self.0 as u32 & MAX_REQUESTS
    }

    pub(crate) fn is_of(self, generation: u64) -> bool {
        self.0 >> 20 == generation & (u64::MAX >> 20)
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (generation, in_flight) = (self.0 >> 20, self.in_flight());
        write!(
            f,
            "generation {generation}, {in_flight} in flight when sampled"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packed_statistics_say_what_was_packed(
            waiting: u32,
            running: u32,
            kv_usage in 0.0_f32..=1.0,
        ) {
            let packed = PackedEngineStats::new(waiting, running, kv_usage);
            prop_assert_eq!(packed.waiting(), waiting.min(131_071));
            prop_assert_eq!(packed.running(), running.min(131_071));
            prop_assert_eq!(packed.kv_usage(), kv_usage);
        }

        #[test]
        fn f2_damaged_statistics_have_a_usage_that_is_a_share(bits: u64) {
            prop_assert!((0.0..=1.0).contains(&PackedEngineStats(bits).kv_usage()));
        }
    }

    #[test]
    fn the_ends_of_the_range_are_packed() {
        for kv_usage in [0.0, -0.0, f32::MIN_POSITIVE, 1.0] {
            let packed = PackedEngineStats::new(0, 0, kv_usage);
            assert_eq!(packed.kv_usage(), kv_usage);
        }
        assert_eq!(PackedEngineStats::default().kv_usage(), 0.0);
    }
}
