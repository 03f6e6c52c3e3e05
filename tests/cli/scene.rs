//! A table in use, with real frontends.

use headcount::Table;
use headcount_tests::{Actor, Ask, TestTable, Waited, spawn_all};
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

/// A table of two engines that take a request each, whose queue is full: one request of class 0, one of class 1 and one
/// of class 2 wait. One was served after it had waited, one was refused, and the time of one was over.
pub(crate) struct Queue {
    pub(crate) table: TestTable,
    /// The first two have a place each, and the next three wait.
    pub(crate) actors: Vec<Actor>,
}

impl Queue {
    pub(crate) fn new() -> Self {
        let engine = |name| headcount::Engine::named(name).max_in_flight(1);
        let options = Table::options()
            .engine(engine("gpu-0"))
            .engine(engine("gpu-1"));
        let options = options.max_waiting(3).max_waiting_of_class(2, 1);
        let table = TestTable::new(&options.share_tokens(true));
        let mut actors = spawn_all(table.path(), 5);
        assert_eq!(actors[0].burst(2), [1, 1]);
        actors[1].begins_to_wait(&table, Ask::new());
        actors[0].finish_one();
        assert!(actors[1].answer::<Waited>().outcome.is_ok());
        assert!(actors[4].acquire(Ask::new(), 20).is_too_long());
        for (actor, class) in [(2, 0), (3, 2)] {
            actors[actor].begins_to_wait(&table, Ask::new().class(class));
        }
        assert!(actors[4].acquire(Ask::new().class(2), 20).is_full());
        actors[4].begins_to_wait(&table, Ask::new().class(1));
        Self { table, actors }
    }

    pub(crate) fn path(&self) -> &Path {
        self.table.path()
    }
}
