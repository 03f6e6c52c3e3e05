//! K1 and K4: when dead frontends are reaped, and which calls wait for that.

use crate::with_a_reaper_half_way;
use headcount::Table;
use headcount_tests::{
    Actor, Random, Rounds, Task, TestTable, eventually, lanes_in_midst, reaper_half_way, spawn_all,
};
use std::thread;
use std::time::{Duration, Instant};

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
fn k1_reaping_a_table_of_ones_own_making_needs_no_descriptor() {
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
fn k1_a_joiner_waits_a_little_for_the_reaper_of_the_last_slot() {
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

#[test]
fn k4_an_opener_waits_for_a_reaper_that_has_only_just_begun() {
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
fn k4_a_reaper_that_stays_stopped_keeps_no_process_from_opening() {
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
