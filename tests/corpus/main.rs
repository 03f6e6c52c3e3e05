//! Odd requests and odd answers, sent through nginx, HAProxy and `headcount-server` in one run.
//!
//! `headcount-server` has to take a case as nginx or HAProxy takes it, or the case gives the reason, which
//! goes into docs/server.md. Whatever the others do: no answer is short and looks whole, no engine can read
//! a request as two, an engine learns when its client leaves, and every count returns to zero. If nginx or
//! HAProxy is not installed, their recorded observations count.
//!
//! - `case`: a case. There are these: `heads`, `framing` and `bodies` of requests, `leaving` of clients,
//!   `reply_framing` and other `replies` of engines, and their `moments`.
//! - `fronts`: starts nginx, HAProxy and `headcount-server`. `client` and `engine` act a case before and
//!   behind one, by `wire` and `message`.
//! - `judge`: observations in a form that can be compared, and faults.
//! - `record`: the recorded observations. `HEADCOUNT_CORPUS=record` writes them anew, with the table in the
//!   documentation; `HEADCOUNT_CORPUS=WORDS` acts only cases whose name contains these.

mod bodies;
mod case;
mod client;
mod engine;
mod framing;
mod fronts;
mod heads;
mod judge;
mod leaving;
mod message;
mod moments;
mod record;
mod replies;
mod reply_framing;
mod wire;

use case::Case;
use fronts::{Front, Kind};
use headcount_tests::skipped;
use judge::Observed;
use record::Record;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::{Arc, Mutex};
use std::thread;

/// Of each lane of a front, whether all waits are short there.
const LANES: [bool; 6] = [false, false, false, false, true, true];

/// The observation of each case at each front, and the faults there.
type Results = BTreeMap<(usize, Kind), (Observed, Vec<String>)>;

#[test]
fn odd_messages_are_taken_as_by_nginx_or_haproxy_or_it_is_said_why_not() {
    let words = std::env::var("HEADCOUNT_CORPUS").unwrap_or_default();
    let records = words == "record";
    let cases = cases();
    let wanted = |case: &Case| records || case.name.contains(&words);
    let mut record = Record::read();
    let results = act(&cases, &record, wanted);

    let mut faults = String::new();
    for (number, case) in cases.iter().enumerate().filter(|(_, case)| wanted(case)) {
        let found = faults_of(case, number, &results, &record, records);
        if !found.is_empty() {
            // Writing to a string cannot fail, here and below.
            let _ = writeln!(faults, "{}: {}", case.name, found.join("; "));
            for kind in Kind::ALL {
                let seen = results.get(&(number, kind)).map(|(seen, _)| seen);
                let seen = seen.or(record.get(case.name, kind));
                let seen = seen.map_or_else(String::new, Observed::to_string);
                let _ = writeln!(faults, "    {:10} {seen}", kind.name());
            }
        }
    }
    if records {
        for ((number, kind), (seen, _)) in results {
            record.set(cases[number].name, kind, seen);
        }
        record.write(&cases);
    }
    assert!(faults.is_empty(), "\n{faults}");
    let is_documented = record.is_documented(&cases);
    assert!(is_documented, "docs/server.md is out of step; record anew");
}

fn cases() -> Vec<Arc<Case>> {
    let cases = [
        heads::cases(),
        framing::cases(),
        bodies::cases(),
        leaving::cases(),
        reply_framing::cases(),
        replies::cases(),
        moments::cases(),
    ];
    let cases: Vec<_> = cases.into_iter().flatten().map(Arc::new).collect();
    let names: BTreeSet<_> = cases.iter().map(|case| case.name).collect();
    assert_eq!(names.len(), cases.len(), "each case has a name of its own");
    cases
}

/// Acts the cases at all fronts that are installed, in each lane one after the other.
fn act(cases: &[Arc<Case>], record: &Record, wanted: impl Fn(&Case) -> bool) -> Results {
    let mut fronts = Vec::new();
    for kind in Kind::ALL {
        match Front::start(kind, &LANES) {
            Some(front) => fronts.push(front),
            None => skipped(
                &format!("the corpus at {}", kind.name()),
                "it is not installed; its recorded observations count",
            ),
        }
    }
    let results = Mutex::new(Results::new());
    thread::scope(|scope| {
        for front in &fronts {
            for is_impatient in [false, true] {
                let all = cases.iter().enumerate();
                let queue =
                    all.filter(|(_, case)| case.is_impatient == is_impatient && wanted(case));
                let queue: Vec<_> = queue.collect();
                let queue = Arc::new(Mutex::new(queue.into_iter()));
                let lanes = front
                    .lanes
                    .iter()
                    .filter(|door| door.is_impatient == is_impatient);
                for door in lanes {
                    let (queue, results) = (Arc::clone(&queue), &results);
                    scope.spawn(move || {
                        loop {
                            let next = queue.lock().unwrap().next();
                            let Some((number, case)) = next else { return };
                            let before = record.get(case.name, front.kind);
                            let result = judge::observe(case, front.kind, door, before);
                            results.lock().unwrap().insert((number, front.kind), result);
                        }
                    });
                }
            }
        }
    });
    results.into_inner().unwrap()
}

/// Finds faults of `headcount-server` in a case, or of the case.
fn faults_of(
    case: &Case,
    number: usize,
    results: &Results,
    record: &Record,
    records: bool,
) -> Vec<String> {
    let (ours, mut faults) = results[&(number, Kind::Ours)].clone();
    let recorded = |kind| record.get(case.name, kind);
    let now = |kind| results.get(&(number, kind)).map(|(seen, _)| seen);
    let is_as = |other: Option<&Observed>| other.is_some_and(|other| ours.is_as(other));
    let others = [Kind::Nginx, Kind::Haproxy];
    let was_as_one = others.iter().any(|kind| is_as(recorded(*kind)));
    // The others do not take every case alike each time.
    let is_as_one = was_as_one || others.iter().any(|kind| is_as(now(*kind)));
    if !is_as_one && case.because.is_none() {
        faults.push("differs from both, without a reason".to_owned());
    }
    if was_as_one && case.because.is_some() {
        faults.push("has a reason to differ, and does not".to_owned());
    }
    if !records && !recorded(Kind::Ours).is_some_and(|recorded| ours.is_still(recorded)) {
        faults.push("is not as recorded".to_owned());
    }
    faults
}
