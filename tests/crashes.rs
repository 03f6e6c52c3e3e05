//! K1 to K4: processes are killed, stopped and forked at any moment, and the counts stay exact.

use headcount::{Error, Request, Table};
use headcount_tests::{
    Actor, CoreDump, ForkedAmid, Random, Rounds, Task, TestTable, Traced, eventually, held,
    held_tokens, is_root, lanes_in_midst, skipped, spawn_all, spread,
};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn k1_kill_at_any_moment_leaks_nothing_and_blocks_nobody() {
    let table = TestTable::new(&Table::options().engines(3).max_in_flight(10_000));
    let mut survivors = spawn_all(table.path(), 2);
    let mut random = Random::seeded();
    let mut leaks = 0;
    let mut rounds = Rounds::new(60, "deaths in the midst of an operation");
    while rounds.another() {
        let mut victims = spawn_all(table.path(), 2);
        for actor in survivors.iter_mut().chain(&mut victims) {
            actor.churn(2);
        }
        thread::sleep(Duration::from_millis(2));
        random.pause(3000);
        victims.into_iter().for_each(Actor::kill);
        for actor in &mut survivors {
            actor.pause();
        }
        // Those that live are in none.
        rounds.fell(!lanes_in_midst(&table).is_empty());
        let reaped = table.reap().unwrap();
        leaks += reaped.requests;
        assert_eq!(reaped.frontends, 2);
        assert_eq!(table.in_flight(), held(&mut survivors, 3));
        assert_eq!(table.tokens(), held_tokens(&mut survivors, 3));
        assert_eq!(table.reap().unwrap().frontends, 0);
    }
    assert!(leaks > 100, "the victims held only {leaks} requests");
    for actor in &mut survivors {
        actor.finish_all();
    }
    assert_eq!(table.in_flight(), [0; 3]);
    // The table's own count, too, is back at 0: all its 10,000 places are there.
    let all = table.join().unwrap().route_many(10_000).unwrap();
    assert_eq!(all.len(), 10_000);
}

#[test]
fn k1_the_reaper_may_die_anywhere_too() {
    let table = TestTable::with_engines(40);
    let mut survivor = Actor::joined(table.path());
    let mut random = Random::seeded();
    let mut rounds = Rounds::new(80, "reapers that were killed half-way");
    while rounds.another() {
        survivor.churn(1);
        let mut victims = spawn_all(table.path(), 3);
        for victim in &mut victims {
            victim.burst_with_tokens(800, 3);
            victim.churn(1);
        }
        let mut reaper = Actor::opened(table.path());
        reaper.reap_forever();
        victims.into_iter().for_each(Actor::kill);
        random.pause(150);
        reaper.kill();
        survivor.pause();
        let reaped = table.reap().unwrap();
        rounds.fell((1..2000).contains(&reaped.requests));
        assert_eq!(table.in_flight(), survivor.held());
        assert_eq!(table.tokens(), survivor.held_tokens());
    }
}

#[test]
fn k1_what_the_dead_held_no_longer_weighs() {
    let table = TestTable::with_engines(4);
    let frontend = table.join().unwrap();
    let mut victim = Actor::joined(table.path());
    for _ in 0..9 {
        victim.route_pinned(2);
    }
    victim.kill();
    assert_eq!(table.in_flight(), [0, 0, 9, 0], "dead, not reaped yet");
    let before: Vec<_> = (0..6).map(|_| frontend.route().unwrap()).collect();
    assert_eq!(table.in_flight(), [2, 2, 9, 2]);
    let reaped = table.reap().unwrap();
    assert_eq!((reaped.frontends, reaped.requests), (1, 9));
    let after = frontend.route_many(10).unwrap();
    assert_eq!(table.in_flight(), [4; 4]);
    drop((before, after));
}

#[test]
fn k1_reaping_happens_by_itself() {
    let full = |table: &TestTable| {
        let mut victim = Actor::joined(table.path());
        assert_eq!(victim.burst(4), [4]);
        victim.kill();
    };
    let options = Table::options().engines(1).max_in_flight(4);

    let table = TestTable::new(&options);
    let frontend = table.join().unwrap();
    full(&table);
    assert_eq!(table.in_flight(), [4]);
    assert!(frontend.route().is_ok(), "on saturation");

    let table = TestTable::new(&options);
    full(&table);
    assert_eq!(table.in_flight(), [4]);
    let _frontend = table.join().unwrap();
    assert_eq!(table.in_flight(), [0], "on join");

    let table = TestTable::new(&options);
    let reaper = table.reap_every(Duration::from_millis(5)).unwrap();
    full(&table);
    eventually("a reap in the background", || table.in_flight() == [0]);
    drop(reaper);
    full(&table);
    thread::sleep(Duration::from_millis(50));
    assert_eq!(table.in_flight(), [4], "the thread ends with its handle");
}

#[test]
fn k1_each_death_is_found_by_a_route_at_the_cap() {
    let table = TestTable::new(&Table::options().engines(1).max_in_flight(3));
    let mut survivor = Actor::joined(table.path());
    for _ in 0..3 {
        let mut victim = Actor::joined(table.path());
        assert_eq!(victim.burst(3), [3]);
        assert!(survivor.refused(&Task::route()).starts_with("Saturated"));
        victim.kill();
        eventually("the reap by a route", || {
            survivor.attempt(&Task::route()) == Ok(0)
        });
        survivor.finish_all();
    }
}

#[test]
fn k1_a_lane_is_as_good_as_new_after_its_holder_died() {
    let table = TestTable::new(&Table::options().engines(2).max_frontends(1).threads(0));
    for round in 0..30 {
        let mut actor = Actor::joined(table.path());
        let placed = actor.burst(11);
        assert_eq!(
            (table.in_flight(), spread(&placed)),
            (placed, 1),
            "round {round}"
        );
        actor.kill();
    }
    assert_eq!(table.reap().unwrap().requests, 11);
    assert_eq!(table.in_flight(), [0, 0]);
}

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
fn k3_a_child_never_acts_as_its_parent() {
    let table = TestTable::with_engines(2);
    let mut actor = Actor::joined(table.path());
    assert_eq!(actor.burst(6), [3, 3]);
    let told = actor.fork_and_use();
    assert_eq!(
        [told.route, told.publish, told.join],
        ["forked", "forked", "done"]
    );
    assert_eq!(
        table.in_flight(),
        [3, 3],
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
        // What it has closed by the time it is looked at is no link any more.
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

#[test]
fn k1_reaping_needs_no_descriptor() {
    let table = TestTable::with_engines(1);
    let mut reaper = Actor::opened(table.path());
    let mut victim = Actor::joined(table.path());
    assert_eq!(victim.burst(5), [5]);
    reaper.use_up_descriptors();
    victim.kill();
    assert_eq!(reaper.reap(), (1, 5));
    assert_eq!(table.in_flight(), [0]);
}

#[test]
fn k1_nor_does_reaping_a_table_of_ones_own_making() {
    let directory = headcount_tests::directory();
    let path = directory.path().join("table");
    let mut reaper = Actor::start();
    reaper.create(&path, 1);
    let mut victim = Actor::joined(&path);
    assert_eq!(victim.burst(5), [5]);
    reaper.use_up_descriptors();
    victim.kill();
    assert_eq!(reaper.reap(), (1, 5));
}

#[test]
fn k1_who_joins_waits_a_little_for_the_reaper_of_the_last_place() {
    let mut waited = 0;
    for _ in 0..20 {
        let table = TestTable::new(&Table::options().engines(2).max_frontends(1));
        let (mut reaper, stopped) = reaper_half_way(&table);
        let mut joiner = Actor::start_by(table.pass_to(&mut Actor::command()));
        joiner.inherit();
        joiner.tell(&Task::Join);
        thread::sleep(Duration::from_millis(2));
        stopped.goes_on();
        assert_eq!(reaper.answer::<(u64, u64)>(), (1, 7));
        match joiner.result::<usize>() {
            Ok(slot) => {
                assert_eq!(slot, 0);
                waited += 1;
            }
            // On a machine with much else to do: it has waited for as long as it waits.
            Err(error) => assert!(error.starts_with("FrontendsFull"), "{error}"),
        }
    }
    assert!(waited > 5, "{waited} of 20 waited");
}

#[test]
fn k4_of_several_that_open_at_once_each_finds_the_table_empty() {
    let table = TestTable::new(&Table::options().engines(1000).max_engines(1000));
    for _ in 0..30 {
        let mut dead = spawn_all(table.path(), 2);
        dead.iter_mut().for_each(|actor| drop(actor.burst(3000)));
        dead.into_iter().for_each(Actor::kill);
        thread::scope(|scope| {
            let open = || {
                let opened = Table::open(table.path()).unwrap();
                let view = opened.view();
                let counted: u32 = view.engines.iter().map(|e| e.in_flight).sum();
                assert_eq!((view.frontends.len(), counted), (0, 0));
            };
            (0..3).for_each(|_| drop(scope.spawn(open)));
        });
    }
}

/// A table with a dead frontend, and a reaper that has stopped between taking its lock and all else.
fn with_a_reaper_half_way() -> (TestTable, Actor, Traced) {
    let table = TestTable::with_engines(2);
    let (reaper, stopped) = reaper_half_way(&table);
    (table, reaper, stopped)
}

/// The same in a table of two engines in which no frontend has joined yet.
fn reaper_half_way(table: &TestTable) -> (Actor, Traced) {
    let mut reaper = Actor::opened(table.path());
    let mut dead = Actor::joined(table.path());
    assert_eq!(dead.burst(7), [4, 3]);
    dead.kill();
    let stopped = Traced::after_its_next_lock(&mut reaper, &Task::Reap);
    (reaper, stopped)
}

#[test]
fn k4_who_opens_waits_for_a_reaper_that_has_only_just_begun() {
    let mut random = Random::seeded();
    let mut waited = 0;
    for round in 0..30 {
        let (table, mut reaper, stopped) = with_a_reaper_half_way();
        let path = table.path().to_owned();
        let opener = thread::spawn(move || {
            let start = Instant::now();
            let opened = Table::open(path).unwrap();
            (opened.view(), start.elapsed())
        });
        random.pause(20_000);
        let waits = !opener.is_finished();
        // The reaper goes on, or dies where it is.
        match round % 2 {
            0 => {
                stopped.goes_on();
                assert_eq!(reaper.answer::<(u64, u64)>(), (1, 7));
            }
            _ => reaper.kill(),
        }
        let (view, took) = opener.join().unwrap();
        if waits && took < Duration::from_millis(200) {
            waited += 1;
            let counted: u32 = view.engines.iter().map(|e| e.in_flight).sum();
            assert_eq!((view.frontends, counted), (vec![], 0), "round {round}");
        } else {
            // On a machine with much else to do: it has waited for as long as it waits.
            assert!(took >= Duration::from_millis(200), "{took:?}, {view:?}");
        }
    }
    assert!(waited > 10, "{waited} of 30 fell into the reap");
}

#[test]
fn k4_a_reaper_that_stays_stopped_keeps_nobody_from_opening() {
    let (table, mut reaper, stopped) = with_a_reaper_half_way();
    let view = Table::open(table.path()).unwrap().view();
    let frontend = &view.frontends[0];
    assert_eq!((frontend.alive, frontend.in_flight), (false, 7));
    let frontend = table.join().unwrap();
    assert_eq!(frontend.slot(), 1);
    stopped.goes_on();
    assert_eq!(reaper.answer::<(u64, u64)>(), (1, 7));
    assert_eq!(table.in_flight(), [0, 0]);
}

#[test]
fn k2_one_who_is_just_being_reaped_is_not_shown_as_alive() {
    let (table, _reaper, _stopped) = with_a_reaper_half_way();
    for looker in [
        Table::open_read_only(table.path()).unwrap(),
        (*table).clone(),
    ] {
        let frontend = &looker.view().frontends[0];
        assert_eq!((frontend.alive, frontend.in_flight), (false, 7));
        let found = looker.verify().unwrap();
        assert!(
            found.is_consistent() && found.busy.is_empty(),
            "a reap that goes on is no fault: {found:?}"
        );
    }
}

#[test]
fn k4_when_all_are_dead_the_next_to_open_finds_the_table_empty() {
    let table = TestTable::with_engines(3);
    let mut rounds = Rounds::new(20, "deaths in the midst of an operation");
    while rounds.another() {
        let mut actors = spawn_all(table.path(), 3);
        for actor in &mut actors {
            actor.burst_with_tokens(30, 5);
            actor.churn(1);
        }
        thread::sleep(Duration::from_millis(5));
        actors.into_iter().for_each(Actor::kill);
        rounds.fell(!lanes_in_midst(&table).is_empty());
        let opened = Table::open(table.path()).unwrap();
        let view = opened.view();
        assert_eq!((view.frontends.len(), table.in_flight()), (0, vec![0; 3]));
        assert_eq!(table.tokens(), [0; 3]);
    }
}

#[test]
fn a_frontend_that_leaves_is_neither_shown_nor_reaped() {
    let table = TestTable::with_engines(2);
    let mut actor = Actor::joined(table.path());
    assert_eq!(actor.burst(4), [2, 2]);
    assert_eq!(table.view().frontends.len(), 1);
    actor.leave();
    let looker = Table::open_read_only(table.path()).unwrap();
    assert_eq!(looker.view().frontends, []);
    assert_eq!(table.reap().unwrap().frontends, 0);
}

#[test]
fn a_full_table_says_so_and_has_room_again_after_a_death() {
    let table = TestTable::new(&Table::options().engines(1).max_frontends(2));
    let mut actors = spawn_all(table.path(), 2);
    assert!(matches!(
        table.join(),
        Err(Error::FrontendsFull {
            max_frontends: 2,
            ..
        })
    ));
    assert_eq!(actors[0].burst(1), [1], "the others go on");
    actors.pop().unwrap().kill();
    let frontend = table.join().unwrap();
    drop(frontend.route_with(&Request::new()).unwrap());
    drop(frontend);
    assert!(table.join().is_ok(), "leaving makes room, too");
}
