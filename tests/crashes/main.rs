//! K1 to K4: processes are killed, stopped and forked at any moment, and the counts stay exact.
//!
//! Rules: docs/contract.md.

mod children;
mod kills;
mod liveness;
mod reaping;

use headcount_tests::{Actor, Task, TestTable, Traced};

/// A table with a dead frontend, and a reaper that has stopped between taking its lock and all else.
pub(crate) fn with_a_reaper_half_way() -> (TestTable, Actor, Traced) {
    let table = TestTable::with_engines(2);
    let (reaper, stopped) = reaper_half_way(&table);
    (table, reaper, stopped)
}

/// The same in a table of two engines in which no frontend has joined yet.
pub(crate) fn reaper_half_way(table: &TestTable) -> (Actor, Traced) {
    let mut reaper = Actor::opened(table.path());
    let mut dead = Actor::joined(table.path());
    assert_eq!(dead.burst(7), [4, 3]);
    dead.kill();
    let stopped = Traced::after_its_next_lock(&mut reaper, &Task::Reap);
    (reaper, stopped)
}
