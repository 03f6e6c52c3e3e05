//! K3: what a child's copies of its parent's values do.

use crate::descriptors;
use headcount::{Error, Frontend, Permit, Policy, RouteError, Table};
use headcount_tests::{TestTable, fork, in_flight, succeeds_alone, wait};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread;
use std::time::Duration;

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
            let ways: [Way; 2] = [
                |frontend| frontend.route().map(|permit| vec![permit]),
                |frontend| frontend.route_many(2),
            ];
            // For more than there is room for no policy is asked.
            let too_many = |frontend: &Frontend| frontend.route_many(usize::MAX).map(drop);
            for way in ways {
                FORK.store(true, Ordering::SeqCst);
                let routed = way(&forking);
                if CHILD.load(Ordering::SeqCst) == 0 {
                    let later = too_many(&forking);
                    let is_told = matches!(routed, Err(RouteError::Forked));
                    let is_told_later = matches!(later, Err(RouteError::Forked));
                    // SAFETY: ends this child.
                    unsafe { libc::_exit(i32::from(!(is_told && is_told_later))) };
                }
                let child = CHILD.swap(-1, Ordering::SeqCst);
                assert_eq!(wait(child), 0, "the child is told, in all ways");
                let own = routed.map_or(0, |permits| permits.len() as u32);
                assert_eq!(in_flight(&table), [1], "{own} were the parent's own");
            }
            assert!(matches!(
                too_many(&forking),
                Err(RouteError::Saturated { .. })
            ));
            drop(held);
            assert_eq!(in_flight(&table), [0]);
            assert!(table.verify().unwrap().faults.is_empty());
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
