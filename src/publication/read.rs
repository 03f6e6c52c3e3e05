//! Reading the snapshot as fast as it can be read.

use crate::algorithm::primitive::{AtomicU64, Ordering};
use crate::algorithm::seqlatch::Unread;
use crate::publication::record::{self, Reading};
use crate::shm::layout::publication::PackedEngineStats;
use crate::table::Table;
use std::time::Duration;

/// The head of a publication: all of it but the statistics; from [`Table::read_stats`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct PublicationHead {
    /// Of how many engines, the first ones, statistics were published.
    pub engines: usize,
    /// The publisher's own two words.
    pub words: [u64; 2],
    /// In nanoseconds: to make a duration of it costs more than the read.
    published_at: u64,
}

impl PublicationHead {
    /// Returns when the statistics were published, on the host's monotonic clock.
    pub fn published_at(&self) -> Duration {
        Duration::from_nanos(self.published_at)
    }
}

impl Table {
    /// Reads the snapshot into `into`, engine by engine: all of one publication. Engines of which
    /// nothing was published, or that came after it, are as idle as the default.
    ///
    /// No system call, no allocation, no wait: costs two to three times as much as to load a word for
    /// each engine.
    ///
    /// ```
    /// # fn main() -> Result<(), headcount::Error> {
    /// use headcount::{EngineStats, PackedEngineStats, Table};
    /// let table = Table::options().engines(2).memfd()?;
    /// let mut stats = [PackedEngineStats::default(); 2];
    /// assert!(table.read_stats(&mut stats).is_none(), "nothing was published yet");
    ///
    /// let mut publisher = table.publisher()?;
    /// publisher.publish_with(&[EngineStats::new().running(7); 2], [42, 0])?;
    /// let head = table.read_stats(&mut stats).expect("one publication");
    /// assert_eq!((head.engines, head.words[0], stats[1].running()), (2, 42, 7));
    /// # Ok(()) }
    /// ```
    ///
    /// `None` if nothing was published yet, or if publications followed each other so fast that none
    /// could be read; `into` says nothing then.
    #[inline]
    pub fn read_stats(&self, into: &mut [PackedEngineStats]) -> Option<PublicationHead> {
        let latch = self.mapping().latch();
        match record::try_read(latch, |reading| self.copy_stats(reading, into)) {
            Ok(read) => Some(read),
            Err(Unread::Empty) => None,
            Err(Unread::Overtaken) => self.read_stats_again(into),
        }
    }

    #[cold]
    fn read_stats_again(&self, into: &mut [PackedEngineStats]) -> Option<PublicationHead> {
        let latch = self.mapping().latch();
        record::read(latch, |reading| self.copy_stats(reading, into)).ok()
    }

    #[inline(always)] // so that the common read has nothing to pass on
    fn copy_stats(&self, reading: Reading<'_>, into: &mut [PackedEngineStats]) -> PublicationHead {
        let engines = reading.rows();
        let published = reading.first_packed(engines.min(into.len()));
        let (to_eights, to_rest) = into[..published.len()].as_chunks_mut::<8>();
        let (from_eights, from_rest) = published.as_chunks::<8>();
        // In eights, for to count costs as much as to copy.
        for (to, from) in to_eights.iter_mut().zip(from_eights) {
            copy_words(to, from);
        }
        copy_words(to_rest, from_rest);
        // After the statistics, which are of the engines that are there if none has arrived.
        let none_arrived = reading.arrivals() == self.engines().arrivals();
        if published.len() < into.len() || !none_arrived {
            self.leave_out_newcomers(reading, into);
        }
        PublicationHead {
            engines,
            words: reading.words(),
            published_at: reading.published_at(),
        }
    }

    #[cold]
    fn leave_out_newcomers(&self, reading: Reading<'_>, into: &mut [PackedEngineStats]) {
        let engines = self.engines();
        for (engine, stats) in into.iter_mut().enumerate() {
            if reading.stats(engine, &engines).is_none() {
                *stats = PackedEngineStats::default();
            }
        }
    }
}

#[inline]
fn copy_words(to: &mut [PackedEngineStats], from: &[AtomicU64]) {
    for (to, from) in to.iter_mut().zip(from) {
        // Relaxed: as `Buffer` says.
        *to = PackedEngineStats::from_word(from.load(Ordering::Relaxed));
    }
}
