//! Threads of one process: which of them wait, and what happens inside an operation and at the end of a thread.
//!
//! Rules: docs/contract.md.

use headcount::{Frontend, Permit, Policy, Request, Table};
use headcount_tests::{TestTable, eventually, fork, in_flight, succeeds_alone, wait};
use std::cell::RefCell;
use std::os::unix::thread::JoinHandleExt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Barrier, Mutex, OnceLock};
use std::thread::{self, JoinHandle};

/// Whether the thread that can be frozen is in a call of the library, and whether it is frozen.
static INSIDE: AtomicBool = AtomicBool::new(false);
static FROZEN: AtomicBool = AtomicBool::new(false);
static STOP: AtomicBool = AtomicBool::new(false);
/// Which freeze comes next, and how many have ended.
static FREEZES: AtomicU32 = AtomicU32::new(0);
static THAWED: AtomicU32 = AtomicU32::new(0);

extern "C" fn freeze(_: libc::c_int) {
    FROZEN.store(true, Ordering::SeqCst);
    while THAWED.load(Ordering::SeqCst) < FREEZES.load(Ordering::SeqCst) {
        std::hint::spin_loop();
    }
    FROZEN.store(false, Ordering::SeqCst);
}

/// A thread that routes and finishes until told to stop, and that a signal freezes wherever it is.
fn spawn_routing(frontend: &Frontend) -> JoinHandle<()> {
    let handler = freeze as extern "C" fn(libc::c_int);
    // SAFETY: the handler only touches atomics.
    unsafe { libc::signal(libc::SIGUSR1, handler as libc::sighandler_t) };
    let frontend = frontend.clone();
    let started = Arc::new(Barrier::new(2));
    let waits = Arc::clone(&started);
    let thread = thread::spawn(move || {
        drop(frontend.route().unwrap());
        waits.wait();
        while !STOP.load(Ordering::SeqCst) {
            INSIDE.store(true, Ordering::SeqCst);
            drop(frontend.route().unwrap());
            INSIDE.store(false, Ordering::SeqCst);
        }
    });
    started.wait();
    thread
}

/// Freezes one thread of the frontend at random instants; meanwhile this thread routes and finishes, which
/// never ends if it waits for the frozen one.
fn assert_this_thread_waits_for_no_other(frontend: &Frontend) {
    drop(frontend.route().unwrap());
    let other = spawn_routing(frontend);
    let mut inside = 0;
    for _ in 0..300 {
        FREEZES.fetch_add(1, Ordering::SeqCst);
        // SAFETY: the thread has not been joined.
        let sent = unsafe { libc::pthread_kill(other.as_pthread_t(), libc::SIGUSR1) };
        assert_eq!(sent, 0);
        eventually("the freeze", || FROZEN.load(Ordering::SeqCst));
        inside += u32::from(INSIDE.load(Ordering::SeqCst));
        for _ in 0..3 {
            drop(frontend.route().unwrap());
        }
        THAWED.fetch_add(1, Ordering::SeqCst);
        eventually("the thaw", || !FROZEN.load(Ordering::SeqCst));
    }
    STOP.store(true, Ordering::SeqCst);
    other.join().unwrap();
    assert!(inside > 100, "frozen in a call only {inside} times of 300");
}

/// Threads that route once on the frontend and then live on.
fn idle_threads(frontend: &Frontend, count: usize) {
    let ready = Arc::new(Barrier::new(count + 1));
    for _ in 0..count {
        let (frontend, ready) = (frontend.clone(), Arc::clone(&ready));
        thread::spawn(move || {
            drop(frontend.route().unwrap());
            ready.wait();
            loop {
                thread::park();
            }
        });
    }
    ready.wait();
}

#[test]
fn lanes_are_given_to_threads_frontend_by_frontend() {
    let name = "lanes_are_given_to_threads_frontend_by_frontend";
    succeeds_alone(
        name,
        || TestTable::with_engines(1),
        |path| {
            let table = Table::open(path).unwrap();
            let elsewhere = Table::options().engines(1).memfd().unwrap().join().unwrap();
            idle_threads(&elsewhere, 10);
            idle_threads(&table.join().unwrap(), 10);
            assert_this_thread_waits_for_no_other(&table.join().unwrap());
        },
    );
}

#[test]
fn threads_of_a_child_have_lanes_whatever_its_parents_threads_have() {
    let name = "threads_of_a_child_have_lanes_whatever_its_parents_threads_have";
    succeeds_alone(
        name,
        || TestTable::with_engines(1),
        |path| {
            let table = Table::open(path).unwrap();
            let frontend = table.join().unwrap();
            idle_threads(&frontend, 10);
            let child = fork(|| {
                assert_this_thread_waits_for_no_other(&table.join().unwrap());
                0
            });
            assert_eq!(wait(child), 0);
        },
    );
}

#[test]
fn lanes_of_threads_that_ended_go_to_others() {
    let name = "lanes_of_threads_that_ended_go_to_others";
    succeeds_alone(
        name,
        || TestTable::with_engines(1),
        |path| {
            let frontend = Table::open(path).unwrap().join().unwrap();
            for _ in 0..20 {
                // More at once than there are lanes, so that some find none.
                let all = Barrier::new(5);
                thread::scope(|scope| {
                    let route_once = || {
                        drop(frontend.route().unwrap());
                        all.wait();
                    };
                    (0..5).for_each(|_| drop(scope.spawn(route_once)));
                });
            }
            // By then the threads have given back what they had.
            let tasks = || std::fs::read_dir("/proc/self/task").unwrap().count();
            eventually("the end of the threads", || tasks() <= 2);
            assert_this_thread_waits_for_no_other(&frontend);
        },
    );
}

#[test]
fn as_many_threads_as_lanes_do_not_wait_for_each_other() {
    let name = "as_many_threads_as_lanes_do_not_wait_for_each_other";
    succeeds_alone(
        name,
        || TestTable::new(&Table::options().engines(1).threads(3)),
        |path| {
            let frontend = Table::open(path).unwrap().join().unwrap();
            // These two, this thread and the one that is frozen.
            idle_threads(&frontend, 2);
            assert_this_thread_waits_for_no_other(&frontend);
        },
    );
}

#[test]
fn a_thread_has_a_lane_in_each_of_many_frontends() {
    let name = "a_thread_has_a_lane_in_each_of_many_frontends";
    succeeds_alone(
        name,
        || TestTable::with_engines(1),
        |path| {
            let table = Table::open(path).unwrap();
            let frontends: Vec<_> = (0..50).map(|_| table.join().unwrap()).collect();
            for frontend in &frontends {
                drop(frontend.route().unwrap());
            }
            for frontend in frontends.iter().step_by(49) {
                STOP.store(false, Ordering::SeqCst);
                assert_this_thread_waits_for_no_other(frontend);
            }
        },
    );
}

#[test]
fn c3_permits_that_end_after_their_threads_other_values_do_are_counted_once() {
    static DROPPING: AtomicBool = AtomicBool::new(false);
    struct Late(Vec<Permit>);
    impl Drop for Late {
        fn drop(&mut self) {
            DROPPING.store(true, Ordering::SeqCst);
            self.0.clear();
        }
    }
    thread_local! {
        static LATE: RefCell<Option<Late>> = const { RefCell::new(None) };
    }
    let table = TestTable::with_engines(2);
    let frontend = table.join().unwrap();
    let mut at_once = 0;
    for _ in 0..10 {
        DROPPING.store(false, Ordering::SeqCst);
        thread::scope(|scope| {
            let own = frontend.clone();
            let late = scope.spawn(move || {
                // Its destructor is registered before that of the thread's key, and runs after it.
                LATE.with(|_| ());
                let permits = own.route_many(30_000).unwrap();
                LATE.with(|late| *late.borrow_mut() = Some(Late(permits)));
            });
            scope.spawn(|| {
                eventually("the thread's end", || DROPPING.load(Ordering::SeqCst));
                for _ in 0..30_000 {
                    drop(frontend.route().unwrap());
                }
            });
            // One that is new may get the lane that the ending thread has just given back.
            eventually("the thread's end", || DROPPING.load(Ordering::SeqCst));
            for _ in 0..100 {
                let own = frontend.clone();
                scope
                    .spawn(move || (0..300).for_each(|_| drop(own.route().unwrap())))
                    .join()
                    .unwrap();
                at_once += u32::from(table.in_flight().iter().sum::<u32>() > 1);
            }
            let _ = late;
        });
        eventually("the end of all permits", || table.in_flight() == [0; 2]);
    }
    assert!(
        at_once > 10,
        "permits ended beside new threads only {at_once} times"
    );
    let found = table.verify().unwrap();
    assert!(found.faults.is_empty(), "{found:?}");
    drop(frontend);
    assert_eq!(table.view().frontends.len(), 0, "the place is given back");
}

#[test]
fn c1_a_signal_handler_that_routes_amid_an_operation_takes_another_lane() {
    static FRONTEND: OnceLock<Frontend> = OnceLock::new();
    static AMID: AtomicU32 = AtomicU32::new(0);
    static HANDLED: AtomicU32 = AtomicU32::new(0);
    extern "C" fn route(_: libc::c_int) {
        if let Some(frontend) = FRONTEND.get() {
            // The shared lane, which no other thread uses here: nothing to wait for.
            drop(frontend.route());
            AMID.fetch_add(u32::from(INSIDE.load(Ordering::SeqCst)), Ordering::SeqCst);
        }
        HANDLED.fetch_add(1, Ordering::SeqCst);
    }
    let name = "c1_a_signal_handler_that_routes_amid_an_operation_takes_another_lane";
    let table = || TestTable::with_engines(1);
    succeeds_alone(name, table, |path| {
        let table = Table::open(path).unwrap();
        let frontend = FRONTEND.get_or_init(|| table.join().unwrap());
        let routing = spawn_routing(frontend);
        let handler = route as extern "C" fn(libc::c_int);
        // SAFETY: the handler routes, which takes no lock and allocates nothing.
        unsafe { libc::signal(libc::SIGUSR2, handler as libc::sighandler_t) };
        for n in 0..500 {
            // SAFETY: the thread has not been joined.
            let sent = unsafe { libc::pthread_kill(routing.as_pthread_t(), libc::SIGUSR2) };
            assert_eq!(sent, 0);
            eventually("the signal", || HANDLED.load(Ordering::SeqCst) > n);
        }
        STOP.store(true, Ordering::SeqCst);
        routing.join().unwrap();
        let amid = AMID.load(Ordering::SeqCst);
        assert!(amid > 100, "only {amid} of 500 amid a call");
        assert_eq!(in_flight(&table), [0]);
        let found = table.verify().unwrap();
        assert!(found.faults.is_empty(), "{found:?}");
    });
}

/// A policy that ends a permit when it is asked first.
fn ending(permit: Permit) -> Policy {
    let held = Mutex::new(Some(permit));
    Policy::custom(move |load| {
        drop(held.lock().unwrap().take());
        load.in_flight.into()
    })
}

#[test]
fn p1_a_policy_may_end_permits_whatever_lane_its_thread_has() {
    let name = "p1_a_policy_may_end_permits_whatever_lane_its_thread_has";
    succeeds_alone(
        name,
        || TestTable::with_engines(2),
        |path| {
            let file = Table::open(path).unwrap();
            let one_lane = Table::options().engines(2).threads(0).memfd().unwrap();
            // The lane is shared; a lane of the thread's own; and none is left but the shared one.
            for (table, others) in [(&one_lane, 0), (&file, 0), (&file, 3)] {
                let frontend = table.join().unwrap();
                idle_threads(&frontend, others);
                for _ in 0..100 {
                    let policy = ending(frontend.route().unwrap());
                    let other = frontend.clone().with_policy(policy);
                    drop(other.route().unwrap());
                    let policy = ending(frontend.route().unwrap());
                    drop(frontend.clone().with_policy(policy).route_many(3).unwrap());
                }
                assert_eq!(in_flight(table), [0; 2]);
                assert!(table.verify().unwrap().faults.is_empty());
            }
            let frontend = file.join().unwrap();
            drop(
                frontend
                    .clone()
                    .with_policy(ending(frontend.route().unwrap()))
                    .route(),
            );
            drop(frontend);
            // The idle threads keep theirs.
            assert_eq!(file.view().frontends.len(), 1, "the places are given back");
        },
    );
}

#[test]
fn p1_a_policy_may_route_by_another_policy() {
    let name = "p1_a_policy_may_route_by_another_policy";
    succeeds_alone(
        name,
        || TestTable::new(&Table::options().engines(2).threads(0)),
        |path| {
            let table = Table::open(path).unwrap();
            let frontend = table.join().unwrap();
            let kept = Arc::new(Mutex::new(Vec::new()));
            let policy = {
                let (frontend, kept) = (frontend.clone(), Arc::clone(&kept));
                Policy::custom(move |load| {
                    let pinned = Request::new().pin(1);
                    if load.engine.index() == 0 && kept.lock().unwrap().is_empty() {
                        let permits = frontend.route_many_with(5, &pinned).unwrap();
                        kept.lock().unwrap().extend(permits);
                    }
                    load.in_flight.into()
                })
            };
            let permit = frontend.with_policy(policy).route().unwrap();
            assert_eq!(
                permit.engine().index(),
                0,
                "the choice is by what the policy has changed"
            );
            assert_eq!(in_flight(&table), [1, 5]);
            kept.lock().unwrap().clear();
            assert_eq!(in_flight(&table), [1, 0]);
        },
    );
}

#[test]
fn p1_a_policy_that_changes_what_it_chooses_by_comes_to_an_end() {
    succeeds_alone(
        "p1_a_policy_that_changes_what_it_chooses_by_comes_to_an_end",
        || TestTable::with_engines(1),
        |path| {
            let table = Table::open(path).unwrap();
            let frontend = table.join().unwrap();
            let calls = Arc::new(AtomicU32::new(0));
            let policy = {
                let (frontend, calls) = (frontend.clone(), Arc::clone(&calls));
                Policy::custom(move |load| {
                    // The word of the engine is another one after this, each time.
                    drop(frontend.route().unwrap());
                    calls.fetch_add(1, Ordering::SeqCst);
                    load.in_flight.into()
                })
            };
            let permit = frontend.with_policy(policy).route().unwrap();
            assert_eq!(in_flight(&table), [1]);
            assert!(
                calls.load(Ordering::SeqCst) > 10,
                "it was overtaken by itself"
            );
            drop(permit);
            assert_eq!(in_flight(&table), [0]);
        },
    );
}

#[test]
fn c7_ties_by_a_policy_of_ones_own_favour_no_engine() {
    let table = TestTable::with_engines(4);
    let frontend = table.join().unwrap();
    let frontend = frontend.with_policy(Policy::custom(|load| load.in_flight.into()));
    let mut wins = [0; 4];
    for _ in 0..400 {
        wins[frontend.route().unwrap().engine().index()] += 1;
    }
    assert_eq!(wins, [100; 4]);
}

#[test]
fn a_reaper_without_a_pause_sleeps_all_the_same() {
    let name = "a_reaper_without_a_pause_sleeps_all_the_same";
    succeeds_alone(
        name,
        || TestTable::with_engines(1),
        |path| {
            let table = Table::open(path).unwrap();
            let _reaper = table.reap_every(std::time::Duration::ZERO).unwrap();
            // How often its thread has waited, as the kernel counts it.
            let waits = || {
                let tasks = std::fs::read_dir("/proc/self/task").unwrap();
                let status = tasks
                    .map(|task| task.unwrap().path().join("status"))
                    .map(|status| std::fs::read_to_string(status).unwrap_or_default())
                    .find(|status| status.contains("headcount-reap"))
                    .unwrap_or_default();
                let mut lines = status.lines();
                lines
                    .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))
                    .map_or(0, |count| count.trim().parse::<u64>().unwrap())
            };
            eventually("a hundred waits of the reaper", || waits() > 100);
        },
    );
}
