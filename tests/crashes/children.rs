//! K3: a child never acts as its parent.

use headcount::Table;
use headcount_tests::{Actor, ForkedAmid, Rounds, TestTable};

#[test]
fn k3_a_child_never_acts_as_its_parent() {
    let table = TestTable::with_engines(2);
    let mut actor = Actor::joined(table.path());
    assert_eq!(actor.burst(6), [3, 3]);
    let told = actor.fork_and_use();
    assert_eq!(
        [told.route, told.set_tokens, told.publish, told.join],
        ["forked", "forked", "forked", "done"]
    );
    assert_eq!(
        (table.in_flight(), table.tokens()),
        (vec![3, 3], vec![0, 0]),
        "what the child dropped was not its own"
    );
    assert_eq!(actor.held(), [3, 3]);
    assert_eq!(actor.burst(2), [1, 1], "the parent goes on");
    actor.finish_all();
    assert_eq!(table.in_flight(), [0, 0]);
}

#[test]
fn k3_a_child_that_lives_on_does_not_keep_its_dead_parent_alive() {
    let table = TestTable::with_engines(2);
    let mut actor = Actor::joined(table.path());
    actor.become_publisher();
    actor.deploy();
    assert_eq!(actor.burst(6), [3, 3]);
    let child = actor.fork_and_live();
    actor.kill();
    let reaped = table.reap().unwrap();
    assert_eq!((reaped.frontends, reaped.requests), (1, 6));
    assert!(
        table.publisher().is_ok(),
        "nor does it keep the publisher's place"
    );
    assert!(table.deploy().is_ok(), "nor that of the deployment");
    // SAFETY: signals the child that the actor has told us of; its parent is gone, so it was adopted.
    let was_alive = unsafe { libc::kill(child, libc::SIGKILL) } == 0;
    assert!(was_alive, "the child lived all the while");
}

#[test]
fn k3_a_program_that_was_started_gets_none_of_its_starters_files() {
    let table = TestTable::with_engines(2);
    let mut actor = Actor::joined(table.path());
    actor.become_publisher();
    assert_eq!(actor.burst(6), [3, 3]);
    let program = actor.start_sleep();
    let files = std::fs::read_dir(format!("/proc/{program}/fd")).unwrap();
    let files: Vec<_> = files
        // A descriptor that was closed meanwhile is no link any more.
        .filter_map(|link| std::fs::read_link(link.ok()?.path()).ok())
        .filter(|file| file == table.path())
        .collect();
    actor.kill();
    let reaped = table.reap().unwrap();
    // SAFETY: signals the program that the actor has told us of; its parent is gone, so it was adopted.
    let was_there = unsafe { libc::kill(program, libc::SIGKILL) } == 0;
    assert!(was_there, "it went on all the while");
    assert_eq!((reaped.frontends, reaped.requests), (1, 6));
    assert!(table.publisher().is_ok());
    assert_eq!(files, Vec::<std::path::PathBuf>::new());
}

#[test]
fn k3_fork_while_others_join_keeps_no_lock() {
    // Forks go on in one thread while frontends join and leave in another.
    let table = TestTable::with_engines(1);
    let mut actor = Actor::opened(table.path());
    let ForkedAmid { amid, children } = actor.fork_while_joining(150);
    assert!(children.len() > 100);
    println!("{amid} forks amid a join");
    assert!(amid > 0, "no fork fell into a join");
    actor.kill();
    let reaped = table.reap().unwrap();
    let frontends = table.view().frontends;
    for child in children {
        // SAFETY: as above.
        unsafe { libc::kill(child, libc::SIGKILL) };
    }
    assert_eq!(frontends, [], "{reaped:?}");
}

#[test]
fn k3_forks_of_one_thread_keep_no_lock_that_others_are_just_taking() {
    // Four threads join and leave while one forks; then the parent is killed and its children live.
    let mut rounds = Rounds::new(6, "forks amid a join");
    while rounds.another() {
        let table = TestTable::new(&Table::options().engines(1).max_frontends(16));
        let mut actor = Actor::joined(table.path());
        assert_eq!(actor.burst(3), [3]);
        let ForkedAmid { amid, children } = actor.fork_while_joining(40);
        rounds.fell(amid > 0);
        actor.kill();
        let reaped = table.reap().unwrap();
        let view = table.view();
        for child in children {
            // SAFETY: as above.
            unsafe { libc::kill(child, libc::SIGKILL) };
        }
        assert_eq!(
            (view.frontends, table.in_flight()),
            (vec![], vec![0]),
            "{reaped:?}"
        );
        assert!(view.publisher.is_none());
    }
}

#[test]
fn k3_a_child_of_a_process_that_just_opens_its_first_table_does_not_hang() {
    let table = TestTable::with_engines(1);
    let mut rounds = Rounds::new(40, "forks amid the opening");
    while rounds.another() {
        let mut actor = Actor::start();
        rounds.fell(actor.fork_while_opening(table.path()));
    }
}

#[test]
fn k3_a_child_of_a_process_that_is_just_reaping_does_not_hang() {
    let table = TestTable::with_engines(1);
    // Living frontends, so that a pass takes a while.
    let _living: Vec<_> = (0..40).map(|_| table.join().unwrap()).collect();
    let mut actor = Actor::opened(table.path());
    actor.fork_while_reaping(60);
}
