//! K3: what a forked child has of its parent, however and whenever it was forked.

use headcount::{Error, Frontend, Permit, Policy, RouteError, Table};
use headcount_tests::{
    TestTable, alone, eventually, fork, in_flight, is_running, skipped, succeeds_alone, wait,
};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
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

fn kill_self() -> ! {
    // SAFETY: this process is a scene that is to die.
    unsafe { libc::raise(libc::SIGKILL) };
    unreachable!("killed")
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

/// How many descriptors of a process lead to the file at `path`.
fn descriptors(pid: i32, path: &Path) -> usize {
    let all = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    all.filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok())
        .filter(|target| target == path)
        .count()
}

#[test]
fn k3_a_child_has_none_of_its_parents_lock_files() {
    let name = "k3_a_child_has_none_of_its_parents_lock_files";
    let table = || TestTable::with_engines(1);
    succeeds_alone(name, table, |path| {
        let own = || descriptors(std::process::id() as i32, path);
        let table = Table::open(path).unwrap();
        let _frontend = table.join().unwrap();
        let _publisher = table.publisher().unwrap();
        assert_eq!(own(), 2, "the table's own and the spare one for reaps");
        let child = fork(|| own() as i32 - 1);
        assert_eq!(wait(child), 0, "the child has the table's own");
    });
}

/// A way to route.
type Way = fn(&Frontend) -> Result<Vec<Permit>, RouteError>;

#[test]
fn k3_a_fork_inside_a_policy_counts_nothing_in_the_child() {
    static FORK: AtomicBool = AtomicBool::new(false);
    static CHILD: AtomicI32 = AtomicI32::new(-1);
    let name = "k3_a_fork_inside_a_policy_counts_nothing_in_the_child";
    succeeds_alone(
        name,
        || TestTable::with_engines(1),
        |path| {
            let table = Table::open(path).unwrap();
            let frontend = table.join().unwrap();
            let forking = frontend.clone().with_policy(Policy::custom(|_| {
                if FORK.swap(false, Ordering::SeqCst) {
                    // SAFETY: the child ends below.
                    CHILD.store(unsafe { libc::fork() }, Ordering::SeqCst);
                }
                0.0
            }));
            let held = frontend.route().unwrap();
            let ways: [Way; 3] = [
                |frontend| frontend.route().map(|permit| vec![permit]),
                |frontend| frontend.route_many(2),
                // More than there is room for.
                |frontend| frontend.route_many(usize::MAX),
            ];
            for way in ways {
                FORK.store(true, Ordering::SeqCst);
                let routed = way(&forking);
                if CHILD.load(Ordering::SeqCst) == 0 {
                    let is_told = matches!(routed, Err(RouteError::Forked));
                    // SAFETY: ends this child.
                    unsafe { libc::_exit(i32::from(!is_told)) };
                }
                let child = CHILD.swap(-1, Ordering::SeqCst);
                assert_eq!(wait(child), 0, "the child is told, in all ways");
                let own = routed.map_or(0, |permits| permits.len() as u32);
                assert_eq!(in_flight(&table), [1], "{own} were the parent's own");
            }
            drop(held);
            assert_eq!(in_flight(&table), [0]);
            assert!(table.verify().unwrap().faults.is_empty());
        },
    );
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

#[test]
fn k3_a_child_asks_its_copy_of_a_reaper_and_drops_it() {
    let name = "k3_a_child_asks_its_copy_of_a_reaper_and_drops_it";
    succeeds_alone(
        name,
        || TestTable::with_engines(1),
        |path| {
            let table = Table::open(path).unwrap();
            let reaper = Arc::new(table.reap_every(Duration::from_millis(1)).unwrap());
            let stop = AtomicBool::new(false);
            // In a child, whether that thread was asking at the fork.
            let asking = AtomicBool::new(false);
            let mut amid = 0;
            thread::scope(|scope| {
                scope.spawn(|| {
                    while !stop.load(Ordering::SeqCst) {
                        asking.store(true, Ordering::SeqCst);
                        assert_eq!(reaper.last_error(), None);
                        asking.store(false, Ordering::SeqCst);
                    }
                });
                for _ in 0..300 {
                    let child = fork(|| match reaper.last_error() {
                        None => i32::from(asking.load(Ordering::SeqCst)),
                        Some(_) => 2,
                    });
                    let status = wait(child);
                    let answered = libc::WIFEXITED(status) && libc::WEXITSTATUS(status) < 2;
                    assert!(answered, "the child is answered: {status:#x}");
                    amid += libc::WEXITSTATUS(status);
                }
                stop.store(true, Ordering::SeqCst);
            });
            assert!(amid > 10, "only {amid} forks while another thread asked");
            // A copy that a child drops.
            let reaper = Arc::into_inner(reaper).unwrap();
            let mut reaper = Some(reaper);
            let child = fork(|| {
                drop(reaper.take());
                0
            });
            assert_eq!(
                wait(child),
                0,
                "the child does not wait for a thread that it does not have"
            );
            drop(reaper);
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

/// On overlayfs a mapping keeps another file than the one that was opened.
#[test]
fn k2_a_frontend_lives_on_file_systems_whose_mappings_keep_no_locks() {
    let name = "k2_a_frontend_lives_on_file_systems_whose_mappings_keep_no_locks";
    succeeds_alone(
        name,
        || TestTable::with_engines(1),
        |path| {
            let directory = path.parent().unwrap();
            let Some(mount) = overlay(directory) else {
                return skipped(name, "overlayfs cannot be mounted here");
            };
            let table = Table::options().engines(1).max_frontends(1);
            let table = table.create(mount.join("table")).unwrap();
            let permit = table.join().unwrap().route().unwrap();
            let publisher = table.publisher().unwrap();
            let other = fork(|| {
                let other = Table::open(mount.join("table")).unwrap();
                let is_held = matches!(other.publisher(), Err(Error::PublisherHeld { .. }));
                let is_full = matches!(other.join(), Err(Error::FrontendsFull { .. }));
                i32::from(!(is_held && is_full && in_flight(&other) == [1]))
            });
            assert_eq!(wait(other), 0, "another process takes them for alive");
            drop((permit, publisher));
            assert_eq!(in_flight(&table), [0]);
            let dies = fork(|| {
                std::mem::forget(table.join().unwrap().route().unwrap());
                0
            });
            assert_eq!(wait(dies), 0);
            assert_eq!(
                table.reap().unwrap().requests,
                1,
                "and for dead when they are"
            );
        },
    );
}

/// Mounts an overlay below `directory`, in a mount namespace of this process's own.
fn overlay(directory: &Path) -> Option<PathBuf> {
    // SAFETY: changes the mounts that this process sees, and nothing else.
    if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
        return None;
    }
    let [lower, upper, work, mount] = ["lower", "upper", "work", "mount"].map(|part| {
        let part = directory.join(part);
        std::fs::create_dir(&part).unwrap();
        part
    });
    let (lower, upper, work) = (lower.display(), upper.display(), work.display());
    let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
    let run = |arguments: &[&str]| {
        let status = Command::new("mount")
            .args(arguments)
            .stderr(Stdio::null())
            .status();
        status.is_ok_and(|status| status.success())
    };
    let mounted = run(&["--make-rprivate", "/"])
        && run(&[
            "-t",
            "overlay",
            "overlay",
            "-o",
            &options,
            &mount.to_string_lossy(),
        ]);
    mounted.then_some(mount)
}

#[test]
fn k3_a_child_does_not_act_as_its_parents_deployment_and_does_not_give_it_back() {
    succeeds_alone(
        "k3_a_child_does_not_act_as_its_parents_deployment_and_does_not_give_it_back",
        || TestTable::with_engines(2),
        |path| {
            let table = Table::open(path).unwrap();
            let options = Table::options().engines(1);
            let mut deployment = Some(table.deploy().unwrap());
            let child = fork(|| {
                let applied = deployment.as_ref().unwrap().apply(&options);
                assert!(matches!(applied, Err(Error::Forked)), "{applied:?}");
                drop(deployment.take());
                assert!(matches!(table.apply(&options), Err(Error::Deployed { .. })));
                0
            });
            assert_eq!(wait(child), 0, "the child is refused");
            assert_eq!(table.view().deployment, Some(std::process::id()));
            assert_eq!(table.view().engines.len(), 2);
            let changes = deployment.as_ref().unwrap().apply(&options).unwrap();
            assert_eq!(changes.removed().collect::<Vec<_>>(), ["1"]);
        },
    );
}
