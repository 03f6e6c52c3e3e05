//! Q3: how many may wait, and for how long.

use crate::{is_empty, places, taken};
use headcount::{AcquireError, Options, Request, Table};
use headcount_tests::{
    Actor, Ask, Refused, Rounds, Task, TestTable, Waited, race, spawn_all, waiting,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Has eight processes acquire by four threads each, all at the same moment, while all places are held. Returns what
/// came of it, whether they raced, and the most that were seen to wait: in all, and of each class.
fn race_for(
    table: &TestTable,
    actors: &mut [Actor],
    asks: &[Ask; 4],
) -> (Vec<Waited>, bool, [u32; 5]) {
    let task = Task::AcquireAll {
        asks: asks.to_vec(),
        milliseconds: 60,
        held_for: 0,
    };
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut most = [0; 5];
            while !is_over.load(Ordering::SeqCst) {
                let queue = table.view().queue.expect("there is a queue");
                most[0] = most[0].max(waiting(table));
                for (most, class) in most[1..].iter_mut().zip(queue.classes) {
                    *most = (*most).max(class.waiting);
                }
            }
            most
        });
        let raced = race::<Vec<Waited>>(actors, &task);
        is_over.store(true, Ordering::SeqCst);
        let most = watch.join().unwrap();
        let waited = raced
            .answers
            .into_iter()
            .flat_map(|answer| answer.expect("it acquires"));
        (waited.collect(), raced.met, most)
    })
}

#[test]
fn q3_max_waiting_is_exact_over_processes_that_race() {
    let table = TestTable::new(&places(1).max_waiting(5));
    let (_own, held) = taken(&table, 1);
    let mut actors = spawn_all(table.path(), 8);
    let mut rounds = Rounds::new(20, "races for a place in the queue");
    while rounds.another() {
        let asks = [(); 4].map(|()| Ask::new());
        let (waited, raced, most) = race_for(&table, &mut actors, &asks);
        rounds.fell(raced);
        let refused = waited.iter().filter(|waited| waited.is_full()).count();
        let too_long = waited.iter().filter(|waited| waited.is_too_long()).count();
        // On a busy machine, some may have come when the first ones had given up.
        assert_eq!(refused + too_long, 32, "{waited:?}");
        let span = waited.iter().filter(|w| w.is_full()).map(|w| w.start).max();
        let first_end = waited
            .iter()
            .filter(|w| w.is_too_long())
            .map(|w| w.end)
            .min();
        if span < first_end {
            assert_eq!(too_long, 5, "{waited:?}");
        }
        assert!(most[0] <= 5, "{most:?}");
        assert_eq!(waiting(&table), 0);
    }
    drop(held);
    is_empty(&table);
}

#[test]
fn q3_the_bound_of_a_class_is_exact_over_processes_that_race() {
    let options = places(1)
        .max_waiting(10)
        .max_waiting_of_class(1, 3)
        .max_waiting_of_class(2, 2);
    let table = TestTable::new(&options);
    let (_own, held) = taken(&table, 1);
    let mut actors = spawn_all(table.path(), 8);
    let mut rounds = Rounds::new(20, "races for a place in the queue");
    while rounds.another() {
        let asks = [1, 2, 1, 2].map(|class| Ask::new().class(class));
        let (waited, raced, most) = race_for(&table, &mut actors, &asks);
        rounds.fell(raced);
        assert!(most[2] <= 3 && most[3] <= 2 && most[0] <= 10, "{most:?}");
        let full = waited.iter().filter_map(|waited| match &waited.outcome {
            Err(Refused::Full(class, _)) => Some(*class),
            _ => None,
        });
        let full: Vec<_> = full.collect();
        assert!(
            full.contains(&Some(1)) && full.contains(&Some(2)),
            "{full:?}"
        );
        // A request that its class has no room for was counted in all for a moment, and may so have kept another out.
        let others = full
            .iter()
            .filter(|class| !matches!(class, Some(1 | 2) | None));
        assert_eq!(others.count(), 0, "{full:?}");
        assert_eq!(waiting(&table), 0);
    }
    drop(held);
    is_empty(&table);
}

#[test]
fn q3_who_is_refused_is_told_when_to_come_again() {
    let table = TestTable::new(&places(1).max_waiting(1));
    let (own, mut held) = taken(&table, 1);
    let mut waiter = Actor::joined(table.path());
    let refused = || match own.acquire(&Request::new(), crate::LONG) {
        Err(AcquireError::QueueFull {
            class: None,
            retry_after,
        }) => retry_after,
        other => panic!("{other:?}"),
    };
    waiter.begins_to_wait(&table, Ask::new());
    assert_eq!(
        refused(),
        None,
        "no request was ever served, so the pace is not known"
    );
    // A place each 20 ms or so.
    for _ in 0..40 {
        thread::sleep(Duration::from_millis(20));
        held.clear();
        assert!(waiter.answer::<Waited>().outcome.is_ok());
        waiter.finish_one();
        held = own.route_many(1).unwrap();
        waiter.begins_to_wait(&table, Ask::new());
    }
    let hint = refused().expect("the pace is known");
    println!("{hint:?}");
    // Behind one other, so twice that long.
    let sane = Duration::from_millis(20)..Duration::from_millis(200);
    assert!(sane.contains(&hint), "{hint:?}");
}

#[test]
fn q3_a_request_waits_no_shorter_than_it_may() {
    let table = TestTable::new(&places(1));
    let (own, _held) = taken(&table, 1);
    let mut waiter = Actor::joined(table.path());
    let mut late = Vec::new();
    for milliseconds in (1..100).step_by(7) {
        let asked = Duration::from_millis(milliseconds);
        let (here, _) = Waited::by(|| own.acquire(&Request::new(), asked));
        for waited in [here, waiter.acquire(Ask::new(), milliseconds)] {
            let Err(Refused::TooLong(said)) = waited.outcome else {
                panic!("{waited:?}");
            };
            assert!(
                said >= asked && waited.took() >= asked,
                "{asked:?}: {waited:?}"
            );
            late.push(waited.took().saturating_sub(asked));
        }
        assert_eq!(waiting(&table), 0, "nothing stays counted");
    }
    let median = crate::median(late);
    println!("late by {median:?} at the median");
    assert!(median < crate::AT_ONCE, "{median:?}");
}

#[test]
fn q3_a_timeout_of_zero_tries_once() {
    let table = TestTable::new(&places(1));
    let own = table.join().unwrap();
    let held = own
        .acquire(&Request::new(), Duration::ZERO)
        .expect("a place is free");
    let start = Instant::now();
    for _ in 0..100 {
        let refused = own.acquire(&Request::new(), Duration::ZERO);
        let expected = AcquireError::WaitedTooLong {
            waited: Duration::ZERO,
        };
        assert_eq!(refused.unwrap_err(), expected);
    }
    assert!(
        start.elapsed() < Duration::from_secs(1),
        "{:?}",
        start.elapsed()
    );
    drop(held);
    is_empty(&table);
}

#[test]
fn q3_the_longest_timeout_is_no_shorter_than_others() {
    let table = TestTable::new(&places(1));
    let (own, held) = taken(&table, 1);
    thread::scope(|scope| {
        let waits = scope.spawn(|| own.acquire(&Request::new(), Duration::MAX));
        thread::sleep(Duration::from_millis(120));
        assert!(!waits.is_finished(), "it waits on");
        drop(held);
        drop(waits.join().unwrap().expect("it gets the place"));
    });
    is_empty(&table);
}

#[test]
fn q3_apply_changes_how_many_may_wait_and_those_that_wait_wait_on() {
    let table = TestTable::new(&places(1).max_waiting(3));
    let (own, held) = taken(&table, 1);
    let mut actors = spawn_all(table.path(), 3);
    let apply = |options: Options| drop(table.apply(&options).expect("applies"));
    let tried = || {
        let tried = own.acquire(&Request::new(), Duration::from_millis(5));
        tried.expect_err("no place is free")
    };
    for actor in &mut actors {
        actor.begins_to_wait(&table, Ask::new().class(1));
    }
    let full = |error| matches!(error, AcquireError::QueueFull { class: None, .. });
    let waits = |error| matches!(error, AcquireError::WaitedTooLong { .. });
    assert!(full(tried()));
    apply(places(1).max_waiting(4));
    assert!(waits(tried()));
    apply(places(1).max_waiting(4).max_waiting_of_class(0, 1));
    assert!(waits(tried()));
    apply(places(1).max_waiting(1));
    assert!(full(tried()));
    let max_waiting = || table.view().queue.map(|queue| queue.max_waiting);
    assert_eq!((max_waiting(), waiting(&table)), (Some(1), 3));
    apply(Table::options().engine(headcount::Engine::named("a").max_in_flight(1)));
    assert_eq!(tried(), AcquireError::NoQueue);
    assert_eq!(max_waiting(), Some(0), "some wait");
    drop(held);
    // In the order in which they began to wait.
    for actor in &mut actors {
        assert!(actor.answer::<Waited>().outcome.is_ok());
        actor.finish_one();
    }
    assert_eq!(max_waiting(), None);
    is_empty(&table);
}

#[test]
fn q3_the_table_counts_what_becomes_of_those_that_wait() {
    let table = TestTable::new(&places(1).max_waiting(1).max_waiting_of_class(2, 1));
    let (own, held) = taken(&table, 1);
    let request = Request::new().class(2);
    drop(own.acquire(&request, Duration::from_millis(1)));
    drop(own.acquire_while(&request, crate::LONG, || false));
    let mut waiter = Actor::joined(table.path());
    waiter.begins_to_wait(&table, Ask::new().class(2));
    drop(own.acquire(&request, crate::LONG));
    thread::sleep(Duration::from_millis(30));
    let queue = table.view().queue.unwrap();
    let class = queue.classes[2];
    assert_eq!((class.waiting, class.max_waiting), (1, Some(1)));
    assert!(class.oldest >= Some(Duration::from_millis(20)), "{class:?}");
    drop(held);
    let waited = waiter.answer::<Waited>();
    let queue = table.view().queue.unwrap();
    let counts = (
        queue.refused_total,
        queue.timed_out_total,
        queue.cancelled_total,
    );
    assert_eq!((counts, queue.waited.count()), ((1, 1, 1), 1));
    assert!(queue.waited.sum <= waited.took() && queue.waited.sum > Duration::from_millis(20));
    assert_eq!(queue.classes[2].oldest, None);
}
