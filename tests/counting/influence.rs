//! C8: an engine that may not be chosen has no influence on the choice.

use headcount::{Engine, Error, Request, Table};
use headcount_tests::{TestTable, ids, in_flight, spread};
use std::collections::HashSet;

#[test]
fn c8_an_engine_without_room_has_no_say_in_ties() {
    let requests = [
        (Engine::named("full").max_in_flight(1), Request::new()),
        (
            Engine::named("full").max_tokens(1),
            Request::new().tokens(1),
        ),
    ];
    for (full, request) in requests {
        let table = TestTable::new(&Table::options().engine(full));
        table.add(Engine::named("1")).unwrap();
        table.add(Engine::named("2")).unwrap();
        let frontend = table.join().unwrap();
        let route = || frontend.route_with(&request).unwrap();
        let pinned = |engine| frontend.route_with(&request.pin(engine)).unwrap();
        for _ in 0..20 {
            // The full engine is the last in the order of ties.
            let _full = (0..3)
                .map(|_| route())
                .find(|permit| permit.engine().index() == 0);
            let last = route().engine().index();
            let next = 3 - last;
            {
                // The full engine counts as many as the least loaded one, and still is no part of a tie.
                let _busy = (pinned(next), pinned(last), pinned(last));
                assert_eq!(route().engine().index(), next);
            }
            assert_eq!(
                route().engine().index(),
                next,
                "the order of ties stays: {request:?}"
            );
        }
    }
}

#[test]
fn c8_engines_that_may_not_be_chosen_have_no_influence() {
    let table = TestTable::new(
        &Table::options()
            .engines(6)
            .engine(Engine::named("full").max_in_flight(1)),
    );
    let frontend = table.join().unwrap();
    let full = frontend.route_with(&Request::new().pin(6)).unwrap();
    table.down(0).unwrap();
    table.drain(3).unwrap();
    let excluded = ids(&table, [5]);
    let request = Request::new().exclude(&excluded);
    let mut permits = Vec::new();
    for n in 0..300 {
        permits.push(frontend.route_with(&request).unwrap());
        let counts = table.in_flight();
        let (others, open) = (
            [counts[0], counts[3], counts[5]],
            [counts[1], counts[2], counts[4]],
        );
        assert_eq!(others, [0; 3]);
        assert!(spread(&open) <= 1, "after {n}: {counts:?}");
    }
    assert_eq!(table.in_flight(), [0, 100, 100, 0, 100, 0, 1]);
    drop(full);
}

#[test]
fn c8_an_engine_that_comes_back_starts_from_what_is_in_flight() {
    let table = TestTable::with_engines(3);
    let frontend = table.join().unwrap();
    let permits = frontend.route_many(30).unwrap();
    for _ in 0..3 {
        assert_eq!(table.remove(1).unwrap(), 10);
        assert_eq!(
            table.in_flight(),
            [10; 3],
            "it is leaving, and what is in flight stays counted"
        );
        let other = table.add(Engine::named("other")).unwrap();
        assert_eq!(
            other.index(),
            3,
            "its slot is not another engine's while it leaves"
        );
        assert_eq!(
            table.add(Engine::named("1")).unwrap().index(),
            1,
            "it comes back to its own slot"
        );
        assert_eq!(table.in_flight(), [10, 10, 10, 0]);
        table.remove(other).unwrap();
    }
    assert_eq!(frontend.route_many(3).unwrap().len(), 3);
    drop(permits);
    assert_eq!(table.in_flight(), [0; 3]);
    let engines: HashSet<_> = (0..3)
        .map(|_| frontend.route().unwrap().engine().index())
        .collect();
    assert_eq!(engines.len(), 3, "and then it is one of three again");
}

#[test]
fn c8_a_slot_is_reused_only_when_nothing_is_counted_on_it() {
    let table = TestTable::new(&Table::options().engines(2).max_engines(2));
    let frontend = table.join().unwrap();
    let old = frontend.route_with(&Request::new().pin(0)).unwrap();
    table.remove(0).unwrap();
    let full = table.add(Engine::named("new"));
    assert!(matches!(
        full,
        Err(Error::EnginesFull { max_engines: 2, .. })
    ));
    assert_eq!(
        old.engine_name(),
        "0",
        "a permit's number stands for the same engine"
    );
    drop(old);
    assert_eq!(table.add(Engine::named("new")).unwrap().index(), 0);
    assert_eq!(in_flight(&table), [0, 0]);
}
