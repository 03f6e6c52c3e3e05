//! C4 and C5: caps are exact.

use headcount::{Engine, Request, RouteError, Table};
use headcount_tests::{Actor, Rounds, Task, TestTable, race, spawn_all};
use std::collections::HashSet;
use std::thread;
use std::time::Duration;

#[test]
fn c4_an_engine_cap_is_never_exceeded_by_racing_processes() {
    let options = Table::options()
        .engine(Engine::named("a").max_in_flight(10))
        .engine(Engine::named("b").max_in_flight(3));
    race_for_places(&options, 13, 0, |counts, _| {
        counts[0] <= 10 && counts[1] <= 3
    });
}

#[test]
fn c4_the_tables_cap_is_never_exceeded_by_racing_processes() {
    let options = Table::options().engines(3).max_in_flight(11);
    race_for_places(&options, 11, 0, |counts, _| {
        counts.iter().sum::<u32>() <= 11
    });
}

#[test]
fn c5_a_token_cap_is_never_exceeded_by_racing_processes() {
    let options = Table::options()
        .engine(Engine::named("a").max_tokens(500))
        .engine(Engine::named("b").max_tokens(250));
    race_for_places(&options, 7, 100, |_, tokens| {
        tokens[0] <= 500 && tokens[1] <= 250
    });
}

#[test]
fn c5_the_tables_token_cap_is_never_exceeded_by_racing_processes() {
    let options = Table::options()
        .engines(2)
        .max_tokens(950)
        .max_in_flight(20);
    race_for_places(&options, 9, 100, |_, tokens| {
        tokens.iter().sum::<u32>() <= 950
    });
}

/// Three processes race for room for `places` requests of `tokens` tokens each. Stops them again and again, and
/// checks the caps.
fn race_for_places(
    options: &headcount::Options,
    places: u32,
    tokens: u32,
    within: impl Fn(&[u32], &[u32]) -> bool,
) {
    let table = TestTable::new(options);
    let mut actors = spawn_all(table.path(), 3);
    for actor in &mut actors {
        actor.churn(1);
    }
    let mut seen = HashSet::new();
    for _ in 0..300 {
        thread::sleep(Duration::from_micros(300));
        // Frozen, so that what we add up was true at one instant.
        actors.iter().for_each(Actor::stop);
        let (counts, tokens) = (table.in_flight(), table.tokens());
        actors.iter().for_each(Actor::resume);
        assert!(within(&counts, &tokens), "{counts:?} {tokens:?}");
        seen.insert(counts.iter().sum::<u32>());
    }
    assert!(seen.len() > 3, "there was no race to see: {seen:?}");
    for actor in &mut actors {
        actor.pause();
        actor.finish_all();
    }
    // All of the places can be had, and not one more.
    let mut rounds = Rounds::new(50, "bursts that met");
    while rounds.another() {
        let requests = places as usize;
        let raced = race::<Vec<u32>>(&mut actors, &Task::Burst { requests, tokens });
        rounds.fell(raced.met);
        let placed = raced.placed();
        assert_eq!(placed.iter().sum::<u32>(), places);
        assert_eq!(table.in_flight(), placed);
        assert!(within(&table.in_flight(), &table.tokens()));
        for actor in &mut actors {
            actor.finish_all();
        }
    }
}

#[test]
fn c4_a_full_engine_refuses_at_once_and_counts_nothing() {
    let table = TestTable::new(&Table::options().engine(Engine::named("a").max_in_flight(2)));
    let frontend = table.join().unwrap();
    let permits = frontend.route_many(2).unwrap();
    assert!(matches!(
        frontend.route(),
        Err(RouteError::Saturated { .. })
    ));
    let pinned = frontend.route_with(&Request::new().pin(0));
    assert!(matches!(pinned, Err(RouteError::Saturated { .. })));
    assert_eq!(table.in_flight(), [2]);
    drop(permits);
    assert!(frontend.route().is_ok());
}

#[test]
fn c4_a_cap_on_tokens_is_none_on_requests() {
    let table = TestTable::new(&Table::options().engines(2).max_tokens(100));
    let frontend = table.join().unwrap();
    assert_eq!(
        frontend.route_many(1_048_576 + 10).unwrap().len(),
        1_048_586
    );
    assert!(frontend.route_with(&Request::new().tokens(101)).is_err());
    let most = frontend.route_with(&Request::new().tokens(100)).unwrap();
    assert!(frontend.route_with(&Request::new().tokens(1)).is_err());
    drop(most);
    assert!(frontend.route_with(&Request::new().tokens(1)).is_ok());
}
