//! A table in use, with real frontends.

use headcount::Table;
use headcount_tests::{Actor, TestTable, spawn_all};
use std::path::Path;

/// A table of three engines; the first frontend holds 6 requests of 100 tokens, the second 3.
pub(crate) struct Scene {
    pub(crate) table: TestTable,
    pub(crate) frontends: Vec<Actor>,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let engine = headcount::Engine::named;
        let options = Table::options()
            .engine(engine("gpu-0"))
            .engine(engine("gpu-1").max_in_flight(64))
            .engine(engine("gpu-2"));
        let table = TestTable::new(&options);
        let mut frontends = spawn_all(table.path(), 2);
        assert_eq!(frontends[0].burst_with_tokens(6, 100), [2, 2, 2]);
        assert_eq!(frontends[1].burst(3), [1, 1, 1]);
        Self { table, frontends }
    }

    pub(crate) fn path(&self) -> &Path {
        self.table.path()
    }

    /// Kills the second frontend, which no process reaps.
    pub(crate) fn kill_one(&mut self) -> i32 {
        let victim = self.frontends.pop().expect("two frontends");
        let pid = victim.pid();
        victim.kill();
        pid
    }
}
