//! Threads that wait for places side by side.

use headcount::Frontend;
use headcount_tests::{Ask, Waited};
use std::thread;
use std::time::Duration;

/// Acquires a place for each request, by a thread each, and finishes each after it was held for so long.
pub(crate) fn all(
    frontend: &Frontend,
    asks: Vec<Ask>,
    timeout: Duration,
    held_for: Duration,
) -> Vec<Waited> {
    let acquire = |ask: Ask| {
        let (waited, permit) = ask.with(frontend.table(), |request| {
            Waited::by(|| frontend.acquire(request, timeout))
        });
        if permit.is_some() {
            thread::sleep(held_for);
        }
        waited
    };
    thread::scope(|scope| {
        let acquire = &acquire;
        let threads: Vec<_> = (asks.into_iter())
            .map(|ask| scope.spawn(move || acquire(ask)))
            .collect();
        let outcomes = threads.into_iter().map(|thread| thread.join());
        outcomes
            .map(|outcome| outcome.expect("no thread panics"))
            .collect()
    })
}
