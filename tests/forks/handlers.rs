//! K3: forks without fork handlers, and forks with the handlers of other libraries.

use crate::{descriptors, kill_self};
use headcount::{Permit, Table};
use headcount_tests::{
    TestTable, alone, eventually, fork, in_flight, is_running, succeeds_alone, wait,
};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

/// Forks a child by the system call itself, so that no fork handler runs. It lives until it is killed.
fn fork_without_handlers() -> i32 {
    let none: libc::c_long = 0;
    // SAFETY: the child makes system calls and nothing else.
    let child = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, none, none, none, none) };
    if child == 0 {
        loop {
            // SAFETY: ends this child if the test that should kill it does not get that far.
            unsafe { libc::alarm(120) };
            // SAFETY: sleeping touches nothing.
            unsafe { libc::pause() };
        }
    }
    assert!(child > 0, "forks");
    child as i32
}

/// Where a scene that is to die says which children it leaves.
fn note(path: &Path, children: &[i32]) {
    let children: Vec<_> = children.iter().map(i32::to_string).collect();
    std::fs::write(path.with_extension("children"), children.join(" ")).unwrap();
}

/// The children that a scene has left.
fn left_children(path: &Path) -> Vec<i32> {
    let text = std::fs::read_to_string(path.with_extension("children")).unwrap();
    text.split_whitespace()
        .map(|pid| pid.parse().unwrap())
        .collect()
}

/// A dead scene's requests are reaped while its children live; kills these then.
fn assert_reaped_beside_its_children(table: &TestTable, requests: u32) {
    let children = left_children(table.path());
    let living = || children.iter().filter(|pid| is_running(**pid));
    assert_eq!(living().count(), children.len(), "the children live");
    assert_eq!(table.in_flight().iter().sum::<u32>(), requests);
    table.reap().unwrap();
    let counts = table.in_flight();
    for &child in &children {
        // SAFETY: a process that a scene of ours has left, seen alive above.
        unsafe { libc::kill(child, libc::SIGKILL) };
    }
    assert_eq!(counts.iter().sum::<u32>(), 0, "{counts:?}");
}

#[test]
fn k3_a_fork_that_began_before_the_first_join_keeps_no_lock() {
    static IN_PREPARE: AtomicBool = AtomicBool::new(false);
    static JOINED: AtomicBool = AtomicBool::new(false);
    /// Another library's handler, registered before ours, that takes its time.
    unsafe extern "C" fn prepare() {
        IN_PREPARE.store(true, Ordering::SeqCst);
        while !JOINED.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(1));
        }
    }
    let name = "k3_a_fork_that_began_before_the_first_join_keeps_no_lock";
    let (table, ended) = alone(
        name,
        || TestTable::with_engines(1),
        |path| {
            // SAFETY: the handler touches atomics and sleeps.
            unsafe { libc::pthread_atfork(Some(prepare), None, None) };
            let forker = thread::spawn(|| {
                fork(|| {
                    thread::sleep(Duration::from_secs(60));
                    0
                })
            });
            eventually("the fork", || IN_PREPARE.load(Ordering::SeqCst));
            // The first use of the library in this process.
            let frontend = Table::open(path).unwrap().join().unwrap();
            std::mem::forget(frontend.route().unwrap());
            JOINED.store(true, Ordering::SeqCst);
            let child = forker.join().unwrap();
            // The test is in the window: no handler of ours has closed the child's copy of the spare one.
            assert_eq!(descriptors(child, path), 2);
            note(path, &[child]);
            kill_self();
        },
    );
    assert_eq!(ended.signal, Some(libc::SIGKILL), "{ended:?}");
    assert_reaped_beside_its_children(&table, 1);
}

#[test]
fn k3_a_child_without_fork_handlers_keeps_no_lock() {
    let name = "k3_a_child_without_fork_handlers_keeps_no_lock";
    let (table, ended) = alone(
        name,
        || TestTable::with_engines(1),
        |path| {
            let table = Table::open(path).unwrap();
            let frontend = table.join().unwrap();
            std::mem::forget(frontend.route_many(3).unwrap());
            let _publisher = table.publisher().unwrap();
            let _deployment = table.deploy().unwrap();
            note(path, &[fork_without_handlers()]);
            kill_self();
        },
    );
    assert_eq!(ended.signal, Some(libc::SIGKILL), "{ended:?}");
    drop(
        table
            .publisher()
            .expect("the dead publisher's place is free"),
    );
    drop(table.deploy().expect("and so is the deployment's"));
    assert_reaped_beside_its_children(&table, 3);
}

#[test]
fn k3_children_without_fork_handlers_keep_no_lock_that_is_just_taken() {
    let name = "k3_children_without_fork_handlers_keep_no_lock_that_is_just_taken";
    let (table, ended) = alone(
        name,
        || TestTable::new(&Table::options().engines(1).max_frontends(1024).threads(0)),
        |path| {
            const CHILDREN: usize = 60;
            let table = Table::open(path).unwrap();
            let stop = Arc::new(AtomicBool::new(false));
            let started = Arc::new(AtomicU32::new(0));
            let joining = {
                let (table, stop, started) =
                    (table.clone(), Arc::clone(&stop), Arc::clone(&started));
                thread::spawn(move || {
                    let mut frontends = Vec::new();
                    while !stop.load(Ordering::SeqCst) && frontends.len() < 800 {
                        started.fetch_add(1, Ordering::SeqCst);
                        frontends.push(table.join().unwrap());
                        thread::sleep(Duration::from_micros(100));
                    }
                    frontends
                })
            };
            let mut amid = 0;
            let children: Vec<_> = (0..CHILDREN)
                .map(|_| {
                    let before = started.load(Ordering::SeqCst);
                    eventually("a join", || {
                        joining.is_finished() || started.load(Ordering::SeqCst) > before
                    });
                    amid += u32::from(!joining.is_finished());
                    fork_without_handlers()
                })
                .collect();
            stop.store(true, Ordering::SeqCst);
            let frontends = joining.join().unwrap();
            assert!(amid > CHILDREN as u32 / 2, "only {amid} forks amid joins");
            let permits: Vec<Permit> = frontends.iter().map(|f| f.route().unwrap()).collect();
            note(path, &children);
            std::fs::write(path.with_extension("held"), permits.len().to_string()).unwrap();
            kill_self();
        },
    );
    assert_eq!(ended.signal, Some(libc::SIGKILL), "{ended:?}");
    let held = std::fs::read_to_string(table.path().with_extension("held")).unwrap();
    assert_reaped_beside_its_children(&table, held.parse().unwrap());
}

#[test]
fn k3_a_child_joins_in_a_fork_handler_that_runs_before_ours() {
    static TABLE: OnceLock<Table> = OnceLock::new();
    static ROUTED: AtomicBool = AtomicBool::new(false);
    /// Registered before the first table, so that it runs before the library's own.
    unsafe extern "C" fn in_child() {
        let Some(table) = TABLE.get() else { return };
        // SAFETY: ends this child should it hang.
        unsafe { libc::alarm(20) };
        if let Ok(frontend) = table.join()
            && let Ok(permit) = frontend.route()
        {
            std::mem::forget((frontend, permit));
            ROUTED.store(true, Ordering::SeqCst);
        }
    }
    let name = "k3_a_child_joins_in_a_fork_handler_that_runs_before_ours";
    succeeds_alone(
        name,
        || TestTable::with_engines(1),
        |path| {
            // SAFETY: the handler may use the library, which is what is tried.
            unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
            let table = Table::open(path).unwrap();
            let own = table.join().unwrap();
            let held = own.route().unwrap();
            let _ = TABLE.set(table.clone());
            // In the child ours has run, too, by the time that it gets here.
            let child = fork(|| {
                // Where the child's own lock would be gone, it would reap itself.
                let Ok(reaped) = table.reap() else { return 3 };
                let is_alive = reaped.frontends == 0 && in_flight(&table) == [2];
                // It changes engines and reaps, for which it needs descriptors of its own.
                let changes = table.set_weight(0, 1.0).is_ok();
                i32::from(!(ROUTED.load(Ordering::SeqCst) && is_alive && changes))
            });
            assert_eq!(wait(child), 0, "the child joins and stays alive");
            assert_eq!(table.reap().unwrap().frontends, 1, "the child's");
            drop(held);
            assert_eq!(in_flight(&table), [0]);
        },
    );
}

/// Another library's fork handlers, registered before the first table, which join in the thread that forks.
#[test]
fn k3_a_join_in_another_librarys_fork_handlers_returns() {
    static TABLE: OnceLock<Table> = OnceLock::new();
    static JOINED: AtomicU32 = AtomicU32::new(0);
    unsafe extern "C" fn handler() {
        if let Some(table) = TABLE.get() {
            JOINED.fetch_add(u32::from(table.join().is_ok()), Ordering::SeqCst);
        }
    }
    succeeds_alone(
        "k3_a_join_in_another_librarys_fork_handlers_returns",
        || TestTable::with_engines(1),
        |path| {
            // SAFETY: the handler only joins, and this process forks in one thread.
            let code = unsafe { libc::pthread_atfork(Some(handler), Some(handler), None) };
            assert_eq!(code, 0);
            let _ = TABLE.set(Table::open(path).unwrap());
            drop(TABLE.wait().join().unwrap());
            let child = fork(|| 0);
            assert_eq!(wait(child), 0);
            assert_eq!(
                JOINED.load(Ordering::SeqCst),
                2,
                "before the fork and after it"
            );
        },
    );
}

/// A thread that has another library's lock changes engines, while a fork waits for that lock in a handler of
/// that library.
#[test]
fn k3_a_fork_that_waits_for_another_librarys_lock_keeps_no_call_waiting() {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    static WAITS: AtomicBool = AtomicBool::new(false);
    unsafe extern "C" fn before_fork() {
        while TAKEN.load(Ordering::SeqCst) {
            WAITS.store(true, Ordering::SeqCst);
            thread::yield_now();
        }
    }
    succeeds_alone(
        "k3_a_fork_that_waits_for_another_librarys_lock_keeps_no_call_waiting",
        || TestTable::with_engines(1),
        |path| {
            // SAFETY: the handler only touches atomics and yields.
            let code = unsafe { libc::pthread_atfork(Some(before_fork), None, None) };
            assert_eq!(code, 0);
            let table = Table::open(path).unwrap();
            TAKEN.store(true, Ordering::SeqCst);
            thread::scope(|scope| {
                let forks = scope.spawn(|| fork(|| 0));
                eventually("the fork", || WAITS.load(Ordering::SeqCst));
                table.set_weight(0, 2.0).unwrap();
                drop(table.join().unwrap());
                drop(table.publisher().unwrap());
                drop(Table::open(path).unwrap());
                assert!(!forks.is_finished(), "it has waited all the while");
                TAKEN.store(false, Ordering::SeqCst);
                assert_eq!(wait(forks.join().unwrap()), 0);
            });
        },
    );
}
