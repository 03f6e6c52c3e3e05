//! K1 to K4: processes are killed, stopped and forked at any moment, and the counts stay exact.
//!
//! Rules: docs/contract.md.

mod children;
mod kills;
mod liveness;
mod reaping;

use headcount_tests::{Actor, TestTable, Traced, reaper_half_way};

/// A table with a dead frontend, and a reaper that has stopped between taking its lock and all else.
pub(crate) fn with_a_reaper_half_way() -> (TestTable, Actor, Traced) {
    let table = TestTable::with_engines(2);
    let (reaper, stopped) = reaper_half_way(&table);
    (table, reaper, stopped)
}
