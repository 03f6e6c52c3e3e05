//! K2: which processes are alive.

use crate::with_a_reaper_half_way;
use headcount::Table;
use headcount_tests::{Actor, CoreDump, TestTable, eventually, is_root, skipped};
use std::process::Command;
use std::thread;
use std::time::Duration;

#[test]
fn k2_a_stopped_process_is_alive() {
    let table = TestTable::with_engines(2);
    let mut actor = Actor::joined(table.path());
    assert_eq!(actor.burst(6), [3, 3]);
    actor.stop();
    thread::sleep(Duration::from_millis(100));
    assert_eq!(table.reap().unwrap().frontends, 0);
    assert_eq!(table.in_flight(), [3, 3]);
    assert!(table.view().frontends[0].alive);
    actor.resume();
    assert_eq!(actor.burst(2), [1, 1]);
    // SIGKILL needs no SIGCONT before it.
    actor.stop();
    actor.kill();
    assert_eq!(table.reap().unwrap().requests, 8);
}

#[test]
fn k2_a_crash_counts_as_life_until_its_core_is_written_and_that_can_be_bounded() {
    const BYTES: u64 = 64 << 20;
    let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap();
    if pattern.starts_with(['|', '/']) {
        return skipped(
            "k2_a_crash",
            "core dumps do not go to the directory of the process",
        );
    }
    for (how, written) in [
        (CoreDump::Whole, BYTES..u64::MAX),
        (CoreDump::WithoutMemory, 1..BYTES / 4),
        (CoreDump::None, 0..1),
    ] {
        let table = TestTable::with_engines(1);
        let directory = headcount_tests::directory();
        let mut actor = Actor::start_by(Actor::command().current_dir(directory.path()));
        actor.open(table.path());
        assert_eq!(actor.join(), 0);
        assert_eq!(actor.burst(3), [3]);
        let dump = || {
            let files = std::fs::read_dir(directory.path()).unwrap();
            files
                .map(|file| file.unwrap().metadata().unwrap().len())
                .sum::<u64>()
        };
        actor.crash(BYTES as usize, how);
        let mut size = 0;
        eventually("the end", || {
            let alive = table.view().frontends[0].alive;
            size = dump();
            !alive
        });
        assert!(written.contains(&size), "{how:?}: {size} bytes");
        assert_eq!(table.reap().unwrap().requests, 3, "{how:?}");
    }
}

#[test]
fn k2_a_living_pid_does_not_keep_a_dead_lane() {
    // An exec keeps the pid and ends the program that held the lane.
    let table = TestTable::with_engines(1);
    let mut child = {
        let mut actor = Actor::joined(table.path());
        assert_eq!(actor.burst(5), [5]);
        let pid = table.view().frontends[0].pid;
        assert_eq!(pid as i32, actor.pid());
        actor
    };
    // The program is gone, its process is not.
    child.exec_sleep();
    eventually("the reap", || {
        table.reap().unwrap().requests == 5 || table.in_flight() == [0]
    });
    // SAFETY: signal 0 only asks whether the process is there.
    let is_there = unsafe { libc::kill(child.pid(), 0) } == 0;
    assert!(is_there, "the pid is alive all the while");
}

#[test]
fn k2_liveness_is_seen_across_pid_namespaces() {
    let table = TestTable::with_engines(2);
    let mut command = Command::new("unshare");
    if !is_root() {
        command.args(["--user", "--map-current-user"]);
    }
    command.args(["--pid", "--fork", "--kill-child"]);
    let probe = Command::new("unshare")
        .args(command.get_args())
        .arg("true")
        .status();
    if !probe.is_ok_and(|status| status.success()) {
        skipped(
            "k2_liveness_is_seen_across_pid_namespaces",
            "no pid namespace can be made here",
        );
        return;
    }
    let mut inside = Actor::start_by(command.arg(Actor::program()));
    inside.open(table.path());
    assert_eq!(inside.join(), 0);
    assert_eq!(inside.burst(4), [2, 2]);
    assert_eq!(
        table.view().frontends[0].pid,
        1,
        "it believes that it is process 1"
    );
    assert_eq!(table.reap().unwrap().frontends, 0, "it is alive");

    let mut outside = Actor::joined(table.path());
    assert_eq!(outside.burst(2), [1, 1]);
    outside.kill();
    // Seen from inside, where that pid never was.
    assert_eq!(inside.join(), 1, "joins once more, and reaps before");
    eventually("the reap by the one inside", || table.in_flight() == [2, 2]);
    inside.kill();
    eventually("the death of the one inside", || {
        table.reap().unwrap().frontends > 0 || table.in_flight() == [0, 0]
    });
    assert_eq!(table.in_flight(), [0, 0]);
}

#[test]
fn k2_a_frontend_that_is_just_being_reaped_is_not_shown_as_alive() {
    let (table, _reaper, _stopped) = with_a_reaper_half_way();
    for reader in [
        Table::open_read_only(table.path()).unwrap(),
        (*table).clone(),
    ] {
        let frontend = &reader.view().frontends[0];
        assert_eq!((frontend.alive, frontend.in_flight), (false, 7));
        let found = reader.verify().unwrap();
        assert!(
            found.is_consistent() && found.busy.is_empty(),
            "a reap that goes on is no fault: {found:?}"
        );
    }
}
