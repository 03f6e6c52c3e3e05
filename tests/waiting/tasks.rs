//! Tasks that wait, on any executor: one thread of the process waits for all of them.

use crate::cancels::{Noted, poll, waiting_future};
use crate::{LONG, is_empty, median, places, taken};
use headcount::{Acquire, AcquireError, Request, Table};
use headcount_tests::succeeds_alone;
use headcount_tests::{
    Actor, Ask, Random, TestTable, Waited, eventually, in_flight, monotonic_ns, waiting,
};
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// How many threads this process has.
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

#[test]
fn q6_thousands_of_tasks_cost_one_thread_under_tokio() {
    const TASKS: usize = 3_000;
    succeeds_alone(
        "q6_thousands_of_tasks_cost_one_thread_under_tokio",
        || TestTable::new(&places(10).max_waiting(TASKS as u32)),
        |path| {
            let table = Table::open(path).unwrap();
            let runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = { runtime }.enable_time().build().unwrap();
            let before = threads();
            let most = Arc::new(AtomicU32::new(0));
            let own = table.join().unwrap();
            let held = own.route_many(10).unwrap();
            let tasks: Vec<_> = (0..TASKS)
                .map(|_| {
                    let (own, table) = (own.clone(), table.clone());
                    let most = Arc::clone(&most);
                    runtime.spawn(async move {
                        let future = own.acquire_async(&Request::new(), Instant::now() + LONG);
                        let permit = future.await.expect("it gets a place");
                        most.fetch_max(in_flight(&table)[0], Ordering::SeqCst);
                        tokio::task::yield_now().await;
                        drop(permit);
                    })
                })
                .collect();
            runtime.block_on(async {
                while waiting(&table) < TASKS as u32 {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                assert_eq!(threads(), before + 1, "one thread waits for all");
                drop(held);
                for task in tasks {
                    task.await.unwrap();
                }
            });
            assert_eq!(
                most.load(Ordering::SeqCst),
                10,
                "the cap holds, and is used"
            );
            assert_eq!((in_flight(&table), waiting(&table)), (vec![0], 0));
            drop(own);
            eventually("the thread ends", || threads() == before);
            assert!(table.view().frontends.is_empty(), "it has left");
        },
    );
}

/// Wakes a thread that is parked.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// An executor of a few lines.
fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

#[test]
fn q1_a_task_is_served_on_an_executor_of_ones_own() {
    let table = TestTable::new(&places(1));
    let own = table.join().unwrap();
    let mut other = Actor::joined(table.path());
    let mut times = Vec::new();
    for _ in 0..20 {
        other.route();
        let waits = thread::scope(|scope| {
            let task = || {
                let future = own.acquire_async(&Request::new(), Instant::now() + LONG);
                Waited::by(|| block_on(future))
            };
            let task = scope.spawn(task);
            eventually("it waits", || waiting(&table) == 1);
            let freed = other.finish_one();
            let (waited, permit) = task.join().unwrap();
            assert!(permit.is_some(), "{waited:?}");
            waited.after(freed)
        });
        times.push(waits);
    }
    let median = median(times);
    println!("{median:?}");
    assert!(median < crate::AT_ONCE, "{median:?}");
    is_empty(&table);
}

#[test]
fn q2_tasks_threads_and_other_processes_are_one_queue() {
    let table = TestTable::new(&places(1));
    let (own, held) = taken(&table, 1);
    let mut actor = Actor::joined(table.path());
    let (mut first, noted_first) = waiting_future(&own, &Request::new());
    actor.begins_to_wait(&table, Ask::new());
    thread::scope(|scope| {
        let thread = scope.spawn(|| own.acquire(&Request::new(), LONG));
        eventually("it waits", || waiting(&table) == 3);
        let (mut last, noted_last) = waiting_future(&own, &Request::new());
        drop(held);
        eventually("the first task is served", || noted_first.is_woken());
        let permit = poll(&mut first, &noted_first).expect("it is ready");
        assert_eq!(waiting(&table), 3);
        drop(permit);
        assert!(actor.answer::<Waited>().outcome.is_ok());
        assert_eq!(waiting(&table), 2);
        actor.finish_one();
        let permit = thread.join().unwrap().expect("the thread is served");
        assert!(!noted_last.is_woken());
        drop(permit);
        eventually("the last task is served", || noted_last.is_woken());
        assert!(matches!(poll(&mut last, &noted_last), Some(Ok(_))));
    });
    is_empty(&table);
}

/// A thread and the thread of the tasks both sleep until their process is woken, and each finds places for both.
#[test]
fn q1_threads_and_tasks_are_served_at_once_whichever_thread_finds_the_place() {
    let mut random = Random::seeded();
    let mut times = Vec::new();
    for round in 0..40 {
        let table = TestTable::new(&places(1));
        let own = table.join().unwrap();
        let mut holder = Actor::joined(table.path());
        holder.route();
        thread::scope(|scope| {
            let begin_thread = || {
                let wait = || Waited::by(|| own.acquire(&Request::new(), LONG));
                scope.spawn(wait)
            };
            let begin_task = || {
                let future = own.acquire_async(&Request::new(), Instant::now() + LONG);
                let wait = || Waited::by(|| block_on(future));
                scope.spawn(wait)
            };
            let is_thread_first = round % 2 == 0;
            let one = match is_thread_first {
                true => begin_thread(),
                false => begin_task(),
            };
            eventually("it waits", || waiting(&table) == 1);
            // The kernel wakes that one first which has slept longer, since its last look.
            random.pause(50_000);
            let other = match is_thread_first {
                true => begin_task(),
                false => begin_thread(),
            };
            eventually("both wait", || waiting(&table) == 2);
            random.pause(50_000);
            let freed = holder.finish_one();
            let (waited, permit) = one.join().unwrap();
            times.push(waited.after(freed));
            thread::sleep(Duration::from_millis(2));
            let freed = monotonic_ns();
            drop(permit);
            let (waited, permit) = other.join().unwrap();
            times.push(waited.after(freed));
            drop(permit);
        });
        is_empty(&table);
    }
    times.sort_unstable();
    let nearly_all = times[times.len() * 9 / 10];
    println!("nine of ten within {nearly_all:?}");
    assert!(nearly_all < crate::AT_ONCE, "{times:?}");
}

#[test]
fn q3_a_task_waits_until_its_deadline_and_not_shorter() {
    let table = TestTable::new(&places(1));
    let (own, _held) = taken(&table, 1);
    let mut late = Vec::new();
    // The later it begins to wait, the earlier its time is over.
    let deadlines: Vec<_> = (0..8).map(|n| Duration::from_millis(48 - 6 * n)).collect();
    thread::scope(|scope| {
        let tasks: Vec<_> = (deadlines.iter().zip(1..))
            .map(|(wait, count)| {
                let own = &own;
                let deadline = Instant::now() + *wait;
                let task = move || {
                    let ended = block_on(own.acquire_async(&Request::new(), deadline));
                    (ended, Instant::now(), deadline)
                };
                let task = scope.spawn(task);
                eventually("one more waits", || waiting(&table) == count);
                task
            })
            .collect();
        for task in tasks {
            let (ended, end, deadline) = task.join().unwrap();
            let ended = ended.unwrap_err();
            assert!(
                matches!(ended, AcquireError::WaitedTooLong { .. }),
                "{ended:?}"
            );
            late.push(end.checked_duration_since(deadline).expect("not early"));
        }
    });
    let median = median(late);
    println!("late by {median:?} at the median");
    assert!(median < crate::AT_ONCE, "{median:?}");
    assert_eq!(waiting(&table), 0);
}

#[test]
fn q3_a_task_whose_deadline_is_over_tries_once() {
    let table = TestTable::new(&places(1));
    let own = table.join().unwrap();
    let at_once = || block_on(own.acquire_async(&Request::new(), Instant::now()));
    let held = at_once().expect("a place is free");
    let refused = at_once().unwrap_err();
    assert_eq!(
        refused,
        AcquireError::WaitedTooLong {
            waited: Duration::ZERO
        }
    );
    drop(held);
    is_empty(&table);
}

#[test]
fn q5_the_waker_of_the_last_poll_is_woken() {
    let table = TestTable::new(&places(1));
    let (own, held) = taken(&table, 1);
    let (mut future, before) = waiting_future(&own, &Request::new());
    let now = Arc::<Noted>::default();
    assert!(poll(&mut future, &now).is_none());
    drop(held);
    eventually("the waker is woken", || now.is_woken());
    assert!(!before.is_woken(), "the waker before is not");
    assert!(matches!(poll(&mut future, &now), Some(Ok(_))));
    drop(future);
    is_empty(&table);
}

#[test]
fn q5_a_future_that_is_never_polled_does_not_wait() {
    let table = TestTable::new(&places(1));
    let (own, held) = taken(&table, 1);
    drop(own.acquire_async(&Request::new(), Instant::now() + LONG));
    assert_eq!(waiting(&table), 0);
    drop(held);
    is_empty(&table);
}

/// A waker whose task holds another future of the same frontend, and panics if it is woken.
#[derive(Default)]
struct Holds {
    _other: Mutex<Option<Acquire>>,
}

impl Wake for Holds {
    fn wake(self: Arc<Self>) {
        panic!("a waker that cannot wake, on purpose");
    }
}

#[test]
fn q5_a_waker_that_panics_keeps_no_other_task_asleep() {
    let table = TestTable::new(&places(1));
    let (own, held) = taken(&table, 1);
    let mut first = own.acquire_async(&Request::new(), Instant::now() + LONG);
    let waker = Waker::from(Arc::new(Holds::default()));
    assert!(
        pin!(&mut first)
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
    );
    let (second, noted) = waiting_future(&own, &Request::new());
    drop(held);
    eventually("the first one has its place", || waiting(&table) == 1);
    drop(first);
    eventually("the second one is woken", || noted.is_woken());
    drop(second);
    is_empty(&table);
}

#[test]
fn q5_a_waker_is_dropped_while_no_lock_is_held() {
    let table = TestTable::new(&places(1));
    let (own, held) = taken(&table, 1);
    let (other, _) = waiting_future(&own, &Request::new());
    let mut future = own.acquire_async(&Request::new(), Instant::now() + LONG);
    let waker = Waker::from(Arc::new(Holds {
        _other: Mutex::new(Some(other)),
    }));
    assert!(
        pin!(&mut future)
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
    );
    assert_eq!(waiting(&table), 2);
    drop(waker);
    // Polled by another task. The former one is gone then, and the future that it held.
    let moved = thread::spawn(move || {
        assert!(poll(&mut future, &Arc::default()).is_none());
        future
    });
    eventually("the other future has left", || waiting(&table) == 1);
    drop(moved.join().unwrap());
    drop(held);
    is_empty(&table);
}
