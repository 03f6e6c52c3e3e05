//! C5: tokens that change while their request lives.

use headcount::{Cap, Engine, EngineStats, Permit, Policy, Request, RouteError, Table};
use headcount_tests::{Actor, Rounds, Task, TestTable, race, spawn_all, sum};
use std::thread;

/// The cap that refused a permit so many tokens, and whether there would be room later.
fn refused(permit: &mut Permit, tokens: u32) -> (Cap, bool) {
    let before = permit.tokens();
    let refused = permit.set_tokens(tokens);
    assert_eq!(permit.tokens(), before, "it keeps its tokens");
    match refused {
        Err(RouteError::Saturated { cap, passes }) => (cap, passes),
        other => panic!("{other:?}"),
    }
}

type Change = fn(&Table);

/// Fails unless the ledgers agree with the counts.
fn has_no_faults(table: &Table) {
    assert_eq!(table.verify().unwrap().faults, []);
}

#[test]
fn c5_tokens_that_change_are_exact_in_every_state_of_the_engine() {
    let table = TestTable::with_engines(2);
    let frontend = table.join().unwrap();
    let request = Request::new().pin(1).tokens(10);
    let mut permit = frontend.route_with(&request).unwrap();
    let other = frontend.route_with(&request).unwrap();
    let changes: [(&str, Change); 6] = [
        ("active", |_| {}),
        ("draining", |table| table.drain(1).unwrap()),
        ("down", |table| table.down(1).unwrap()),
        ("up", |table| table.up(1).unwrap()),
        ("removed", |table| assert_eq!(table.remove(1).unwrap(), 2)),
        ("back", |table| {
            assert_eq!(table.add("1").unwrap().index(), 1)
        }),
    ];
    for (state, change) in changes {
        change(&table);
        for tokens in [900, 0, 7, 7] {
            permit.set_tokens(tokens).unwrap();
            let view = table.view();
            let engine = view.engine(1).unwrap();
            assert_eq!(
                (engine.in_flight, engine.tokens),
                (2, 10 + tokens),
                "{state}"
            );
            assert_eq!(
                (engine.admitted_total, engine.finished_total),
                (2, 0),
                "{state}"
            );
            let frontend = &view.frontends[0];
            let held = (frontend.in_flight, frontend.tokens);
            assert_eq!(held, (2, u64::from(10 + tokens)), "{state}");
            assert_eq!(permit.tokens(), tokens, "{state}");
        }
        has_no_faults(&table);
    }
    drop(permit);
    assert_eq!(
        (table.in_flight(), table.tokens()),
        (vec![0, 1], vec![0, 10])
    );
    drop(other);
    assert_eq!(
        (table.in_flight(), table.tokens()),
        (vec![0, 0], vec![0, 0])
    );
    has_no_faults(&table);
}

#[test]
fn c5_a_request_grows_up_to_the_cap_of_its_engine_and_no_further() {
    let engine = Engine::named("a").max_tokens(100).max_in_flight(2);
    let table = TestTable::new(&Table::options().engine(engine).engine(Engine::named("b")));
    let frontend = table.join().unwrap();
    let request = Request::new().pin(0).tokens(40);
    let mut permit = frontend.route_with(&request).unwrap();
    let other = frontend.route_with(&request).unwrap();
    assert_eq!(refused(&mut permit, 61), (Cap::EngineTokens, true));
    assert_eq!(refused(&mut permit, 101), (Cap::EngineTokens, false));
    permit.set_tokens(60).unwrap();
    assert_eq!(table.tokens(), [100, 0]);
    assert_eq!(refused(&mut permit, 61), (Cap::EngineTokens, true));
    // A cap that was lowered leaves no room, and what is there may stay or become less.
    table.set_max_tokens(0, Some(50)).unwrap();
    permit.set_tokens(60).unwrap();
    permit.set_tokens(30).unwrap();
    assert_eq!(refused(&mut permit, 31), (Cap::EngineTokens, true));
    assert_eq!(refused(&mut permit, 51), (Cap::EngineTokens, false));
    drop(other);
    permit.set_tokens(50).unwrap();
    table.set_max_tokens(0, None).unwrap();
    permit.set_tokens(u32::MAX).unwrap();
    assert_eq!(table.tokens(), [u32::MAX, 0]);
    let refusals = table.view().refusals_total;
    assert_eq!(refusals.total(), 0, "no request was turned away");
    has_no_faults(&table);
}

#[test]
fn c5_a_request_grows_up_to_the_cap_of_the_table_and_no_further() {
    let engine = Engine::named("a").max_tokens(80);
    let options = Table::options().engine(engine).engine(Engine::named("b"));
    let table = TestTable::new(&options.max_in_flight(2).max_tokens(100));
    let frontend = table.join().unwrap();
    let request = Request::new().tokens(40);
    let mut permit = frontend.route_with(&request.pin(0)).unwrap();
    let mut other = frontend.route_with(&request.pin(1)).unwrap();
    assert_eq!(refused(&mut permit, 61), (Cap::TableTokens, true));
    assert_eq!(refused(&mut permit, 81), (Cap::EngineTokens, false));
    assert_eq!(refused(&mut other, 101), (Cap::TableTokens, false));
    permit.set_tokens(60).unwrap();
    assert_eq!(table.tokens(), [60, 40]);
    assert_eq!(refused(&mut other, 41), (Cap::TableTokens, true));
    // No place is needed, also when more requests are in flight than a cap that was lowered.
    table.set_total_max_in_flight(Some(1)).unwrap();
    permit.set_tokens(10).unwrap();
    other.set_tokens(90).unwrap();
    assert_eq!(table.tokens(), [10, 90]);
    drop((permit, other));
    // All of it can be had again: nothing is left reserved.
    drop(
        frontend
            .route_with(&Request::new().pin(1).tokens(100))
            .unwrap(),
    );
    has_no_faults(&table);
}

#[test]
fn c5_without_caps_an_engine_counts_up_to_its_last_token() {
    let table = TestTable::with_engines(1);
    let frontend = table.join().unwrap();
    let mut most = frontend.route().unwrap();
    let mut free = frontend.route().unwrap();
    most.set_tokens(u32::MAX).unwrap();
    assert_eq!(refused(&mut free, 1), (Cap::EngineTokens, true));
    free.set_tokens(0).unwrap();
    most.set_tokens(1).unwrap();
    free.set_tokens(u32::MAX - 1).unwrap();
    assert_eq!(table.tokens(), [u32::MAX]);
    drop((most, free));
    assert_eq!(table.tokens(), [0]);
}

#[test]
fn c5_tokens_that_change_count_at_once_in_a_choice() {
    let options = Table::options().engines(2);
    let table = TestTable::new(&options);
    let frontend = table.join().unwrap().with_policy(Policy::tokens());
    let request = Request::new().tokens(10);
    let mut one = frontend.route_with(&request.pin(0)).unwrap();
    let _two = frontend.route_with(&request.pin(1).tokens(20)).unwrap();
    for (tokens, expected) in [(19, 0), (21, 1), (5, 0)] {
        one.set_tokens(tokens).unwrap();
        let placed = frontend.route_with(&request).unwrap();
        assert_eq!(placed.engine().index(), expected, "{tokens}");
    }
    let stats = EngineStats::new().waiting(1).running(1);
    table.publisher().unwrap().publish(&[stats; 2]).unwrap();
    assert_eq!(table.tokens(), [5, 20], "a publication changes none");
}

#[test]
fn c5_tokens_change_on_any_thread_and_after_the_frontend_is_gone() {
    let table = TestTable::with_engines(2);
    let frontend = table.join().unwrap();
    let permits = frontend
        .route_many_with(40, &Request::new().tokens(3))
        .unwrap();
    drop(frontend);
    thread::scope(|scope| {
        for (n, mut permit) in permits.into_iter().enumerate() {
            scope.spawn(move || {
                for tokens in [50, 1, n as u32] {
                    permit.set_tokens(tokens).unwrap();
                }
                drop(permit);
            });
        }
    });
    assert_eq!(
        (table.in_flight(), table.tokens()),
        (vec![0; 2], vec![0; 2])
    );
    assert_eq!(table.view().frontends, [], "the last permit has left");
    has_no_faults(&table);
}

#[test]
fn c5_of_several_that_grow_at_once_as_many_do_as_there_is_room_for() {
    let engine = |name: &str| Engine::named(name).max_tokens(500);
    let engines = Table::options().engine(engine("a")).engine(engine("b"));
    for (options, room) in [(engines.clone(), 4), (engines.max_tokens(900), 3)] {
        let table = TestTable::new(&options);
        let mut actors = spawn_all(table.path(), 3);
        for actor in &mut actors {
            actor.route_pinned_with_tokens(0, 100);
            actor.route_pinned_with_tokens(1, 100);
        }
        let mut rounds = Rounds::new(50, "changes that met");
        while rounds.another() {
            let raced = race::<Vec<u32>>(&mut actors, &Task::SetTokens { tokens: 200 });
            rounds.fell(raced.met);
            let got = raced.placed();
            assert_eq!(table.tokens(), [300 + 100 * got[0], 300 + 100 * got[1]]);
            assert!(got.iter().all(|&got| got <= 2), "{got:?}");
            assert!(got.iter().sum::<u32>() <= room, "{got:?}");
            // One that was stopped in the middle may have kept others from room below the table's cap. So once more,
            // one after the other.
            let got = sum(2, actors.iter_mut().map(|actor| actor.set_tokens(200)));
            assert_eq!(got.iter().sum::<u32>(), room, "{got:?}");
            assert_eq!(table.tokens(), [300 + 100 * got[0], 300 + 100 * got[1]]);
            let back = race::<Vec<u32>>(&mut actors, &Task::SetTokens { tokens: 100 });
            assert_eq!(back.placed(), [3, 3]);
            assert_eq!(table.tokens(), [300, 300]);
        }
        has_no_faults(&table);
    }
}

#[test]
fn c5_room_that_a_dead_frontend_held_is_found() {
    let table = TestTable::new(&Table::options().engine(Engine::named("a").max_tokens(100)));
    let frontend = table.join().unwrap();
    let mut permit = frontend.route_with(&Request::new().tokens(10)).unwrap();
    let mut victim = Actor::joined(table.path());
    victim.route_pinned_with_tokens(0, 20);
    assert_eq!(victim.set_tokens(90), [1]);
    assert_eq!(refused(&mut permit, 11), (Cap::EngineTokens, true));
    victim.kill();
    // At most a hundred times a second it looks for the dead.
    thread::sleep(std::time::Duration::from_millis(20));
    permit.set_tokens(100).unwrap();
    assert_eq!((table.in_flight(), table.tokens()), (vec![1], vec![100]));
}
