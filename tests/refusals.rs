//! C4 and C5: which cap refuses, whether waiting can help, and how refusals are counted.
//!
//! Rules: docs/contract.md.

use headcount::{Cap, Engine, Frontend, Request, RouteError, Table};
use headcount_tests::{Task, TestTable, ids, spawn_all};
use std::thread;

/// What a frontend is told: the cap, and whether the request passes later.
fn refused(frontend: &Frontend, count: usize, request: &Request<'_>) -> (Cap, bool) {
    match frontend.route_many_with(count, request) {
        Err(RouteError::Saturated { cap, passes }) => (cap, passes),
        other => panic!("{other:?}"),
    }
}

/// The same of one request, which goes another way.
fn one_refused(frontend: &Frontend, request: &Request<'_>) -> (Cap, bool) {
    match frontend.route_with(request) {
        Err(RouteError::Saturated { cap, passes }) => (cap, passes),
        other => panic!("{other:?}"),
    }
}

#[test]
fn c4_saturated_names_the_cap_that_is_in_the_way() {
    let plain = Request::new();
    let big = Request::new().tokens(60);
    let options = Table::options()
        .engine(Engine::named("b").max_in_flight(1))
        .engine(Engine::named("a").max_in_flight(2).max_tokens(100))
        .engine(Engine::named("c").max_in_flight(0));
    let table = TestTable::new(&options);
    let frontend = table.join().unwrap();
    let _held = frontend.route_with(&big.pin(1)).unwrap();
    assert_eq!(
        one_refused(&frontend, &big.pin(1)),
        (Cap::EngineTokens, true)
    );
    let _other = frontend.route_with(&plain.pin(0)).unwrap();
    // "b" and "c" are full; "a" has a place, and not the tokens.
    assert_eq!(one_refused(&frontend, &big), (Cap::EngineTokens, true));
    assert_eq!(
        one_refused(&frontend, &plain.pin(0)),
        (Cap::EngineRequests, true)
    );
    let _last = frontend.route().unwrap();
    assert_eq!(one_refused(&frontend, &plain), (Cap::EngineRequests, true));
    assert_eq!(one_refused(&frontend, &big), (Cap::EngineRequests, true));

    let table = TestTable::new(&Table::options().engines(2).max_in_flight(2).max_tokens(100));
    let frontend = table.join().unwrap();
    let _held = frontend.route_with(&big).unwrap();
    assert_eq!(one_refused(&frontend, &big), (Cap::TableTokens, true));
    let _last = frontend.route().unwrap();
    assert_eq!(one_refused(&frontend, &plain), (Cap::TableRequests, true));
    assert_eq!(one_refused(&frontend, &big), (Cap::TableRequests, true));
}

#[test]
fn c4_saturated_says_whether_waiting_can_help() {
    let options = Table::options()
        .engine(Engine::named("a").max_in_flight(2).max_tokens(100))
        .engine(Engine::named("b").max_in_flight(3).max_tokens(200))
        .max_in_flight(4)
        .max_tokens(150);
    let table = TestTable::new(&options);
    let frontend = table.join().unwrap();
    let tokens = |tokens| Request::new().tokens(tokens);
    // Nothing is in flight.
    assert_eq!(
        one_refused(&frontend, &tokens(201)),
        (Cap::EngineTokens, false)
    );
    assert_eq!(
        one_refused(&frontend, &tokens(101).pin(0)),
        (Cap::EngineTokens, false)
    );
    assert_eq!(
        one_refused(&frontend, &tokens(101).exclude(&ids(&table, [1]))),
        (Cap::EngineTokens, false)
    );
    assert_eq!(
        one_refused(&frontend, &tokens(151)),
        (Cap::TableTokens, false)
    );
    assert_eq!(
        refused(&frontend, 6, &tokens(0)),
        (Cap::EngineRequests, false)
    );
    assert_eq!(
        refused(&frontend, 5, &tokens(0)),
        (Cap::TableRequests, false)
    );
    assert_eq!(
        refused(&frontend, 4, &tokens(70)),
        (Cap::EngineTokens, false)
    );
    assert_eq!(
        refused(&frontend, 3, &tokens(60)),
        (Cap::TableTokens, false)
    );
    assert_eq!(
        refused(&frontend, 3, &tokens(0).pin(0)),
        (Cap::EngineRequests, false)
    );
    // An engine that may come back counts.
    table.drain(1).unwrap();
    assert_eq!(
        one_refused(&frontend, &tokens(150)),
        (Cap::EngineTokens, true)
    );
    assert_eq!(
        refused(&frontend, 4, &tokens(0)),
        (Cap::EngineRequests, true)
    );
    table.up(1).unwrap();
    // What is too large is told so, also while something else is in the way.
    let _held = frontend.route_many(4).unwrap();
    assert_eq!(
        one_refused(&frontend, &tokens(151)),
        (Cap::TableTokens, false)
    );
    assert_eq!(
        one_refused(&frontend, &tokens(150)),
        (Cap::TableRequests, true)
    );
    assert_eq!(
        refused(&frontend, 1, &tokens(0)),
        (Cap::TableRequests, true)
    );
}

#[test]
fn c4_saturated_is_told_in_one_reading() {
    let table = TestTable::new(&Table::options().engine(Engine::named("a").max_tokens(40_000)));
    let frontend = table.join().unwrap();
    let error = frontend
        .route_with(&Request::new().tokens(50_000))
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "no engine that could take this request ever takes so many tokens, however little is in flight; send fewer, or raise `max_tokens` of an engine"
    );
    assert_eq!(Cap::EngineTokens.to_string(), "engine_tokens");
}

#[test]
fn refusals_are_counted_once_a_call_by_reason() {
    let options = Table::options()
        .engine(Engine::named("a").max_in_flight(2).max_tokens(100))
        .max_tokens(80);
    let table = TestTable::new(&options);
    let frontend = table.join().unwrap();
    let held = frontend.route_many(2).unwrap();
    for _ in 0..3 {
        frontend.route().unwrap_err();
    }
    frontend.route_many(2).unwrap_err();
    frontend
        .route_with(&Request::new().tokens(101))
        .unwrap_err();
    drop(held);
    frontend.route_with(&Request::new().tokens(81)).unwrap_err();
    frontend
        .route_with(&Request::new().exclude(&ids(&table, [0])))
        .unwrap_err();
    let custom = frontend
        .clone()
        .with_policy(headcount::Policy::custom(|_| 0.0));
    custom.route_with(&Request::new().tokens(81)).unwrap_err();
    // These are mistakes, and no refusals.
    frontend.route_with(&Request::new().pin(7)).unwrap_err();
    let refusals = table.view().refusals_total;
    assert_eq!(
        refusals.by_reason(),
        [
            ("engine_requests", 4),
            ("engine_tokens", 1),
            ("table_requests", 0),
            ("table_tokens", 2),
            ("unavailable", 1),
        ]
    );
    assert_eq!(refusals.total(), 8);
    assert!(
        table
            .dump()
            .unwrap()
            .contains("4 calls refused: engine_requests")
    );
}

#[test]
fn a_request_that_a_reap_made_room_for_was_not_refused() {
    let table = TestTable::new(&Table::options().engine(Engine::named("a").max_in_flight(1)));
    let frontend = table.join().unwrap();
    let mut dead = spawn_all(table.path(), 1).remove(0);
    assert_eq!(dead.route(), 0);
    dead.kill();
    let _permit = frontend.route().unwrap();
    assert_eq!(table.view().refusals_total.total(), 0);
}

#[test]
fn refusals_outlive_their_frontend_and_the_next_one_in_its_place() {
    let table = TestTable::new(
        &Table::options()
            .engine(Engine::named("a").max_in_flight(0))
            .max_frontends(1)
            .threads(3),
    );
    for ended in 1..=3 {
        let frontend = table.join().unwrap();
        frontend.route().unwrap_err();
        drop(frontend);
        let mut actor = spawn_all(table.path(), 1).remove(0);
        assert!(actor.refused(&Task::route()).starts_with("Saturated"));
        actor.kill();
        table.reap().unwrap();
        assert_eq!(table.view().refusals_total.engine_requests, 2 * ended);
    }
}

#[test]
fn refusals_of_all_threads_and_processes_add_up() {
    const EACH: usize = 10_000;
    let table = TestTable::new(&Table::options().engine(Engine::named("a").max_in_flight(0)));
    let frontends = [table.join().unwrap(), table.join().unwrap()];
    thread::scope(|scope| {
        for frontend in &frontends {
            // More threads than lanes, so that some share one.
            for _ in 0..6 {
                scope.spawn(|| {
                    for _ in 0..EACH {
                        frontend.route().unwrap_err();
                    }
                });
            }
        }
    });
    let refused = table.view().refusals_total.engine_requests;
    assert_eq!(refused, 12 * EACH as u64);
}
