//! Reading the snapshot as fast as it can be read.

use crate::publication::{self, PackedStats, Reading};
use crate::table::Table;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What [`Table::read_stats`] says beside the statistics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct StatsRead {
    /// Of how many engines, the first ones, statistics were published.
    pub engines: usize,
    /// The publisher's own two words.
    pub words: [u64; 2],
    /// In nanoseconds: to make a duration of it costs more than the read.
    published_at: u64,
}

impl StatsRead {
    /// When they were published, on the host's monotonic clock.
    pub fn published_at(&self) -> Duration {
        Duration::from_nanos(self.published_at)
    }
}

impl Table {
    /// Reads the snapshot into `into`, engine by engine: all of one publication. Engines of which
    /// nothing was published, or that came after it, are as idle as the default.
    ///
    /// No system call, no allocation, no wait: costs little more than to load a word for each engine.
    /// `None` if nothing was published yet, or if publications followed each other so fast that none
    /// could be read; `into` says nothing then.
    #[inline]
    pub fn read_stats(&self, into: &mut [PackedStats]) -> Option<StatsRead> {
        let engines = self.engines();
        let copy = |reading: Reading<'_>| {
            let published = reading.all_packed(into.len());
            for (to, from) in into.iter_mut().zip(published) {
                // Relaxed: as `Copy` says.
                *to = PackedStats::from_word(from.load(Ordering::Relaxed));
            }
            if published.len() < into.len() {
                into[published.len()..].fill(PackedStats::default());
            }
            // After the statistics, which are of the engines that are there if none has arrived.
            if reading.arrivals() != engines.arrivals() {
                self.leave_out_newcomers(&reading, into);
            }
            StatsRead {
                engines: reading.rows(),
                words: reading.words(),
                published_at: reading.published_at(),
            }
        };
        publication::read(&self.mapping().latch(), copy).ok()
    }

    #[cold]
    fn leave_out_newcomers(&self, reading: &Reading<'_>, into: &mut [PackedStats]) {
        let engines = self.engines();
        for (engine, stats) in into.iter_mut().enumerate() {
            if reading.stats(engine, &engines).is_none() {
                *stats = PackedStats::default();
            }
        }
    }
}
