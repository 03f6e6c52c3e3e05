//! How a publication is written and read; where its words lie is in [`crate::shm::layout::publication`].
//!
//! Its pressure bit says whether any engine is under pressure: has a queue, and little cache left.

use crate::algorithm::primitive::{AtomicU64, Ordering};
use crate::algorithm::seqlatch::{self, SeqLatch, Unread};
use crate::shm::layout::publication::{HEAD_WORDS, HeadRecord, Origin, PackedEngineStats};
use crate::table::engines::Engines;

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
    pub(crate) fn pressure(&self) -> f32 {
        6.0 * (self.kv_usage - 0.5).max(0.0)
    }
}

/// Whether a number is a share of something: finite, and from 0 to 1.
pub(crate) fn is_share(number: f32) -> bool {
    (0.0..=1.0).contains(&number)
}

/// A publication that is being read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading<'a>(&'a seqlatch::Buffer<'a, HEAD_WORDS>);

impl<'a> Reading<'a> {
    #[inline]
    fn head(&self, index: usize) -> u64 {
        // Relaxed: as `Buffer` says.
        self.0.head[index].load(Ordering::Relaxed)
    }

    /// A word of a row: first come the statistics of all rows, then their origins.
    #[inline]
    fn row(&self, index: usize) -> u64 {
        // Relaxed: as `Buffer` says.
        let word = self.0.rest.get(index);
        word.map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// When it was made, in nanoseconds of the monotonic clock.
    #[inline]
    pub(crate) fn published_at(&self) -> u64 {
        self.head(HeadRecord::PUBLISHED_AT)
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
        [self.head(HeadRecord::OWN), self.head(HeadRecord::OWN + 1)]
    }

    /// Of how many engines there are statistics.
    #[inline]
    pub(crate) fn rows(&self) -> usize {
        self.head(HeadRecord::ROWS) as usize
    }

    /// How many engines had ever been put into slots.
    #[inline]
    pub(crate) fn arrivals(&self) -> u64 {
        self.head(HeadRecord::ARRIVALS)
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
        PackedEngineStats::from_word(self.row(engine))
    }

    /// The statistics of an engine, unless they are those of an engine that was in its slot before.
    #[inline]
    pub(crate) fn stats(&self, engine: usize, engines: &Engines<'_>) -> Option<EngineStats> {
        let rows = self.rows();
        if engine >= rows {
            return None;
        }
        let origin = Origin::from_word(self.row(rows.saturating_add(engine)));
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
    latch: &'a SeqLatch<'_, HEAD_WORDS>,
    mut look: impl FnMut(Reading<'a>) -> T,
) -> Result<T, Unread> {
    latch.read(|copy| look(Reading(copy)))
}

/// Calls `look` on the last complete publication, once; see [`SeqLatch::try_read`].
#[inline(always)] // as is that
pub(crate) fn try_read<'a, T>(
    latch: &'a SeqLatch<'_, HEAD_WORDS>,
    look: impl FnOnce(Reading<'a>) -> T,
) -> Result<T, Unread> {
    latch.try_read(|copy| look(Reading(copy)))
}

/// Publishes checked statistics. `in_flight` returns the present count of an engine.
pub(crate) fn publish(
    latch: &SeqLatch<'_, HEAD_WORDS>,
    engines: &Engines<'_>,
    published_at: u64,
    own: [u64; 2],
    stats: &[EngineStats],
) {
    // Before the generations: an engine that arrives meanwhile must not count as one of these.
    let arrivals = engines.arrivals();
    let head: [u64; HEAD_WORDS] = bytemuck::cast(HeadRecord {
        published_at,
        own,
        rows: stats.len() as u64,
        arrivals,
        ..HeadRecord::default()
    });
    let packed = stats.iter().map(|stats| pack(stats).to_word());
    let origins = stats.iter().enumerate().map(|(engine, stats)| {
        let in_flight = stats
            .in_flight
            .unwrap_or_else(|| engines.word(engine).value());
        Origin::of(engines.generation(engine), in_flight).to_word()
    });
    let under_pressure = (stats.iter()).any(|s| s.waiting > 0 && s.pressure() > 0.0);
    latch.publish(
        head.into_iter().chain(packed).chain(origins),
        under_pressure,
    );
}

/// The KV usage must be a share.
fn pack(stats: &EngineStats) -> PackedEngineStats {
    PackedEngineStats::new(stats.waiting, stats.running, stats.kv_usage)
}
