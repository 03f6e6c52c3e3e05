//! Publishing the engines' statistics.

use crate::algorithm::word::RowState;
use crate::error::{Error, Result};
use crate::publication::record::{self, EngineStats};
use crate::shm::clock;
use crate::shm::layout::PUBLISHER_LOCK;
use crate::table::Table;
use crate::table::role::Role;
use std::fmt;

/// The right to publish statistics to a table; one process at a time has it.
///
/// The right goes back when this is dropped or its process dies. Of a publication in which the process dies
/// no reader sees anything.
#[must_use = "dropping a publisher lets another process take its place"]
pub struct Publisher {
    table: Table,
    role: Role,
}

impl Table {
    /// Makes this process the publisher, if no living process is.
    ///
    /// # Errors
    /// [`Error::PublisherHeld`], [`Error::ReadOnly`], [`Error::Io`].
    pub fn publisher(&self) -> Result<Publisher> {
        let holder = &self.mapping().control().publisher_pid;
        let role = Role::take(self, PUBLISHER_LOCK, holder, "locking the publications of")?;
        Ok(Publisher {
            table: self.clone(),
            role: role.map_err(|pid| Error::PublisherHeld { pid })?,
        })
    }
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher")
            .field("table", &self.table)
            .finish_non_exhaustive()
    }
}

impl Publisher {
    /// Publishes the statistics of the first engines, in the order of their numbers. Those of the
    /// rest, and of slots that no engine has, count as absent.
    ///
    /// Readers see all of it or nothing, and do not wait. No system call; costs a few nanoseconds an
    /// engine.
    ///
    /// ```
    /// # fn main() -> Result<(), headcount::Error> {
    /// use headcount::{EngineStats, Table};
    /// let table = Table::options().engines(2).memfd()?;
    /// let mut publisher = table.publisher()?;
    /// let busy = EngineStats::new().waiting(3).running(20).kv_usage(0.93);
    /// publisher.publish(&[busy, EngineStats::new()])?;
    /// assert_eq!(table.view().engines[0].stats.map(|stats| stats.waiting), Some(3));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::TooManyStats`], [`Error::KvUsage`], [`Error::Forked`]; nothing is published then.
    pub fn publish(&mut self, stats: &[EngineStats]) -> Result<()> {
        self.publish_with(stats, [0, 0])
    }

    /// The same, with two words of the publisher's own: a wave number and a running flag, say. They
    /// are seen with the statistics or not at all.
    ///
    /// # Errors
    /// As [`publish`](Self::publish).
    pub fn publish_with(&mut self, stats: &[EngineStats], words: [u64; 2]) -> Result<()> {
        if !self.role.is_ours() {
            return Err(Error::Forked);
        }
        let engines = self.table.engines();
        let there = |&slot: &usize| {
            let word = engines.word(slot);
            word.state() != RowState::Removed || word.value() > 0
        };
        if let Some(last) = stats.len().checked_sub(1)
            && (last >= engines.in_use() || !(last..engines.in_use()).any(|slot| there(&slot)))
        {
            return Err(Error::TooManyStats {
                found: stats.len(),
                engines: (0..engines.in_use())
                    .rfind(there)
                    .map_or(0, |slot| slot + 1),
            });
        }
        if let Some((engine, bad)) =
            (stats.iter().enumerate()).find(|(_, stats)| !record::is_share(stats.kv_usage))
        {
            return Err(Error::KvUsage {
                engine,
                found: bad.kv_usage,
            });
        }
        let latch = self.table.mapping().latch();
        record::publish(latch, &engines, clock::now(), words, stats);
        Ok(())
    }
}
