//! Eight processes that want four places, for as long as it is told. They acquire, hold and finish, with short deadlines
//! and with waits that they give up, while they are killed and stopped.
//!
//! Each process writes down when it has a place and when it waits, in a file in shared memory, by a clock that all
//! share. The judge goes by that alone: never more than four hold a place, no place stays free while a request of
//! a living process waits, and those that began to wait first are served first. On a busy machine it would be
//! fooled by a thread that could run and does not, so each process notes, too, for how long its threads did not.
//!
//! `queue SECONDS`

mod delays;
mod faults;
mod history;
mod judge;
mod record;
mod worker;

use faults::Faults;
use headcount::{Engine, Table};
use headcount_tests::{Random, TestTable, monotonic_ns, waiting};
use judge::Verdict;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How many processes there are.
const PROCESSES: usize = 8;
/// How many places they want.
const PLACES: u32 = 4;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let seconds = match arguments.as_slice() {
        ["worker", table, record, seed] => {
            let seed = seed.parse().expect("a number");
            worker::work(Path::new(table), Path::new(record), seed);
            return ExitCode::SUCCESS;
        }
        [seconds] => seconds.parse().ok(),
        _ => None,
    };
    let Some(seconds) = seconds else {
        eprintln!("usage: queue SECONDS");
        return ExitCode::from(2);
    };
    match run(Duration::from_secs(seconds)) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Returns whether all was as it has to be.
fn run(duration: Duration) -> bool {
    let engine = |name: &str| Engine::named(name).max_in_flight(PLACES / 2);
    let options = Table::options().engine(engine("a")).engine(engine("b"));
    let table = TestTable::new(&options.max_waiting(1000).max_frontends(64));
    // For the places that dead ones held. What they held in the queue holds up no other until then.
    let _reaper = table.reap_every(Duration::from_millis(50)).expect("reaps");
    let mut random = Random::seeded();
    let mut faults = Faults::new(table.path(), PROCESSES);
    let start = Instant::now();
    while start.elapsed() < duration {
        faults.inject(&mut random);
        random.pause(40_000);
    }
    let end = monotonic_ns();
    println!("faults: {faults}");
    let history = faults.end(end);
    let verdict = Verdict::of(&history);
    println!("{verdict}");
    let is_empty = is_empty(&table);
    verdict.is_good() && is_empty
}

/// Whether nothing is left in the table.
fn is_empty(table: &TestTable) -> bool {
    table.reap().expect("reaps");
    let (counts, waiting) = (table.in_flight(), waiting(table));
    let faults = table.verify().expect("reads the table").faults;
    println!("left: {counts:?} in flight, {waiting} waiting, faults {faults:?}");
    let served = table.view().queue.map(|queue| queue.waited);
    if let Some(waited) = served {
        let quantile = |share| waited.quantile(share);
        println!(
            "the table says: {} waited and were served, half of them within {:?}, 99 % within {:?}",
            waited.count(),
            quantile(0.5),
            quantile(0.99)
        );
    }
    counts.iter().all(|count| *count == 0) && waiting == 0 && faults.is_empty()
}
