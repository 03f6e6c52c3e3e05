//! What `verify` says of the queue.

use crate::{in_full_use, kinds, that_die};
use headcount::{AcquireError, FaultKind, Request, Table, Verification};
use headcount_tests::{Damage, TestTable, eventually, ids, spawn_all};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Damages a table with a queue in which six requests wait: in slot 0 four of class 1, of which one may not go to
/// engine 0, and one of class 3 for engine 1; in slot 1 one of class 0. Returns what is found then.
fn damaged(damage: impl FnOnce(&Damage)) -> Verification {
    let options = Table::options().engines(2).max_in_flight(1);
    let options = options.max_frontends(8).threads(2).max_waiting(10);
    let table = TestTable::new(&options);
    let frontends = [table.join().unwrap(), table.join().unwrap()];
    // Another process has the places.
    let mut holder = spawn_all(table.path(), 1);
    holder[0].burst(2);
    let excluded = ids(&table, [0]);
    let any = Request::new().class(1);
    let requests = [
        (0, any),
        (0, any),
        (0, any.tenant("a")),
        (0, any.exclude(&excluded)),
        (0, Request::new().class(3).pin(1)),
        (1, Request::new()),
    ];
    let stop = AtomicBool::new(false);
    let reader = Table::open_read_only(table.path()).unwrap();
    thread::scope(|scope| {
        let threads = requests.map(|(frontend, request)| {
            let (frontend, stop) = (&frontends[frontend], &stop);
            scope.spawn(move || {
                let go_on = || !stop.load(Ordering::Relaxed);
                frontend.acquire_while(&request, Duration::from_secs(60), go_on)
            })
        });
        eventually("six wait", || {
            let queue = table.view().queue.expect("a queue");
            queue.classes.iter().map(|class| class.waiting).sum::<u32>() == 6
        });
        let before = reader.verify().unwrap();
        assert!(
            before.is_consistent() && before.busy.is_empty(),
            "{before:?}"
        );
        damage(&Damage::to(&reader, table.path()));
        let found = reader.verify().unwrap();
        for fault in &found.faults {
            println!("{fault}");
        }
        // The library must live with it, whatever it is.
        drop((reader.view(), reader.dump().unwrap()));
        stop.store(true, Ordering::Relaxed);
        for thread in threads {
            let ended = thread.join().unwrap();
            assert!(
                matches!(ended, Err(AcquireError::Cancelled)),
                "no place was free: {ended:?}"
            );
        }
        found
    })
}

/// Where a word lies: part, element, and word of the element.
type Place = (&'static str, u64, u64);

const SERVED: u64 = 16;
const SLOTS: u64 = 20;
const ENGINES: u64 = 16;
/// The queue's first row of a table with room for 64 engines.
const ROW: u64 = 80;

#[test]
fn what_a_queue_cannot_say_is_found() {
    let class = |class: u64, start: u64| class << 62 | start;
    let cases: [(Place, u64, &str); 11] = [
        (
            ("queue", 0, SLOTS),
            9,
            "the queue: 9 slots of which requests have waited, but should be at most 8",
        ),
        (
            ("queue", 0, SERVED + 2),
            1 << 40,
            "class 2 of the queue: served up to the start 1099511627776, but should be below ",
        ),
        // Only slot 0 is said to have had waiting requests, and slot 1 has one.
        (
            ("queue", 0, SLOTS),
            1,
            "in a slot of which no request has waited, but should be in one of the first 1",
        ),
        // The heads of slot 0: class 1 for all engines, class 1 for all but engine 0, class 3 for engine 1.
        (
            ("heads", 0, 0),
            class(1, 0),
            "no start, but should be 1 or later",
        ),
        (
            ("heads", 0, 1),
            class(1, 1 << 40),
            "a start that no request has drawn, but should be below ",
        ),
        (
            ("heads", 0, ENGINES),
            1 << 62 | 64,
            "a request for engine 64, but should be for one of 64 engines",
        ),
        (
            ("heads", 0, ENGINES),
            7 << 59 | 1 << 13 | 2 << 26 | 3 << 39,
            "a request for any engine but 0, 1, 2, 3",
        ),
        (
            ("heads", 0, ENGINES),
            1 << 59 | 4000,
            "a request for any engine but 4000",
        ),
        // One more than it counts.
        (
            ("heads", 1, 5),
            class(0, 1),
            "frontend slot 1: 2 heads of class 0, but should be at most 1",
        ),
        (
            ("heads", 1, 5),
            class(2, 1),
            "frontend slot 1: 1 heads of class 2, but should be at most 0",
        ),
        (
            ("heads", 6, 13),
            class(2, 1),
            "in a slot of which no request has waited",
        ),
    ];
    for ((part, element, word), value, said) in cases {
        let found = damaged(|damage| damage.change(part, element, word, |_| value));
        assert_eq!(kinds(&found), [FaultKind::Queue], "{part} {element} {word}");
        let fault = found.faults[0].to_string();
        assert!(fault.contains(said), "{fault}, not {said}");
    }
}

#[test]
fn a_head_of_a_slot_that_is_vacant_is_found() {
    let found = damaged(|damage| {
        damage.change("queue", 0, SLOTS, |_| 8);
        damage.change("heads", 6, 13, |_| 1);
    });
    assert_eq!(kinds(&found), [FaultKind::Queue]);
    let said = "queue: head 13 of frontend slot 6 (class 0, start 1): a request that waits, though the slot is vacant, but should be none";
    assert_eq!(found.faults[0].to_string(), said);
}

#[test]
fn requests_that_wait_in_no_class_are_found() {
    // Four more on the row of all and in its ledger, which agree: a frontend of three lanes can be about to count three.
    let found = damaged(|damage| {
        damage.change("words", ROW, 0, |word| word + (4 << 42));
        damage.change("ledgers", 0, ROW, |requests| requests + 4);
    });
    assert_eq!(kinds(&found), [FaultKind::Queue]);
    let said = "queue: frontend slot 0: 9 requests that wait, but should be as many as of its classes: [0, 4, 0, 1]";
    assert_eq!(found.faults[0].to_string(), said);
    // One more of class 2.
    let found = damaged(|damage| {
        damage.change("words", ROW + 3, 0, |word| word + (1 << 42));
        damage.change("ledgers", 0, ROW + 3, |requests| requests + 1);
    });
    assert_eq!(kinds(&found), [FaultKind::Queue]);
}

#[test]
fn a_wrong_count_of_waiting_requests_is_found() {
    let found = damaged(|damage| damage.change("words", ROW, 0, |word| word + (1 << 42)));
    assert_eq!(kinds(&found), [FaultKind::Requests]);
    assert_eq!(found.faults[0].at, "the queue");
    let found = damaged(|damage| damage.change("words", ROW + 4, 0, |word| word + (1 << 42)));
    assert_eq!(found.faults[0].at, "class 3 of the queue");
}

#[test]
fn a_table_whose_requests_wait_is_not_accused() {
    in_full_use(
        &Table::options()
            .engines(3)
            .max_in_flight(10)
            .max_waiting(4)
            .max_waiting_of_class(1, 1),
    );
}

#[test]
fn frontends_that_die_while_they_wait_are_accounted_for() {
    let options = Table::options().engines(2).max_in_flight(10);
    // The victims are the frontends but the first. That one reaps when its request comes first.
    that_die(&options.max_waiting(20), |table| {
        let frontends = table.view().frontends;
        (frontends.iter()).any(|frontend| !frontend.alive && frontend.waiting > 0)
    });
}
