//! What each policy does with the same loads, and what a request can ask for.
//!
//! Rules: docs/contract.md.

use headcount::{
    Engine, EngineId, EngineStats, Frontend, Permit, Policy, Request, RouteError, Table,
};
use headcount_tests::{TestTable, ids, spread};
use std::panic::{RefUnwindSafe, UnwindSafe, catch_unwind};

/// A table of three engines with 6, 2 and 4 in flight.
fn uneven() -> (TestTable, Frontend, Vec<Permit>) {
    let table = TestTable::with_engines(3);
    let frontend = table.join().unwrap();
    let permits = [6, 2, 4]
        .into_iter()
        .enumerate()
        .flat_map(|(engine, count)| {
            let pinned = Request::new().pin(engine).tokens(10 * (3 - engine as u32));
            (0..count)
                .map(|_| frontend.route_with(&pinned).unwrap())
                .collect::<Vec<_>>()
        });
    let permits = permits.collect();
    (table, frontend, permits)
}

fn one(frontend: &Frontend, request: &Request<'_>) -> usize {
    frontend.route_with(request).unwrap().engine().index()
}

#[test]
fn handles_may_go_where_users_need_them() {
    fn is<T: Send + 'static>() {}
    fn is_shared<T: Send + Sync + Clone + 'static>() {}
    is::<Permit>();
    is::<headcount::Publisher>();
    is::<headcount::Reaper>();
    is_shared::<Frontend>();
    is_shared::<Table>();
    is_shared::<Policy>();
    fn is_unwind_safe<T: UnwindSafe + RefUnwindSafe>() {}
    is_unwind_safe::<Permit>();
    is_unwind_safe::<Frontend>();
    is_unwind_safe::<Table>();
}

#[test]
fn in_flight_goes_to_the_least_loaded() {
    let (table, frontend, _permits) = uneven();
    let _more = frontend.route_many(6).unwrap();
    assert_eq!(table.in_flight(), [6; 3]);
}

#[test]
fn weights_share_in_proportion() {
    let options = Table::options()
        .engine(Engine::named("small"))
        .engine(Engine::named("large").weight(3.0));
    let table = TestTable::new(&options);
    let frontend = table.join().unwrap();
    for n in 1..=20 {
        let permits = frontend.route_many(4 * n).unwrap();
        assert_eq!(table.in_flight(), [n as u32, 3 * n as u32]);
        drop(permits);
    }
    table.set_weight(1, 1.0).unwrap();
    let _permits = frontend.route_many(10).unwrap();
    assert_eq!(table.in_flight(), [5, 5]);
}

#[test]
fn tokens_balance_tokens() {
    let (table, frontend, permits) = uneven();
    drop(permits);
    let frontend = frontend.with_policy(Policy::tokens());
    let mut permits = Vec::new();
    for tokens in [500, 100, 100, 100, 100, 100, 200, 300] {
        permits.push(frontend.route_with(&Request::new().tokens(tokens)).unwrap());
    }
    assert_eq!(table.tokens().iter().sum::<u32>(), 1500);
    assert!(spread(&table.tokens()) <= 200, "{:?}", table.tokens());
    drop(permits);
    assert_eq!(table.tokens(), [0; 3]);
}

#[test]
fn round_robin_takes_chosen_whatever_the_loads_are() {
    let (_table, frontend, _permits) = uneven();
    let frontend = frontend.with_policy(Policy::round_robin());
    let chosen: Vec<_> = (0..9).map(|_| one(&frontend, &Request::new())).collect();
    assert_eq!(chosen[..3], chosen[3..6]);
    assert_eq!(chosen[..3], chosen[6..]);
    let mut first = chosen[..3].to_vec();
    first.sort_unstable();
    assert_eq!(first, [0, 1, 2]);
}

#[test]
fn power_of_two_never_takes_the_most_loaded_and_keeps_to_what_is_open() {
    let (table, frontend, _permits) = uneven();
    let frontend = frontend.with_policy(Policy::power_of_two());
    let mut wins = [0; 3];
    (0..3000).for_each(|_| wins[one(&frontend, &Request::new())] += 1);
    assert_eq!(wins[0], 0, "it is the worse one of any two");
    assert!(
        (1800..2200).contains(&wins[1]),
        "it wins two of the three pairs: {wins:?}"
    );
    table.down(1).unwrap();
    assert_eq!(
        one(&frontend, &Request::new().exclude(&ids(&table, [2]))),
        0
    );
    assert_eq!(one(&frontend, &Request::new().prefer(0, 100)), 0);
}

#[test]
fn a_custom_policy_sees_what_there_is_to_see() {
    let (table, frontend, _permits) = uneven();
    let mut publisher = table.publisher().unwrap();
    let busy = EngineStats::new().waiting(9);
    publisher.publish(&[EngineStats::default(), busy]).unwrap();
    let policy = Policy::custom(|engine| {
        assert_eq!(engine.weight, 1.0);
        assert_eq!(engine.tokens, [180, 40, 40][engine.engine.index()]);
        assert_eq!(engine.stats.is_some(), engine.engine.index() < 2);
        f64::from(engine.in_flight) + engine.stats.map_or(0.0, |s| s.waiting.into())
    });
    let frontend = frontend.with_policy(policy);
    assert_eq!(one(&frontend, &Request::new()), 2);
    let nonsense = frontend.clone().with_policy(Policy::custom(|engine| {
        if engine.engine.index() == 1 {
            5.0
        } else {
            f64::NAN
        }
    }));
    assert_eq!(
        one(&nonsense, &Request::new()),
        1,
        "what is not a number comes last"
    );
    let panics = frontend.with_policy(Policy::custom(|_| panic!("this is meant to fail")));
    let before = table.in_flight();
    let panicked = catch_unwind(|| panics.route());
    assert!(panicked.is_err());
    assert_eq!(table.in_flight(), before, "and a panic counts nothing");
    assert!(table.join().unwrap().route().is_ok());
}

#[test]
fn a_request_can_be_pinned_and_kept_from_engines() {
    let (table, frontend, _permits) = uneven();
    assert_eq!(one(&frontend, &Request::new().pin(0)), 0);
    assert_eq!(
        one(&frontend, &Request::new().exclude(&ids(&table, [1]))),
        2
    );
    assert_eq!(
        one(&frontend, &Request::new().exclude(&ids(&table, [1, 2]))),
        0
    );
    assert!(
        frontend
            .route_with(&Request::new().exclude(&ids(&table, [0, 1, 2])))
            .is_err()
    );
    assert!(
        frontend
            .route_with(&Request::new().pin(1).exclude(&ids(&table, [1])))
            .is_err()
    );
    assert_eq!(
        one(&frontend, &Request::new().exclude(&[EngineId::new(77, 2)])),
        1,
        "one that is not there is no matter"
    );
    let permit = frontend
        .route_with(&Request::new().pin(2).tokens(7))
        .unwrap();
    assert_eq!((permit.tokens(), table.tokens()[2]), (7, 47));
}

#[test]
fn a_preferred_engine_wins_unless_it_is_too_loaded() {
    let (table, frontend, _permits) = uneven();
    // 6, 2 and 4 in flight.
    assert_eq!(
        one(&frontend, &Request::new().prefer(0, 4)),
        0,
        "no more than 4 above the least"
    );
    assert_eq!(one(&frontend, &Request::new().prefer(0, 3)), 1);
    assert_eq!(one(&frontend, &Request::new().prefer(2, 2)), 2);
    assert_eq!(
        one(&frontend, &Request::new().prefer(99, 8)),
        1,
        "one that is not there is no matter"
    );
    table.down(0).unwrap();
    assert_eq!(one(&frontend, &Request::new().prefer(0, 4)), 1);
}

/// A way to place a request.
type Way = fn(&Frontend) -> Result<Permit, RouteError>;

/// A request that may go anywhere is placed by counts alone where they say all, with tokens or without. So
/// it is shown for each of these that they are not alone where there is more to consider.
const PLAIN: [Way; 3] = [
    |frontend| frontend.route(),
    |frontend| frontend.route_with(&Request::new()),
    |frontend| frontend.route_with(&Request::new().tokens(812)),
];

#[test]
fn a_plain_route_minds_weights() {
    for route in PLAIN {
        let table = Table::options()
            .engine(Engine::named("one"))
            .engine(Engine::named("two").weight(2.0))
            .memfd()
            .unwrap();
        let frontend = table.join().unwrap();
        let _permits: Vec<_> = (0..30).map(|_| route(&frontend).unwrap()).collect();
        let counts: Vec<_> = (table.view().engines.iter())
            .map(|engine| engine.in_flight)
            .collect();
        assert_eq!(counts, [10, 20]);
    }
}

#[test]
fn a_plain_route_minds_that_all_are_closed() {
    for route in PLAIN {
        let table = Table::options().engines(2).memfd().unwrap();
        let frontend = table.join().unwrap();
        table.drain(0).unwrap();
        table.down(1).unwrap();
        let refused = route(&frontend).unwrap_err();
        assert!(matches!(refused, RouteError::Unavailable(_)), "{refused}");
    }
}

#[test]
fn a_plain_route_minds_that_some_are_closed() {
    for route in PLAIN {
        let (table, frontend, _permits) = uneven();
        table.down(1).unwrap();
        let second = route(&frontend).unwrap();
        assert_eq!(second.engine().index(), 2, "the least loaded one is down");
        table.drain(2).unwrap();
        assert_eq!(route(&frontend).unwrap().engine().index(), 0);
    }
}

#[test]
fn a_plain_route_minds_pressure() {
    for route in PLAIN {
        let table = Table::options().engines(2).memfd().unwrap();
        let frontend = table.join().unwrap();
        let _permits =
            [0, 1].map(|engine| frontend.route_with(&Request::new().pin(engine)).unwrap());
        let pressed = EngineStats::new().waiting(9).running(9).kv_usage(1.0);
        let stats = [pressed, EngineStats::default()];
        table.publisher().unwrap().publish(&stats).unwrap();
        // One in flight there weighs as much as four here.
        let permits: Vec<_> = (0..3).map(|_| route(&frontend).unwrap()).collect();
        assert!(permits.iter().all(|permit| permit.engine().index() == 1));
    }
}

#[test]
fn a_plain_route_minds_the_policy() {
    let (_table, frontend, _permits) = uneven();
    // The engine that is least loaded by count has the most tokens but one.
    let by_tokens = frontend.with_policy(Policy::custom(|engine| (200 - engine.tokens).into()));
    for route in PLAIN {
        assert_eq!(route(&by_tokens).unwrap().engine().index(), 0);
    }
}

#[test]
fn a_plain_route_minds_what_the_least_loaded_may_have_in_tokens() {
    let table = TestTable::new(
        &Table::options()
            .engine(Engine::named("small").max_tokens(100))
            .engine(Engine::named("large")),
    );
    let frontend = table.join().unwrap();
    let of = |tokens| frontend.route_with(&Request::new().tokens(tokens)).unwrap();
    let lead = frontend.route_many_with(3, &Request::new().pin(1)).unwrap();
    let first = of(60);
    assert_eq!(first.engine().index(), 0, "none to three");
    let past_it = of(41);
    assert_eq!(past_it.engine().index(), 1, "101 do not fit");
    let last = of(40);
    assert_eq!(last.engine().index(), 0, "100 do");
    assert_eq!(table.tokens(), [100, 41]);
    assert_eq!(
        frontend.route().unwrap().engine().index(),
        0,
        "none always do"
    );
    let others: Vec<_> = (0..5).map(|_| of(1).engine().index()).collect();
    assert_eq!(others, [1; 5], "it is the least loaded, and full");
    drop((lead, past_it));
    table.down(1).unwrap();
    let refused = frontend.route_with(&Request::new().tokens(1)).unwrap_err();
    assert!(matches!(refused, RouteError::Saturated { .. }), "{refused}");
    drop(first);
    let again = of(60);
    assert_eq!((again.engine().index(), table.tokens()), (0, vec![100, 0]));
}

#[test]
fn a_plain_route_minds_a_cap_on_tokens_that_was_changed() {
    let table = TestTable::with_engines(2);
    let frontend = table.join().unwrap();
    table.set_caps(0, None, Some(10)).unwrap();
    let burst = |tokens| frontend.route_many_with(8, &Request::new().tokens(tokens));
    let permits = burst(5).unwrap();
    assert_eq!(
        (table.in_flight(), table.tokens()),
        (vec![2, 6], vec![10, 30])
    );
    table.set_caps(0, None, None).unwrap();
    let more = burst(5).unwrap();
    assert_eq!(table.in_flight(), [8, 8]);
    drop((permits, more));
    assert_eq!(
        (table.in_flight(), table.tokens()),
        (vec![0; 2], vec![0; 2])
    );
}

#[test]
fn a_plain_route_counts_its_tokens_under_the_tables_cap() {
    let table = TestTable::new(&Table::options().engines(2).max_tokens(100));
    let frontend = table.join().unwrap();
    let of = |tokens| frontend.route_with(&Request::new().tokens(tokens));
    let (a, b) = (of(60).unwrap(), of(40).unwrap());
    assert_eq!((a.tokens(), b.tokens()), (60, 40));
    assert_ne!(a.engine(), b.engine());
    assert!(matches!(of(1), Err(RouteError::Saturated { .. })));
    assert_eq!(table.in_flight(), [1, 1], "a refusal counts nothing");
    drop(a);
    assert_eq!(of(60).unwrap().tokens(), 60);
}
