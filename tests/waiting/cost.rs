//! Q6: what the queue costs those that do not wait, and those that do.

use crate::{is_empty, places};
use headcount::{Request, Table};
use headcount_tests::{
    Actor, Ask, Forked, TestTable, Tracee, Waited, eventually, spawn_all, succeeds_alone, waiting,
};

#[test]
fn q6_route_and_finish_make_no_system_call_while_no_request_waits() {
    // The kernel kills the child at its first system call but read, write and exit.
    let table = TestTable::new(&places(1).engine("b"));
    let mut actor = Actor::joined(table.path());
    actor.route_without_system_calls(10_000);
    // Nor when one has waited, and does not any more.
    let own = table.join().unwrap();
    let held = own.route_with(&Request::new().pin(0)).unwrap();
    let mut waiter = Actor::joined(table.path());
    assert!(waiter.acquire(Ask::new().pin(0), 5).is_too_long());
    drop(held);
    actor.route_without_system_calls(10_000);
}

#[test]
fn q6_a_finish_makes_one_system_call_while_requests_wait() {
    succeeds_alone(
        "q6_a_finish_makes_one_system_call_while_requests_wait",
        || TestTable::new(&places(2)),
        |path| {
            let table = Table::open(path).unwrap();
            let places = || {
                let frontend = table.join().unwrap();
                let permits = frontend.route_many(2).unwrap();
                (frontend, permits)
            };
            // One place for the first in line; the other finish finds that one woken already, or not waiting any more.
            let mut finisher: Tracee<()> = Tracee::fork(
                places,
                |(frontend, mut permits)| {
                    Tracee::<()>::mark();
                    permits.truncate(1);
                    Tracee::<()>::mark();
                    std::mem::forget((frontend, permits));
                },
                |()| (),
            )
            .unwrap();
            let waiters: Vec<Forked<bool>> = (1..4)
                .map(|count| {
                    let forked = Forked::start(|| {
                        let frontend = table.join().unwrap();
                        let placed = frontend.acquire(&Request::new(), crate::LONG);
                        let is_placed = placed.is_ok();
                        std::mem::forget((frontend, placed));
                        is_placed
                    });
                    eventually("one more waits", || waiting(&table) == count);
                    forked.unwrap()
                })
                .collect();
            let calls = finisher.marked_calls().unwrap();
            assert_eq!(calls, [libc::SYS_futex], "the wake-up, and nothing else");
            eventually("one is served", || waiting(&table) == 2);
            drop(waiters);
        },
    );
}

#[test]
fn q6_a_finish_makes_no_system_call_for_those_that_may_not_use_its_place() {
    succeeds_alone(
        "q6_a_finish_makes_no_system_call_for_those_that_may_not_use_its_place",
        || TestTable::new(&places(1).engine("b")),
        |path| {
            let table = Table::open(path).unwrap();
            let own = table.join().unwrap();
            let _held = own.route_with(&Request::new().pin(0)).unwrap();
            let mut finisher: Tracee<()> = Tracee::fork(
                || {
                    let frontend = table.join().unwrap();
                    let permit = frontend.route_with(&Request::new().pin(1));
                    (frontend, permit.unwrap())
                },
                |(frontend, permit)| {
                    Tracee::<()>::mark();
                    drop(permit);
                    Tracee::<()>::mark();
                    std::mem::forget(frontend);
                },
                |()| (),
            )
            .unwrap();
            let waiter: Forked<()> = Forked::start(|| {
                let frontend = table.join().unwrap();
                let request = Request::new().pin(0);
                drop(frontend.acquire(&request, crate::LONG));
            })
            .unwrap();
            eventually("it waits", || waiting(&table) == 1);
            let calls = finisher.marked_calls().unwrap();
            assert!(calls.is_empty(), "{calls:?}");
            drop(waiter);
        },
    );
}

#[test]
fn q6_waiting_burns_no_processor_time() {
    const SECOND: u64 = 1_000;
    let table = TestTable::new(&places(1));
    let own = table.join().unwrap();
    let held = own.route().unwrap();
    let mut actors = spawn_all(table.path(), 3);
    for actor in &mut actors {
        actor.begins_to_wait_for(&table, Ask::new(), SECOND);
    }
    // The first one looks 20 times, the second one 100 times, the third one 20 times.
    for (actor, number) in actors.iter_mut().zip(["first", "second", "third"]) {
        let waited: Waited = actor.answer();
        assert!(waited.is_too_long(), "{waited:?}");
        println!("the {number} one used {} us", waited.busy / 1_000);
        let share = waited.busy as f64 / (waited.end - waited.start) as f64;
        assert!(
            share < 0.03,
            "the {number} one was busy for {share} of the time"
        );
    }
    drop(held);
    is_empty(&table);
}

/// A place that is kept for the first ones, which need two, is free all the while.
#[test]
fn q6_waiting_burns_no_processor_time_while_a_place_is_kept() {
    const SECOND: u64 = 1_000;
    let table = TestTable::new(&places(2));
    let own = table.join().unwrap();
    let held = own.route().unwrap();
    std::thread::scope(|scope| {
        let two = || own.acquire_many(2, &Request::new(), crate::LONG);
        let two = scope.spawn(two);
        eventually("two wait as one", || waiting(&table) == 1);
        let mut actors = spawn_all(table.path(), 3);
        for actor in &mut actors {
            actor.begins_to_wait_for(&table, Ask::new(), SECOND);
        }
        // Each looks 100 times.
        for actor in &mut actors {
            let waited: Waited = actor.answer();
            assert!(waited.is_too_long(), "{waited:?}");
            let share = waited.busy as f64 / (waited.end - waited.start) as f64;
            println!("{share:.4} of the time");
            assert!(share < 0.05, "busy for {share} of the time");
        }
        drop(held);
        assert_eq!(two.join().unwrap().unwrap().len(), 2);
    });
    is_empty(&table);
}
