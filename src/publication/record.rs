//! Publications: statistics of engines, and their words.
//!
//! ```text
//! head     published at | word | word | rows | arrivals | 0 | 0 | 0
//! stats    waiting 17, running 17, KV usage 30     a word for each row
//! origins  generation 44, in flight 20             a word for each row: of which engine, and of when
//! ```
//!
//! Its pressure bit says whether any engine is under pressure: has a queue, and little cache left.

use crate::algorithm::primitive::{AtomicU64, Ordering};
use crate::algorithm::seqlatch::{self, SeqLatch, Unread};
use crate::algorithm::word::MAX_REQUESTS;
use crate::shm::layout::PUBLICATION_HEAD;
use crate::table::engines::Engines;
use bytemuck::{Pod, Zeroable};
use std::fmt;

/// The statistics of one engine.
///
/// ```
/// use headcount::EngineStats;
/// let stats = EngineStats::new().waiting(3).running(20).kv_usage(0.41);
/// ```
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct EngineStats {
    /// Requests in its queue. 131,071 stands for that and more.
    pub waiting: u32,
    /// Requests in its batch. 131,071 stands for that and more.
    pub running: u32,
    /// The share of its KV cache that is in use, from 0 to 1.
    pub kv_usage: f32,
    /// The table's count of requests in flight on it when it was sampled, for
    /// [`Policy::Open`](crate::Policy::Open). `None`: as counted when this is published.
    pub in_flight: Option<u32>,
}

impl EngineStats {
    /// The statistics of an idle engine.
    pub const fn new() -> Self {
        Self {
            waiting: 0,
            running: 0,
            kv_usage: 0.0,
            in_flight: None,
        }
    }

    /// Sets the requests in its queue.
    pub const fn waiting(mut self, requests: u32) -> Self {
        self.waiting = requests;
        self
    }

    /// Sets the requests in its batch.
    pub const fn running(mut self, requests: u32) -> Self {
        self.running = requests;
        self
    }

    /// Sets the share of its KV cache that is in use, from 0 to 1. Another number is refused when it is
    /// published.
    pub const fn kv_usage(mut self, share: f32) -> Self {
        self.kv_usage = share;
        self
    }

    /// Sets the table's count of requests in flight on it when it was sampled.
    pub const fn in_flight(mut self, requests: u32) -> Self {
        self.in_flight = Some(requests);
        self
    }

    /// How much slower its queue drains for want of cache.
    #[inline]
    pub(crate) fn pressure(&self) -> f64 {
        6.0 * (f64::from(self.kv_usage) - 0.5).max(0.0)
    }
}

/// Whether a number is a share of something: finite, and from 0 to 1.
pub(crate) fn is_share(number: f32) -> bool {
    (0.0..=1.0).contains(&number)
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

    /// The KV usage must be a share.
    fn of(stats: &EngineStats) -> Self {
        let [waiting, running] = [stats.waiting, stats.running].map(|n| u64::from(n.min(MOST)));
        // Minus zero has a sign.
        let kv_usage = u64::from(stats.kv_usage.abs().to_bits());
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

/// Which engine the statistics are of, and how many requests were in flight on it when they were made.
#[derive(Clone, Copy)]
pub(crate) struct Origin(u64);

impl Origin {
    pub(crate) fn from_word(word: u64) -> Self {
        Self(word)
    }

    fn of(generation: u64, in_flight: u32) -> Self {
        Self((generation << 20) | u64::from(in_flight.min(MAX_REQUESTS)))
    }

    fn in_flight(self) -> u32 {
        self.0 as u32 & MAX_REQUESTS
    }

    fn is_of(self, generation: u64) -> bool {
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

/// A publication that is being read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading<'a>(&'a seqlatch::Buffer<'a, PUBLICATION_HEAD>);

impl<'a> Reading<'a> {
    #[inline]
    fn head(&self, index: usize) -> u64 {
        // Relaxed: as `Copy` says.
        self.0.head[index].load(Ordering::Relaxed)
    }

    /// A word of a row: first come the statistics of all rows, then their origins.
    #[inline]
    fn row(&self, index: usize) -> u64 {
        // Relaxed: as `Copy` says.
        let word = self.0.rest.get(index);
        word.map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// When it was made, in nanoseconds of the monotonic clock.
    #[inline]
    pub(crate) fn published_at(&self) -> u64 {
        self.head(0)
    }

    /// How old it is in nanoseconds. `None` if it is of another life of the machine: made later than
    /// now, by more than the coarse clock may lag.
    #[inline]
    pub(crate) fn age(&self, now: u64) -> Option<u64> {
        const LAG: u64 = 1_000_000_000;
        let published_at = self.published_at();
        (published_at <= now.saturating_add(LAG)).then(|| now.saturating_sub(published_at))
    }

    /// The publisher's own two words.
    #[inline]
    pub(crate) fn words(&self) -> [u64; 2] {
        [self.head(1), self.head(2)]
    }

    /// Of how many engines there are statistics.
    #[inline]
    pub(crate) fn rows(&self) -> usize {
        self.head(3) as usize
    }

    /// How many engines had ever been put into slots.
    #[inline]
    pub(crate) fn arrivals(&self) -> u64 {
        self.head(4)
    }

    /// The words of the packed statistics of the first `count` engines, or of as many as there can be.
    #[inline]
    pub(crate) fn first_packed(&self, count: usize) -> &'a [AtomicU64] {
        let words = self.0.rest;
        &words[..count.min(words.len())]
    }

    /// The statistics of whichever engine was in this slot.
    #[inline]
    pub(crate) fn packed(&self, engine: usize) -> PackedEngineStats {
        PackedEngineStats(self.row(engine))
    }

    /// The statistics of an engine, unless they are those of an engine that was in its slot before.
    #[inline]
    pub(crate) fn stats(&self, engine: usize, engines: &Engines<'_>) -> Option<EngineStats> {
        let rows = self.rows();
        if engine >= rows {
            return None;
        }
        let origin = Origin(self.row(rows.saturating_add(engine)));
        if !origin.is_of(engines.generation(engine)) {
            return None;
        }
        let packed = self.packed(engine);
        Some(EngineStats {
            waiting: packed.waiting(),
            running: packed.running(),
            kv_usage: packed.kv_usage(),
            in_flight: Some(origin.in_flight()),
        })
    }
}

/// Calls `look` on the last complete publication; see [`SeqLatch::read`].
pub(crate) fn read<'a, T>(
    latch: &'a SeqLatch<'_, PUBLICATION_HEAD>,
    mut look: impl FnMut(Reading<'a>) -> T,
) -> Result<T, Unread> {
    latch.read(|copy| look(Reading(copy)))
}

/// Calls `look` on the last complete publication, once; see [`SeqLatch::try_read`].
#[inline(always)] // as is that
pub(crate) fn try_read<'a, T>(
    latch: &'a SeqLatch<'_, PUBLICATION_HEAD>,
    look: impl FnOnce(Reading<'a>) -> T,
) -> Result<T, Unread> {
    latch.try_read(|copy| look(Reading(copy)))
}

/// Publishes checked statistics. `in_flight` returns the present count of an engine.
pub(crate) fn publish(
    latch: &SeqLatch<'_, PUBLICATION_HEAD>,
    engines: &Engines<'_>,
    published_at: u64,
    own: [u64; 2],
    stats: &[EngineStats],
) {
    // Before the generations: an engine that arrives meanwhile must not count as one of these.
    let arrivals = engines.arrivals();
    let rows = stats.len() as u64;
    let head: [u64; PUBLICATION_HEAD] = [published_at, own[0], own[1], rows, arrivals, 0, 0, 0];
    let packed = stats.iter().map(|stats| PackedEngineStats::of(stats).0);
    let origins = stats.iter().enumerate().map(|(engine, stats)| {
        let in_flight = stats
            .in_flight
            .unwrap_or_else(|| engines.word(engine).value());
        Origin::of(engines.generation(engine), in_flight).0
    });
    let under_pressure = (stats.iter()).any(|s| s.waiting > 0 && s.pressure() > 0.0);
    latch.publish(
        head.into_iter().chain(packed).chain(origins),
        under_pressure,
    );
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
            let stats = EngineStats { waiting, running, kv_usage, in_flight: None };
            let packed = PackedEngineStats::of(&stats);
            prop_assert_eq!(packed.waiting(), waiting.min(131_071));
            prop_assert_eq!(packed.running(), running.min(131_071));
            prop_assert_eq!(packed.kv_usage(), kv_usage);
        }

        #[test]
        fn f2_damaged_statistics_have_a_usage_that_is_a_share(bits: u64) {
            prop_assert!(is_share(PackedEngineStats(bits).kv_usage()));
        }
    }

    #[test]
    fn the_ends_of_the_range_are_packed() {
        for kv_usage in [0.0, -0.0, f32::MIN_POSITIVE, 1.0] {
            let packed = PackedEngineStats::of(&EngineStats {
                kv_usage,
                ..Default::default()
            });
            assert_eq!(packed.kv_usage(), kv_usage);
        }
        assert_eq!(PackedEngineStats::default().kv_usage(), 0.0);
    }
}
