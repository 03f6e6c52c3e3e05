//! Q1 to Q7: requests that wait for a place, in one queue over all processes.
//!
//! Rules: docs/contract.md.

mod bounds;
mod cancels;
mod children;
mod cost;
mod deaths;
mod errors;
mod everything;
mod order;
mod places;
mod shares;
mod tasks;

use headcount::{Engine, Frontend, Options, Permit, Table};
use headcount_tests::{TestTable, waiting};
use std::time::Duration;

/// Longer than a request is to wait that was woken, far shorter than the 50 ms after which it looks by itself.
const AT_ONCE: Duration = Duration::from_millis(10);

/// How long a request waits that is to get a place.
const LONG: Duration = Duration::from_secs(60);

/// A table of one engine that takes so many requests, with a queue.
fn places(count: u32) -> Options {
    let engine = Engine::named("a").max_in_flight(count);
    Table::options().engine(engine).max_waiting(1000)
}

/// The upper one of the two in the middle.
fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Joins, and takes so many places.
fn taken(table: &TestTable, count: usize) -> (Frontend, Vec<Permit>) {
    let frontend = table.join().expect("joins");
    let permits = frontend.route_many(count).expect("there is room");
    (frontend, permits)
}

/// Fails unless no request is counted, none waits, and the table has no fault.
fn is_empty(table: &TestTable) {
    assert_eq!(waiting(table), 0, "none waits");
    assert!(table.in_flight().iter().all(|count| *count == 0));
    let faults = table.verify().expect("reads the table").faults;
    assert!(faults.is_empty(), "{faults:?}");
}
