//! C8: the id of an engine means that engine, even if another has its slot by now.
//!
//! Rules: docs/contract.md.

use headcount::{Engine, EngineId, EngineState, EngineStats, EngineView, Error, Request, Table};
use headcount_tests::{Actor, Damage, Random, TestTable};
use std::time::{Duration, Instant};

/// What is done to an engine by its id, and its name.
type Change = (&'static str, fn(&Table, EngineId) -> Result<(), Error>);

/// Everything that can be done to an engine by its id.
fn changes() -> [Change; 9] {
    [
        ("drain", |table, engine| table.drain(engine)),
        ("up", |table, engine| table.up(engine)),
        ("down", |table, engine| table.down(engine)),
        ("up_if_down", |table, engine| {
            table.up_if_down(engine).map(drop)
        }),
        ("down_if_active", |table, engine| {
            table.down_if_active(engine).map(drop)
        }),
        ("set_weight", |table, engine| table.set_weight(engine, 2.0)),
        ("set_caps", |table, engine| {
            table.set_caps(engine, Some(7), Some(70))
        }),
        ("remove", |table, engine| table.remove(engine).map(drop)),
        ("route", |table, engine| {
            let pinned = Request::new().pin(engine);
            let _permit = table.join()?.route_with(&pinned)?;
            Ok(())
        }),
    ]
}

/// A call of `add` may write a name after a reader has seen the word of the engine before.
#[test]
fn c8_a_number_whose_name_is_being_written_is_no_engines() {
    let table = TestTable::with_engines(2);
    let before = table.engine_at(1);
    let damage = Damage::to(&table, table.path());
    damage.change("engines", 1, 0, |generation| generation + 1);
    assert_eq!(table.engine_at(1), None);
    damage.change("engines", 1, 0, |generation| generation - 1);
    assert!(before.is_some() && table.engine_at(1) == before);
}

fn is_gone(result: &Result<(), Error>, number: usize) -> bool {
    matches!(result, Err(Error::NoSuchEngine { engine, removed: true, .. }) if *engine == number)
}

fn view(table: &Table, engine: usize) -> EngineView {
    table.view().engine(engine).expect("it is there").clone()
}

#[test]
fn c8_a_change_by_id_leaves_a_newcomer_in_the_same_slot_alone() {
    let table = TestTable::with_engines(2);
    let mut other = Actor::opened(table.path());
    for (state, set) in [
        (EngineState::Active, Table::up as fn(&Table, usize) -> _),
        (EngineState::Draining, Table::drain),
        (EngineState::Down, Table::down),
    ] {
        let found = table.find("1").unwrap();
        let number = found.index();
        assert_eq!(other.remove_engine("1"), number);
        for (what, change) in changes() {
            assert!(is_gone(&change(&table, found), number), "{what}, no engine");
        }
        assert_eq!(other.add_engine("new"), number);
        set(&table, number).unwrap();
        let before = view(&table, number);
        assert_eq!((before.name.as_str(), before.state), ("new", state));
        for (what, change) in changes() {
            let result = change(&table, found);
            assert!(is_gone(&result, number), "{what}: {result:?}");
            let message = result.unwrap_err().to_string();
            assert!(message.contains("was removed"), "{message}");
            assert_eq!(view(&table, number), before, "{what}");
        }
        assert_eq!(table.view().engine(found), None);
        assert_eq!(table.view().engine(before.id), Some(&before));
        // By its number, and by an id of its own, the newcomer is changed.
        table.set_weight(number, 3.0).unwrap();
        table.set_caps(before.id, Some(9), None).unwrap();
        let after = view(&table, number);
        assert_eq!((after.weight, after.max_in_flight), (3.0, Some(9)));
        table.remove(before.id).unwrap();
        table.add(Engine::named("1")).unwrap();
    }
}

#[test]
fn c8_a_change_by_id_finds_its_engine_in_every_state() {
    let table = TestTable::with_engines(3);
    let id = table.find("2").unwrap();
    let state = || view(&table, 2).state;
    table.drain(id).unwrap();
    assert_eq!(state(), EngineState::Draining);
    assert!(!table.down_if_active(id).unwrap() && !table.up_if_down(id).unwrap());
    table.down(id).unwrap();
    assert_eq!(state(), EngineState::Down);
    assert!(table.up_if_down(id).unwrap());
    assert_eq!(state(), EngineState::Active);
    assert!(table.down_if_active(id).unwrap());
    table.up(id).unwrap();
    let frontend = table.join().unwrap();
    let permit = frontend.route_with(&Request::new().pin(id)).unwrap();
    assert_eq!(permit.engine().index(), id.index());
    assert_eq!(table.remove(id).unwrap(), 1);
    assert!(is_gone(&table.up(id), 2), "it is leaving");
    let same = EngineId::new(id.index(), id.generation());
    assert_eq!(same, id, "an id goes to another process by its two numbers");
}

#[test]
fn c8_an_engine_that_comes_back_before_its_requests_end_is_the_same_one() {
    let table = TestTable::with_engines(1);
    let frontend = table.join().unwrap();
    let id = table.find("0").unwrap();
    let stats = EngineStats::new().running(7);
    table.publisher().unwrap().publish(&[stats]).unwrap();
    let permits = frontend.route_many(3).unwrap();
    table.remove(id).unwrap();
    let engine = Engine::named("0").weight(2.0);
    assert_eq!(table.add(&engine).unwrap(), id, "it keeps its id");
    let seen = view(&table, 0);
    assert_eq!((seen.id, seen.weight), (id, 2.0));
    assert_eq!(
        (seen.in_flight, seen.admitted_total, seen.finished_total),
        (3, 3, 0)
    );
    assert_eq!(seen.stats.unwrap().running, 7, "they are still its own");
    table.drain(id).unwrap();
    assert_eq!(view(&table, 0).state, EngineState::Draining);
    drop(permits);
    // With nothing in flight, what comes under its name is another engine.
    table.remove(id).unwrap();
    let next = table.add(&engine).unwrap();
    assert_eq!(next.index(), 0);
    assert_ne!(next, id);
    assert!(is_gone(&table.drain(id), 0));
    let seen = view(&table, 0);
    assert_eq!(
        (seen.in_flight, seen.admitted_total, seen.finished_total),
        (0, 0, 0)
    );
    assert_eq!((seen.state, seen.stats), (EngineState::Active, None));
}

#[test]
fn c8_no_id_of_a_table_is_given_twice() {
    let table = TestTable::new(&Table::options().engines(1).max_engines(2));
    let mut seen: Vec<_> = table.view().engines.iter().map(|e| e.id).collect();
    for n in 0..100 {
        let added = table
            .add(Engine::named(format!("{n}")))
            .unwrap_or_else(|_| {
                // "0" is there.
                table.add(Engine::named("another")).unwrap()
            });
        assert!(!seen.contains(&added));
        seen.push(added);
        table.remove(added).unwrap();
    }
}

/// A process adds and removes two engines alternately in one slot. This one finds the first of them,
/// and changes it when it may have gone.
#[test]
fn c8_a_change_by_id_never_hits_another_engine_that_comes_at_the_same_time() {
    const STALE: u32 = 100;
    let table = TestTable::new(&Table::options().engines(1).max_engines(2));
    let mut other = Actor::opened(table.path());
    other.come_and_go();
    let mut random = Random::seeded();
    let (mut hits, mut stale) = (0, 0);
    let start = Instant::now();
    while stale < STALE {
        assert!(start.elapsed() < Duration::from_secs(60), "{hits}, {stale}");
        let Some(id) = table.find("fair") else {
            continue;
        };
        let now = Instant::now();
        let pause = Duration::from_micros(random.below(40));
        while now.elapsed() < pause {
            std::hint::spin_loop();
        }
        let (what, change) = changes()[random.below(8) as usize];
        match change(&table, id) {
            Ok(()) => hits += 1,
            Err(Error::NoSuchEngine { removed: true, .. }) => stale += 1,
            Err(error) => panic!("{what}: {error}"),
        }
    }
    let went = other.came_and_went();
    println!("{hits} hits, {stale} ids of engines that had gone; {went:?}");
    assert!(hits > 0 && went.cycles > 100, "they have to meet");
    assert_eq!(
        went.wronged, 0,
        "the engine that was spared is as it was added"
    );
}

#[test]
fn c8_exclude_and_prefer_by_id_mean_that_engine_and_not_the_next_one_of_its_slot() {
    let table = TestTable::with_engines(2);
    let frontend = table.join().unwrap();
    let old = table.find("1").unwrap();
    let to = |request: &Request<'_>| frontend.route_with(request).map(|p| p.engine().index());
    assert_eq!(to(&Request::new().exclude(&[old])), Ok(0));
    let busy = frontend.route_with(&Request::new().pin(1)).unwrap();
    assert_eq!(to(&Request::new().prefer(old, 8)), Ok(1));
    drop(busy);

    table.remove(old).unwrap();
    let new = table.add("next").unwrap();
    assert_eq!((new.index(), new == old), (1, false));
    let busy = frontend.route_with(&Request::new().pin(0)).unwrap();
    assert_eq!(
        to(&Request::new().exclude(&[old])),
        Ok(1),
        "the next one is not excluded"
    );
    assert!(to(&Request::new().exclude(&[new])) == Ok(0));
    drop(busy);
    let busy = frontend.route_with(&Request::new().pin(1)).unwrap();
    assert_eq!(to(&Request::new().prefer(old, 8)), Ok(0), "nor preferred");
    assert_eq!(to(&Request::new().prefer(new, 8)), Ok(1));
    drop(busy);
}
