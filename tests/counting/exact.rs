//! C1 and C5: counts and tokens are the sums of the permits.

use crate::churn_for_a_while;
use headcount::{EngineStats, Request, RouteError};
use headcount_tests::{Rounds, TestTable, held, held_tokens, spawn_all};

#[test]
fn c1_in_flight_is_the_permits_of_all_processes() {
    let table = TestTable::with_engines(5);
    let mut actors = spawn_all(table.path(), 3);
    let mut rounds = Rounds::new(12, "all of them at work");
    while rounds.another() {
        rounds.fell(churn_for_a_while(&mut actors));
        assert_eq!(table.in_flight(), held(&mut actors, 5));
    }
    let by_frontend = table.view().frontends;
    for (actor, frontend) in actors.iter_mut().zip(by_frontend) {
        let permits: u32 = actor.held().iter().sum();
        assert_eq!(frontend.in_flight, u64::from(permits), "by the ledgers");
        actor.finish_all();
    }
    assert_eq!(table.in_flight(), [0; 5]);
}

#[test]
fn c1_no_publication_and_no_reap_changes_a_count() {
    let table = TestTable::with_engines(3);
    let frontend = table.join().unwrap();
    let permits = frontend.route_many(7).unwrap();
    let before = table.in_flight();
    let mut publisher = table.publisher().unwrap();
    for waiting in [0, 1000, u32::MAX] {
        let stats = EngineStats::new()
            .waiting(waiting)
            .running(waiting)
            .kv_usage(1.0)
            .in_flight(waiting);
        publisher.publish(&[stats; 3]).unwrap();
        table.reap().unwrap();
        assert_eq!(table.in_flight(), before);
    }
    drop(permits);
    assert_eq!(table.in_flight(), [0; 3]);
}

#[test]
fn c5_tokens_are_exact_like_requests() {
    let table = TestTable::with_engines(3);
    let mut actors = spawn_all(table.path(), 3);
    let mut rounds = Rounds::new(12, "all of them at work");
    while rounds.another() {
        rounds.fell(churn_for_a_while(&mut actors));
        assert_eq!(table.tokens(), held_tokens(&mut actors, 3));
        assert_eq!(table.in_flight(), held(&mut actors, 3));
    }
    for actor in &mut actors {
        actor.finish_all();
    }
    assert_eq!(
        (table.tokens(), table.in_flight()),
        (vec![0; 3], vec![0; 3])
    );
}

#[test]
fn c5_an_engine_counts_up_to_its_last_token_and_no_further() {
    let table = TestTable::with_engines(1);
    let frontend = table.join().unwrap();
    let most = frontend
        .route_with(&Request::new().tokens(u32::MAX))
        .unwrap();
    let more = frontend.route_with(&Request::new().tokens(1));
    assert!(
        matches!(more, Err(RouteError::Saturated { .. })),
        "2^32 tokens cannot be counted"
    );
    let free = frontend.route().unwrap();
    assert_eq!(
        (table.tokens(), table.in_flight()),
        (vec![u32::MAX], vec![2])
    );
    drop((most, free));
    assert_eq!((table.tokens(), table.in_flight()), (vec![0], vec![0]));
}
