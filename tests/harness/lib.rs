//! What the tests of the contract share: a table for each test, and processes that act on it.

mod actor;
mod alone;
mod built;
mod damage;
mod forked;
mod lead;
mod prometheus;
mod race;
mod random;
mod traced;
mod tracee;
mod waiting;

pub use actor::{
    Actor, Answer, CameAndWent, CoreDump, ForkedAmid, ForkedUse, Task, WorkDone, held, held_tokens,
    spawn_all, sum,
};
pub use alone::{Ended, alone, fork, succeeds_alone, wait};
pub use built::{built, built_example};
pub use damage::{Damage, Part};
pub use forked::Forked;
pub use lead::{Lead, Strayed};
pub use prometheus::prometheus_approves;
pub use race::{Raced, Rounds, at, monotonic_ns, race};
pub use random::Random;
pub use traced::{Traced, reaper_half_way};
pub use tracee::Tracee;
pub use waiting::{Ask, Refused, Waited, waiting};

use headcount::{EngineId, Options, Table};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A table in a directory of its own, which goes with it.
#[derive(Debug)]
pub struct TestTable {
    table: Table,
    path: PathBuf,
    _directory: TempDir,
}

impl TestTable {
    /// Creates a table with these options.
    pub fn new(options: &Options) -> Self {
        let directory = directory();
        let path = directory.path().join("table");
        let table = options.create(&path).expect("creates a table");
        Self {
            table,
            path,
            _directory: directory,
        }
    }

    /// Creates a table of `count` engines without caps.
    pub fn with_engines(count: usize) -> Self {
        Self::new(&Table::options().engines(count))
    }

    /// Returns the path of the table.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the requests in flight on each engine.
    pub fn in_flight(&self) -> Vec<u32> {
        in_flight(&self.table)
    }

    /// Returns the tokens in flight on each engine.
    pub fn tokens(&self) -> Vec<u32> {
        let engines = self.table.view().engines;
        engines.iter().map(|engine| engine.tokens).collect()
    }
}

impl Deref for TestTable {
    type Target = Table;

    fn deref(&self) -> &Table {
        &self.table
    }
}

/// Returns the requests in flight on each engine of a table.
pub fn in_flight(table: &Table) -> Vec<u32> {
    let engines = table.view().engines;
    engines.iter().map(|engine| engine.in_flight).collect()
}

/// Returns the ids of the engines that have these numbers.
pub fn ids<const N: usize>(table: &Table, numbers: [usize; N]) -> [EngineId; N] {
    numbers.map(|number| table.engine_at(number).expect("an engine of that number"))
}

/// Returns the lanes that are in the midst of an operation, or were when their process was stopped or killed. With k
/// lanes a frontend, those of frontend n begin at n * k.
pub fn lanes_in_midst(table: &Table) -> Vec<usize> {
    let dump = table.dump().expect("dumps the table");
    let lane = |line: &str| {
        let (place, _) = line.split_once("  intent: row ")?;
        place.split(['[', ']']).nth(1)?.parse().ok()
    };
    dump.lines().filter_map(lane).collect()
}

/// Returns the difference between the largest count and the least.
pub fn spread(counts: &[u32]) -> u32 {
    counts.iter().max().unwrap_or(&0) - counts.iter().min().unwrap_or(&0)
}

/// Makes a directory, in shared memory if there is any.
pub fn directory() -> TempDir {
    let shm = Path::new("/dev/shm");
    let parent = if shm.is_dir() { shm } else { Path::new("/tmp") };
    tempfile::Builder::new()
        .prefix("headcount-test-")
        .tempdir_in(parent)
        .expect("makes a directory")
}

/// Whether this process runs as root.
pub fn is_root() -> bool {
    // SAFETY: always allowed, changes nothing.
    unsafe { libc::geteuid() == 0 }
}

/// Whether a process runs. A zombie does not.
pub fn is_running(pid: i32) -> bool {
    !matches!(state(pid), None | Some('Z' | 'X'))
}

/// Returns the state of a process as one letter, as the kernel has it. `None` if there is no such process.
pub fn state(pid: i32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it may hold anything.
    stat.rsplit(") ").next()?.chars().next()
}

/// Reports that a test was skipped, and why, even if the output of tests that pass is hidden.
pub fn skipped(test: &str, why: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "skipped: {test}: {why}");
}

/// How long an event that is to happen soon may take on a busy machine.
const SOON: Duration = Duration::from_secs(60);

/// Waits for an event that is to happen soon, and panics if it does not.
pub fn eventually(what: &str, mut happened: impl FnMut() -> bool) {
    let start = Instant::now();
    while !happened() {
        assert!(start.elapsed() < SOON, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns one of two configurations of a hundred engines. They differ in everything that can be applied.
pub fn many_engines(which: u32) -> Options {
    let shared = (0..50).map(|n| {
        headcount::Engine::named(format!("stays-{n}"))
            .weight((which + 1) as f32)
            .max_in_flight(10 + which)
    });
    let own = (0..50).map(|n| headcount::Engine::named(format!("of-{which}-{n}")));
    (shared.chain(own))
        .fold(Table::options(), Options::engine)
        .max_in_flight(100 + which)
}
