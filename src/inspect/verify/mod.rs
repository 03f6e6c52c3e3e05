//! Whether a table is consistent: every ledger against every count, and the file against itself.
//!
//! A running table changes while it is looked at, so each thing is looked at by itself, at a moment
//! at which it can be seen to stand still; see [`mod@steady`]. What never stands still for long enough
//! is said to be busy, not inconsistent.

mod counts;
mod engines;
mod fault;
mod header;
mod publication;
mod queue;
mod slots;
mod steady;
mod unused;

pub use fault::{Fault, FaultKind};

use crate::error::Result;
use crate::table::Table;
use steady::{Look, steady};

/// What [`Table::verify`] has found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Verification {
    /// What is inconsistent.
    pub faults: Vec<Fault>,
    /// What could not be checked because it never stood still: "the count of engine 3", say. Look
    /// again when there is less traffic.
    pub busy: Vec<String>,
    /// How many counts were compared with the ledgers: one for each engine that the table has room
    /// for, the table's own, and those of its queue: of all requests that wait, and of each class.
    pub counts: usize,
    /// How many ledgers were added up for each of them: one for each lane of each frontend that the
    /// table has room for.
    pub ledgers: usize,
}

impl Verification {
    /// Whether nothing is inconsistent. What was busy may be.
    pub fn is_consistent(&self) -> bool {
        self.faults.is_empty()
    }

    fn note(&mut self, what: impl FnOnce() -> String, look: Look<Fault>) {
        match look {
            Look::Fine => {}
            Look::Wrong(fault) => self.faults.push(fault),
            Look::Moved => self.busy.push(what()),
        }
    }
}

impl Table {
    /// Recounts every ledger against every count, and checks the header, the file, all that the table says of
    /// engines, frontends, waiting requests and statistics, and that the bits which nothing uses are zero.
    ///
    /// Reads only, and disturbs no other process; a table that was opened for reading will do. Frontends may run
    /// at full speed, die and be reaped meanwhile, and none of this is taken for an inconsistency: a
    /// fault is reported only if it was seen several times over, at moments at which nothing else
    /// could explain it. A dead frontend that was not reaped yet is none.
    ///
    /// Takes milliseconds for a table of the default size; for the largest, some seconds. What does
    /// not stand still long enough to be looked at costs some ten milliseconds, and is in
    /// [`busy`](Verification::busy).
    ///
    /// ```
    /// # fn main() -> Result<(), headcount::Error> {
    /// let table = headcount::Table::options().engines(2).memfd()?;
    /// let found = table.verify()?;
    /// assert!(found.is_consistent(), "{:?}", found.faults);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the file cannot be read any more.
    pub fn verify(&self) -> Result<Verification> {
        let mut found = Verification::default();
        self.verify_header(&mut found)?;
        self.verify_unused(&mut found)?;
        self.verify_engines(&mut found);
        self.verify_slots(&mut found);
        self.verify_queue(&mut found);
        self.verify_publication(&mut found);
        self.verify_counts(&mut found);
        Ok(found)
    }
}
