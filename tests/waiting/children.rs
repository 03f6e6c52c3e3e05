//! K3 for the queue: a forked child neither waits in its parent's place nor ends its parent's wait.

use crate::cancels::{poll, waiting_future};
use crate::{LONG, places};
use headcount::{AcquireError, Request, RouteError, Table};
use headcount_tests::{TestTable, eventually, fork, succeeds_alone, wait, waiting};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

const FORKED: AcquireError = AcquireError::Route(RouteError::Forked);

/// What a check says to the parent: 0 if it holds.
fn code(holds: bool) -> i32 {
    i32::from(!holds)
}

#[test]
fn k3_a_child_cannot_acquire_by_its_parents_frontend() {
    succeeds_alone(
        "k3_a_child_cannot_acquire_by_its_parents_frontend",
        || TestTable::new(&places(1)),
        |path| {
            let table = Table::open(path).unwrap();
            let own = table.join().unwrap();
            let tried = || {
                let acquired = own.acquire(&Request::new(), LONG).map(drop);
                let mut future = own.acquire_async(&Request::new(), Instant::now() + LONG);
                let polled = poll(&mut future, &Arc::default());
                let polled = polled.map(|outcome| outcome.map(drop));
                let routed = own.route().map(drop);
                let many = own.route_many(2).map(drop);
                let routed = routed == Err(RouteError::Forked) && many == Err(RouteError::Forked);
                let tried = own.acquire(&Request::new(), Duration::ZERO).map(drop);
                let acquired = [acquired, tried]
                    .iter()
                    .all(|outcome| *outcome == Err(FORKED));
                code(routed && acquired && polled == Some(Err(FORKED)))
            };
            assert_eq!(wait(fork(tried)), 0, "with a place that is free");
            let held = own.route().unwrap();
            assert_eq!(wait(fork(tried)), 0, "without a place");
            assert_eq!(waiting(&table), 0);
            // While other threads wait and look for places, one of which may have the lock at the fork.
            thread::scope(|scope| {
                for count in 1..4 {
                    scope.spawn(|| drop(own.acquire(&Request::new(), Duration::from_secs(2))));
                    eventually("it waits", || waiting(&table) == count);
                }
                for _ in 0..50 {
                    assert_eq!(wait(fork(tried)), 0, "beside threads that wait");
                    thread::sleep(Duration::from_millis(1));
                }
                assert_eq!(waiting(&table), 3);
                drop(held);
            });
            assert_eq!(waiting(&table), 0);
        },
    );
}

#[test]
fn k3_a_child_that_polls_or_drops_its_parents_future_changes_nothing() {
    succeeds_alone(
        "k3_a_child_that_polls_or_drops_its_parents_future_changes_nothing",
        || TestTable::new(&places(1)),
        |path| {
            let table = Table::open(path).unwrap();
            let own = table.join().unwrap();
            let held = own.route().unwrap();
            let (future, noted) = waiting_future(&own, &Request::new());
            let mut future = Some(future);
            let polls = fork(|| {
                let polled = poll(future.as_mut().unwrap(), &noted);
                drop(future.take());
                code(matches!(polled, Some(Err(FORKED))))
            });
            assert_eq!(wait(polls), 0, "the child is told");
            let drops = fork(|| {
                drop(future.take());
                code(waiting(&table) == 1)
            });
            assert_eq!(wait(drops), 0, "the child changes nothing");
            let class = table.view().queue.unwrap().classes[0];
            assert!(
                class.oldest.is_some(),
                "others see that it waits: {class:?}"
            );
            // A fork while the place has been granted and not been taken.
            drop(held);
            eventually("the future has its place", || noted.is_woken());
            let drops = fork(|| {
                let polled = poll(future.as_mut().unwrap(), &noted);
                drop(future.take());
                code(matches!(polled, Some(Err(FORKED))))
            });
            assert_eq!(wait(drops), 0, "the child is told");
            assert_eq!(headcount_tests::in_flight(&table), [1]);
            let outcome = poll(future.as_mut().unwrap(), &noted);
            drop(
                outcome
                    .expect("it is ready")
                    .expect("the parent has its place"),
            );
            assert_eq!(headcount_tests::in_flight(&table), [0]);
        },
    );
}

#[test]
fn k3_a_child_that_joins_itself_waits_like_any_other_process() {
    succeeds_alone(
        "k3_a_child_that_joins_itself_waits_like_any_other_process",
        || TestTable::new(&places(1)),
        |path| {
            let table = Table::open(path).unwrap();
            let own = table.join().unwrap();
            let held = own.route().unwrap();
            let (future, noted) = waiting_future(&own, &Request::new());
            let child = fork(|| {
                let joined = table.join().unwrap();
                let acquired = joined.acquire(&Request::new(), LONG);
                code(acquired.is_ok())
            });
            eventually("both wait", || waiting(&table) == 2);
            drop(held);
            eventually("the future has its place", || noted.is_woken());
            assert_eq!(waiting(&table), 1);
            drop(future);
            assert_eq!(wait(child), 0, "the child has got the place");
        },
    );
}
