//! C6: `route_many` places all requests or none.

use headcount::{Engine, Request, RouteError, Table};
use headcount_tests::{Rounds, Task, TestTable, race, spawn_all};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

#[test]
fn c6_route_many_places_as_that_many_routes_would() {
    let table = TestTable::with_engines(4);
    let frontend = table.join().unwrap();
    let lead: Vec<_> = (0..3)
        .map(|_| frontend.route_with(&Request::new().pin(2)).unwrap())
        .collect();
    let permits = frontend.route_many(13).unwrap();
    assert_eq!(table.in_flight(), [4, 4, 4, 4]);
    drop((permits, lead));
    assert!(frontend.route_many(0).unwrap().is_empty());
}

#[test]
fn c6_route_many_places_all_or_none() {
    let options = Table::options()
        .engine(Engine::named("a").max_in_flight(3).max_tokens(1000))
        .engine(Engine::named("b").max_in_flight(4))
        .max_in_flight(6);
    let table = TestTable::new(&options);
    let frontend = table.join().unwrap();
    for too_many in [7, 8, 1000, usize::MAX] {
        assert!(matches!(
            frontend.route_many(too_many),
            Err(RouteError::Saturated { .. })
        ));
        assert_eq!(table.in_flight(), [0, 0]);
    }
    let big = Request::new().tokens(600);
    assert!(matches!(
        frontend.route_many_with(6, &big),
        Err(RouteError::Saturated { .. })
    ));
    assert_eq!(frontend.route_many_with(5, &big).unwrap().len(), 5);
    assert_eq!(frontend.route_many(6).unwrap().len(), 6);
    for engine in [0, 1] {
        table.down(engine).unwrap();
    }
    assert!(matches!(
        frontend.route_many(2),
        Err(RouteError::Unavailable(_))
    ));
}

#[test]
fn c6_a_refused_route_many_takes_no_place_from_others() {
    let table = TestTable::new(&Table::options().engine(Engine::named("a").max_in_flight(2)));
    let frontend = table.join().unwrap();
    let _one = frontend.route().unwrap();
    let (stop, attempts) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                assert!(frontend.route_many(2).is_err());
                attempts.fetch_add(1, Ordering::Relaxed);
            }
        });
        let mut refused = 0;
        let mut rounds = Rounds::new(500, "refusals meanwhile");
        while rounds.another() {
            let before = attempts.load(Ordering::Relaxed);
            refused += (0..100).filter(|_| frontend.route().is_err()).count();
            rounds.fell(attempts.load(Ordering::Relaxed) > before);
        }
        stop.store(true, Ordering::Relaxed);
        assert_eq!(refused, 0, "there was a place all the while");
    });
}

#[test]
fn c6_racing_route_many_is_still_all_or_none() {
    let table = TestTable::new(&Table::options().engine(Engine::named("a").max_in_flight(10)));
    let mut actors = spawn_all(table.path(), 3);
    let mut rounds = Rounds::new(200, "calls that met");
    while rounds.another() {
        let raced = race::<Vec<u32>>(&mut actors, &Task::RouteMany { requests: 6 });
        rounds.fell(raced.met);
        let mut placed = 0;
        for answer in &raced.answers {
            match answer {
                Ok(each) if *each == [6] => placed += 6,
                Err(refused) if refused.starts_with("Saturated") => {}
                other => panic!("{other:?}"),
            }
        }
        // One of them, or none if two were in each other's way.
        assert!(placed <= 6);
        assert_eq!(table.in_flight(), [placed]);
        for actor in &mut actors {
            actor.finish_all();
        }
    }
}
