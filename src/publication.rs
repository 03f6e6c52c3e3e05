//! What a publication says, and where in its words it says it.
//!
//! ```text
//! head   published at | word | word | rows | under pressure | 0 | 0 | 0
//! row    waiting 32, running 32 | KV usage 32, 0 (32) | generation | in flight when sampled
//! ```

use crate::algorithm::latch::{Copy, Latch, Unread};
use crate::engines::Engines;
use crate::layout::{PUBLICATION_HEAD, PUBLICATION_ROW};

/// What an engine says of itself.
///
/// ```
/// use headcount::EngineStats;
/// let stats = EngineStats { waiting: 3, running: 20, kv_usage: 0.41, ..Default::default() };
/// ```
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct EngineStats {
    /// Requests in its queue.
    pub waiting: u32,
    /// Requests in its batch.
    pub running: u32,
    /// The share of its KV cache that is in use, from 0 to 1.
    pub kv_usage: f32,
    /// What the table counted as in flight on it when it was sampled, for
    /// [`Policy::Open`](crate::Policy::Open). `None`: as counted when this is published.
    pub in_flight: Option<u32>,
}

impl EngineStats {
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

/// A publication that is being read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading<'a> {
    copy: Copy<'a>,
}

impl<'a> Reading<'a> {
    /// How old it is in nanoseconds. `None` if it is of another life of the machine: made later than
    /// now, by more than the coarse clock may lag.
    #[inline]
    pub(crate) fn age(&self, now: u64) -> Option<u64> {
        const LAG: u64 = 1_000_000_000;
        // When it was made, on the monotonic clock.
        let published_at = self.copy.word(0);
        (published_at <= now.saturating_add(LAG)).then(|| now.saturating_sub(published_at))
    }

    /// The publisher's own two words.
    pub(crate) fn words(&self) -> [u64; 2] {
        [self.copy.word(1), self.copy.word(2)]
    }

    /// Whether it is there, which it is.
    #[inline]
    pub(crate) fn exists(&self) -> bool {
        true
    }

    /// Whether any engine has a queue and little cache left.
    #[inline]
    pub(crate) fn under_pressure(&self) -> bool {
        self.copy.word(4) != 0
    }

    /// The statistics of an engine, unless they are those of an engine that was in its slot before.
    #[inline]
    pub(crate) fn stats(&self, engine: usize, engines: &Engines<'_>) -> Option<EngineStats> {
        if engine as u64 >= self.copy.word(3) {
            return None;
        }
        let row = PUBLICATION_HEAD + engine * PUBLICATION_ROW;
        if self.copy.word(row + 2) != engines.generation(engine) {
            return None;
        }
        let requests = self.copy.word(row);
        let kv_usage = f32::from_bits(self.copy.word(row + 1) as u32);
        // Not from `publish`, then; a damaged file must not decide who is loaded.
        if !is_share(kv_usage) {
            return None;
        }
        Some(EngineStats {
            waiting: (requests >> 32) as u32,
            running: requests as u32,
            kv_usage,
            in_flight: Some(self.copy.word(row + 3) as u32),
        })
    }
}

/// Calls `look` on the last complete publication; see [`Latch::read`].
#[inline]
pub(crate) fn read<'a, T>(
    latch: &Latch<'a>,
    mut look: impl FnMut(Reading<'a>) -> T,
) -> Result<T, Unread> {
    latch.read(|copy| look(Reading { copy }))
}

/// Publishes checked statistics. `in_flight` says what is counted on an engine now.
pub(crate) fn publish(
    latch: &Latch<'_>,
    engines: &Engines<'_>,
    published_at: u64,
    own: [u64; 2],
    stats: &[EngineStats],
) {
    let under_pressure = (stats.iter()).any(|s| s.waiting > 0 && s.pressure() > 0.0);
    let head: [u64; PUBLICATION_HEAD] = [
        published_at,
        own[0],
        own[1],
        stats.len() as u64,
        under_pressure.into(),
        0,
        0,
        0,
    ];
    let rows = stats.iter().enumerate().flat_map(|(engine, stats)| {
        let in_flight = stats
            .in_flight
            .unwrap_or_else(|| engines.word(engine).value());
        let row: [u64; PUBLICATION_ROW] = [
            (u64::from(stats.waiting) << 32) | u64::from(stats.running),
            stats.kv_usage.to_bits().into(),
            engines.generation(engine),
            in_flight.into(),
        ];
        row
    });
    latch.publish(head.into_iter().chain(rows));
}
