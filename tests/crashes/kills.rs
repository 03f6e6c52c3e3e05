//! K1: a kill at any moment leaks nothing and blocks no process.

use headcount::{Error, Request, Table};
use headcount_tests::{
    Actor, Random, Rounds, TestTable, held, held_tokens, lanes_in_midst, spawn_all, spread,
};
use std::thread;
use std::time::Duration;

#[test]
fn k1_a_kill_at_any_moment_leaks_nothing_and_blocks_no_process() {
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
fn k1_a_reaper_may_die_anywhere() {
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
fn k1_requests_of_a_dead_frontend_weigh_nothing_after_a_reap() {
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
fn a_frontend_that_leaves_is_neither_shown_nor_reaped() {
    let table = TestTable::with_engines(2);
    let mut actor = Actor::joined(table.path());
    assert_eq!(actor.burst(4), [2, 2]);
    assert_eq!(table.view().frontends.len(), 1);
    actor.leave();
    let reader = Table::open_read_only(table.path()).unwrap();
    assert_eq!(reader.view().frontends, []);
    assert_eq!(table.reap().unwrap().frontends, 0);
}

#[test]
fn a_full_table_refuses_to_join_and_has_room_again_after_a_death() {
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
