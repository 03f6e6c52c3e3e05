//! C2 with weights: a request goes to the engine of the least `(in_flight + 1) / weight`, so that single requests,
//! a few of them and bursts all find the engine that serves them best.
//!
//! Rules: docs/contract.md.

use headcount::{Engine, EngineStats, Frontend, Permit, Policy, Request, Table};
use headcount_tests::{Task, TestTable, ids, spawn_all};

/// A table whose engines have these weights, and a frontend in it.
fn weighted(weights: &[f32]) -> (TestTable, Frontend) {
    let engines = weights.iter().enumerate();
    let options = engines.fold(Table::options(), |options, (n, &weight)| {
        options.engine(Engine::named(n.to_string()).weight(weight))
    });
    let table = TestTable::new(&options);
    let frontend = table.join().unwrap();
    (table, frontend)
}

fn engine_of(frontend: &Frontend, request: &Request<'_>) -> usize {
    frontend.route_with(request).unwrap().engine().index()
}

/// How often each engine gets a request that finishes before the next one arrives.
fn singles(table: &TestTable, frontend: &Frontend, count: usize) -> Vec<usize> {
    let mut wins = vec![0; table.in_flight().len()];
    for _ in 0..count {
        wins[frontend.route().unwrap().engine().index()] += 1;
    }
    wins
}

#[test]
fn c2_single_requests_go_to_the_engine_of_the_greatest_weight() {
    let (table, frontend) = weighted(&[1.0, 4.0]);
    assert_eq!(singles(&table, &frontend, 1000), [0, 1000]);
    table.set_weight(0, 8.0).unwrap();
    assert_eq!(singles(&table, &frontend, 1000), [1000, 0]);
}

#[test]
fn c2_a_few_in_flight_are_as_many_as_the_weights_say() {
    let (table, frontend) = weighted(&[4.0, 1.0]);
    let allowed: [&[[u32; 2]]; 6] = [
        &[[1, 0]],
        &[[2, 0]],
        &[[3, 0]],
        &[[4, 0], [3, 1]],
        &[[4, 1]],
        &[[5, 1]],
    ];
    for _ in 0..20 {
        let mut permits: Vec<Permit> = Vec::new();
        for allowed in allowed {
            permits.push(frontend.route().unwrap());
            let counts: [u32; 2] = table.in_flight().try_into().unwrap();
            assert!(allowed.contains(&counts), "{counts:?}, not {allowed:?}");
        }
    }
}

#[test]
fn c2_bursts_of_several_processes_split_in_proportion() {
    let (table, _frontend) = weighted(&[4.0, 1.0, 0.5]);
    let mut actors = spawn_all(table.path(), 3);
    for n in 1..=5 {
        // 11 requests a round are shared as 8, 2 and 1.
        actors
            .iter_mut()
            .for_each(|actor| actor.tell(&Task::burst(11 * n as usize)));
        actors
            .iter_mut()
            .for_each(|actor| drop(actor.answer::<Vec<u32>>()));
        assert_eq!(table.in_flight(), [24 * n, 6 * n, 3 * n]);
        actors.iter_mut().for_each(|actor| actor.finish_all());
    }
}

#[test]
fn c2_equal_weights_are_as_none_whatever_they_are() {
    for weight in [0.3, 1.0, 7.0, f32::MIN_POSITIVE, f32::MAX] {
        let (table, frontend) = weighted(&[weight; 5]);
        let _held = frontend.route_many(12).unwrap();
        let mut counts = table.in_flight();
        counts.sort_unstable();
        assert_eq!(counts, [2, 2, 2, 3, 3], "weights of {weight}");
        // The way of weights that differ, too.
        let other = if weight < 1.0 {
            weight * 2.0
        } else {
            weight / 2.0
        };
        let odd = table.add(Engine::named("odd").weight(other)).unwrap();
        table.drain(odd).unwrap();
        let _more = frontend.route_many(8).unwrap();
        assert_eq!(table.in_flight()[..5], [4; 5], "weights of {weight}");
    }
}

#[test]
fn c7_ties_between_engines_of_equal_weight_favour_none() {
    let (table, frontend) = weighted(&[4.0, 1.0, 4.0]);
    let wins = singles(&table, &frontend, 1000);
    assert_eq!(wins, [500, 0, 500]);
}

#[test]
fn c4_a_cap_sends_the_rest_to_engines_of_less_weight() {
    let (table, frontend) = weighted(&[4.0, 1.0]);
    table.set_caps(0, Some(2), None).unwrap();
    let _held = frontend.route_many(5).unwrap();
    assert_eq!(table.in_flight(), [2, 3]);
    table.set_caps(1, Some(3), None).unwrap();
    assert!(frontend.route().is_err());
}

#[test]
fn c8_engines_that_are_closed_or_excluded_have_no_weight() {
    let (table, frontend) = weighted(&[4.0, 1.0, 2.0]);
    assert_eq!(
        engine_of(&frontend, &Request::new().exclude(&ids(&table, [0]))),
        2
    );
    table.down(0).unwrap();
    assert_eq!(engine_of(&frontend, &Request::new()), 2);
    table.drain(2).unwrap();
    assert_eq!(engine_of(&frontend, &Request::new()), 1);
}

#[test]
fn the_token_policy_balances_tokens_by_weight() {
    let (table, frontend) = weighted(&[1.0, 4.0]);
    let frontend = frontend.with_policy(Policy::tokens());
    let request = Request::new().tokens(100);
    for _ in 0..100 {
        assert_eq!(engine_of(&frontend, &request), 1, "a single request");
    }
    let _held = frontend.route_many_with(10, &request).unwrap();
    assert_eq!(table.tokens(), [200, 800]);
}

#[test]
fn tokens_have_no_say_by_the_default_policy() {
    let (table, frontend) = weighted(&[1.0, 4.0]);
    let _held: Vec<_> = [9000, 10, 10, 10, 10]
        .map(|tokens| frontend.route_with(&Request::new().tokens(tokens)).unwrap())
        .into();
    assert_eq!(table.in_flight(), [1, 4]);
}

#[test]
fn slack_is_in_units_of_the_load() {
    let (_table, frontend) = weighted(&[1.0, 4.0]);
    // The request would make it 1 / 1 there and 1 / 4 here.
    assert_eq!(engine_of(&frontend, &Request::new().prefer(0, 0.75)), 0);
    assert_eq!(engine_of(&frontend, &Request::new().prefer(0, 0.74)), 1);
    assert_eq!(engine_of(&frontend, &Request::new().prefer(1, 0)), 1);
}

#[test]
fn policies_that_read_snapshots_weigh_too() {
    let (table, frontend) = weighted(&[1.0, 4.0]);
    let mut publisher = table.publisher().unwrap();
    let open = frontend.clone().with_policy(Policy::open());
    let stats = |running| EngineStats::new().running(running);
    publisher.publish(&[stats(0), stats(0)]).unwrap();
    assert_eq!(engine_of(&open, &Request::new()), 1);
    // One request of others is more than the difference of 3 / 4.
    publisher.publish(&[stats(0), stats(1)]).unwrap();
    assert_eq!(engine_of(&open, &Request::new()), 0);
    // Pressure on the greater engine: a queue of its 2 requests there costs 2 * 6 * (0.6 - 0.5).
    let pressed = EngineStats::new().waiting(9).kv_usage(0.6);
    publisher.publish(&[stats(0), pressed]).unwrap();
    let at_it = Request::new().pin(1);
    assert_eq!(
        engine_of(&frontend, &Request::new()),
        1,
        "nothing waits of ours"
    );
    let _held = frontend.route_many_with(2, &at_it).unwrap();
    assert_eq!(
        engine_of(&frontend, &Request::new()),
        0,
        "1 against 3 / 4 + 1.2"
    );
}

#[test]
fn c2_the_least_weights_weigh_as_any_others() {
    let (table, frontend) = weighted(&[1e-36, 3e-36]);
    let _held = frontend.route_many(4000).unwrap();
    assert_eq!(table.in_flight(), [1000, 3000]);
}

#[test]
fn c7_requests_without_tokens_see_no_weights_by_the_token_policy() {
    for least in [f32::MIN_POSITIVE, 1e-36, 1e-30, 1e30, f32::MAX] {
        let (table, frontend) = weighted(&[least, 5.0, 7.0]);
        let frontend = frontend.with_policy(Policy::tokens());
        assert_eq!(singles(&table, &frontend, 300), [100; 3], "{least}");
    }
}

#[test]
fn two_engines_picked_at_random_are_compared_by_weight() {
    let (table, frontend) = weighted(&[1.0, 4.0]);
    let frontend = frontend.with_policy(Policy::power_of_two());
    assert_eq!(singles(&table, &frontend, 300), [0, 300]);
}

#[test]
fn c7_ties_between_weights_are_fair_whatever_the_other_weights_are() {
    // 15 and 105 requests are the same for the first two. The others have no common multiple with these that is small,
    // and are full or down.
    let (table, frontend) = weighted(&[1.0, 7.0, 0.3, 4093.0]);
    table.set_max_in_flight(2, Some(0)).unwrap();
    table.down(3).unwrap();
    let pinned = |engine: usize| frontend.route_with(&Request::new().pin(engine)).unwrap();
    let mut permits: Vec<Permit> = (0..14).map(|_| pinned(0)).collect();
    permits.extend((0..104).map(|_| pinned(1)));
    assert_eq!(singles(&table, &frontend, 100), [50, 50, 0, 0]);
}
