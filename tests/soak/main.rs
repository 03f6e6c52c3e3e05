//! Frontends at full speed, while processes are killed, stopped and forked, publishers die, engines come and go,
//! and caps change. At every pause the counts are compared with the permits.
//!
//! `soak SECONDS`

mod faults;

use faults::Faults;
use headcount::{Engine, Table};
use headcount_tests::{Actor, Random, TestTable, spawn_all};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Frontends that live all the while.
const SURVIVORS: usize = 3;
/// Frontends that may be killed.
const VICTIMS: usize = 3;
const MAX_ENGINES: usize = 6;

fn main() -> ExitCode {
    let seconds = std::env::args()
        .nth(1)
        .and_then(|seconds| seconds.parse().ok());
    let Some(seconds) = seconds else {
        eprintln!("usage: soak SECONDS");
        return ExitCode::from(2);
    };
    match soak(Duration::from_secs(seconds)) {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// Returns how many of the pauses found a count that was not that of the permits.
fn soak(duration: Duration) -> usize {
    let options = Table::options()
        .engine(Engine::named("small").max_in_flight(40))
        .engine(Engine::named("weighted").weight(2.0))
        .engine(Engine::named("tokens").max_tokens(3_000))
        .engine(Engine::named("flapping"))
        .max_engines(MAX_ENGINES)
        .max_frontends(SURVIVORS + VICTIMS + 2)
        .threads(1)
        .max_in_flight(200);
    let table = TestTable::new(&options);
    let _reaper = table.reap_every(Duration::from_millis(50)).expect("reaps");
    let mut random = Random::seeded();
    let mut survivors = spawn_all(table.path(), SURVIVORS);
    let mut faults = Faults::new(&table, VICTIMS);
    let (mut pauses, mut drifted, mut operations, mut longest) = (0_usize, 0, 0_u64, 0_u64);
    let start = Instant::now();
    let mut last_report = start;
    while start.elapsed() < duration {
        for frontend in survivors.iter_mut().chain(faults.victims()) {
            frontend.churn(2);
        }
        let round = Instant::now();
        while round.elapsed() < Duration::from_millis(400) {
            faults.inject(&mut random, &survivors);
            random.pause(4_000);
        }
        for frontend in survivors.iter_mut().chain(faults.victims()) {
            frontend.pause();
        }
        table.reap().expect("reaps");
        pauses += 1;
        if let Some(drift) = compare(&table, survivors.iter_mut().chain(faults.victims())) {
            drifted += 1;
            println!("drift at pause {pauses}: {drift}");
        }
        for survivor in &mut survivors {
            let work = survivor.work_done();
            operations += work.operations;
            longest = longest.max(work.longest);
        }
        if last_report.elapsed() > Duration::from_secs(10) {
            last_report = Instant::now();
            println!(
                "{:>6} s: {operations} operations, {drifted} of {pauses} pauses drifted",
                start.elapsed().as_secs()
            );
        }
    }
    println!(
        "{operations} operations of {SURVIVORS} survivors in {} s",
        start.elapsed().as_secs()
    );
    println!("faults: {faults}");
    println!("drift: {drifted} of {pauses} pauses");
    println!(
        "longest that one operation of a survivor took: {:?} (being preempted or stopped included)",
        Duration::from_nanos(longest)
    );
    drifted
}

/// Compares the table with the permits of all frontends, and returns the difference.
fn compare<'a>(table: &Table, frontends: impl Iterator<Item = &'a mut Actor>) -> Option<String> {
    let mut permits = vec![[0; 2]; MAX_ENGINES];
    for frontend in frontends {
        for (index, held) in [frontend.held(), frontend.held_tokens()]
            .into_iter()
            .enumerate()
        {
            for (sum, own) in permits.iter_mut().zip(held) {
                sum[index] += own;
            }
        }
    }
    let mut counted = vec![[0; 2]; MAX_ENGINES];
    for engine in table.view().engines {
        counted[engine.id.index()] = [engine.in_flight, engine.tokens];
    }
    (counted != permits).then(|| format!("counted {counted:?}, alive {permits:?}"))
}
