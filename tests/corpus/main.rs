//! Odd requests and odd answers, sent through nginx, HAProxy and `api_server` in one run.
//!
//! What `api_server` makes of a case has to be what nginx or HAProxy make of it, or the case says why it is
//! not; that goes into docs/api_server.md. Whatever others do: no answer is short and looks whole, no engine
//! can take a request for two, and every place comes back. Without nginx or HAProxy, what was recorded
//! of them counts.
//!
//! - `case`: what a case is. `heads`, `framing`, `leaving`, `replies` have them.
//! - `fronts`: starts nginx, HAProxy and `api_server`. `client` and `engine` act a case before and behind one.
//! - `judge`: what is seen, in a form that can be compared, and what is wrong in any case.
//! - `record`: what was seen when it was recorded. `HEADCOUNT_CORPUS=record` writes that anew, with the table
//!   in the documentation; `HEADCOUNT_CORPUS=WORDS` acts only cases whose name contains these.

mod case;
mod client;
mod engine;
mod framing;
mod fronts;
mod heads;
mod judge;
mod leaving;
mod message;
mod record;
mod replies;
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

/// For each, whether waits are short there.
const LANES: [bool; 6] = [false, false, false, false, true, true];

/// What came of a case at a front: what was seen, and what is wrong there.
type Results = BTreeMap<(usize, Kind), (Observed, Vec<String>)>;

#[test]
fn odd_messages_are_taken_as_by_nginx_or_haproxy_or_it_is_said_why_not() {
    let filter = std::env::var("HEADCOUNT_CORPUS").ok();
    let records = filter.as_deref() == Some("record");
    let filter = filter.filter(|_| !records);
    let cases: Vec<Arc<Case>> = [
        heads::cases(),
        framing::cases(),
        leaving::cases(),
        replies::cases(),
    ]
    .into_iter()
    .flatten()
    .map(Arc::new)
    .collect();
    let names: BTreeSet<_> = cases.iter().map(|case| case.name).collect();
    assert_eq!(names.len(), cases.len(), "each case has a name of its own");
    let wanted = &|case: &Case| {
        filter
            .as_deref()
            .is_none_or(|words| case.name.contains(words))
    };

    let mut record = Record::read();
    let mut fronts = Vec::new();
    for kind in [Kind::Nginx, Kind::Haproxy, Kind::Ours] {
        match Front::start(kind, &LANES) {
            Some(front) => fronts.push(front),
            None => skipped(
                &format!("the corpus at {}", kind.name()),
                "it is not installed; what was recorded of it counts",
            ),
        }
    }
    let results = Mutex::new(Results::new());
    thread::scope(|scope| {
        for front in &fronts {
            for is_impatient in [false, true] {
                let of_kind = cases.iter().enumerate();
                let of_kind = of_kind
                    .filter(move |(_, case)| case.is_impatient == is_impatient && wanted(case));
                let queue = Arc::new(Mutex::new(of_kind));
                let lanes = front
                    .lanes
                    .iter()
                    .filter(|door| door.is_impatient == is_impatient);
                for door in lanes {
                    let (queue, results, record) = (Arc::clone(&queue), &results, &record);
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

    let results = results.into_inner().unwrap();
    let mut wrongs = String::new();
    for (number, case) in cases.iter().enumerate().filter(|(_, case)| wanted(case)) {
        let seen = |kind| match results.get(&(number, kind)) {
            Some((seen, _)) => Some(seen),
            None => record.get(case.name, kind),
        };
        let (ours, mut wrong) = results[&(number, Kind::Ours)].clone();
        let others = [Kind::Nginx, Kind::Haproxy];
        let before = others.map(|kind| record.get(case.name, kind));
        let is_as_one =
            |others: [Option<&Observed>; 2]| others.iter().flatten().any(|other| ours.is_as(other));
        // What the others make of some depends on what comes first.
        let differs = !is_as_one(others.map(seen)) && !is_as_one(before);
        if differs && case.because.is_none() {
            wrong.push("differs from both, without a reason".to_owned());
        }
        if is_as_one(before) && case.because.is_some() {
            wrong.push("has a reason to differ, and does not".to_owned());
        }
        let recorded = record.get(case.name, Kind::Ours);
        if !records && !recorded.is_some_and(|recorded| ours.is_still(recorded)) {
            wrong.push("is not what was recorded".to_owned());
        }
        if !wrong.is_empty() {
            // Writing to a string cannot fail.
            let _ = writeln!(wrongs, "{}: {}", case.name, wrong.join("; "));
            for kind in [Kind::Nginx, Kind::Haproxy, Kind::Ours] {
                let seen = seen(kind).map_or_else(String::new, Observed::to_string);
                let _ = writeln!(wrongs, "    {:10} {seen}", kind.name());
            }
        }
    }
    if records {
        for ((number, kind), (seen, _)) in results {
            record.set(cases[number].name, kind, seen);
        }
        record.write(&cases);
    }
    assert!(wrongs.is_empty(), "\n{wrongs}");
    assert!(
        record.is_documented(&cases),
        "docs/api_server.md is out of step; record anew"
    );
}
