//! Engines come and go while frontends run.
//!
//! Rules: docs/contract.md.

use headcount::{
    Engine, EngineState, Error, MAX_IN_FLIGHT, MAX_NAME_LEN, Policy, Request, RouteError, Table,
    Unavailable,
};
use headcount_tests::{Actor, Rounds, Task, TestTable, held, ids, spawn_all};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::Duration;

#[test]
fn states_decide_which_engines_take_requests() {
    let table = TestTable::with_engines(2);
    let frontend = table.join().unwrap();
    let pinned = Request::new().pin(0);
    let permit = frontend.route_with(&pinned).unwrap();
    let state = || table.view().engines[0].state;
    let counts = |why: Unavailable| [why.engines(), why.down(), why.draining(), why.excluded()];
    table.drain(0).unwrap();
    assert_eq!(state(), EngineState::Draining);
    assert!(matches!(
        frontend.route_with(&pinned),
        Err(RouteError::Unavailable(why))
            if counts(why) == [1, 0, 1, 0]
    ));
    table.down(0).unwrap();
    assert_eq!(state(), EngineState::Down);
    assert!(matches!(
        frontend.route_with(&Request::new().exclude(&ids(&table, [1]))),
        Err(RouteError::Unavailable(why))
            if counts(why) == [2, 1, 0, 1]
    ));
    assert_eq!(
        table.in_flight(),
        [1, 0],
        "what was in flight stays counted"
    );
    table.up(0).unwrap();
    assert_eq!(state(), EngineState::Active);
    drop((frontend.route_with(&pinned).unwrap(), permit));
    assert_eq!(table.in_flight(), [0, 0]);
}

#[test]
fn a_probe_that_finds_an_engine_down_or_back_does_not_undo_a_drain() {
    let table = TestTable::with_engines(2);
    let state = || table.view().engines[0].state;
    assert!(!table.up_if_down(0).unwrap());
    assert!(table.down_if_active(0).unwrap());
    assert!(!table.down_if_active(0).unwrap());
    assert_eq!(state(), EngineState::Down);
    assert!(table.up_if_down(0).unwrap());
    assert_eq!(state(), EngineState::Active);
    table.drain(0).unwrap();
    assert!(!table.down_if_active(0).unwrap());
    assert!(!table.up_if_down(0).unwrap());
    assert_eq!(state(), EngineState::Draining);
    table.remove(0).unwrap();
    for gone in [0, 2, 10_000] {
        let missing = |found| matches!(found, Err(Error::NoSuchEngine { engine, removed: false, .. }) if engine == gone);
        assert!(missing(table.down_if_active(gone)) && missing(table.up_if_down(gone)));
    }
    let reader = Table::open_read_only(table.path()).unwrap();
    assert!(matches!(reader.down_if_active(1), Err(Error::ReadOnly)));
}

/// However they meet, the drain stays.
#[test]
fn a_drain_is_never_lost_to_a_probe_that_finds_the_engine_down() {
    let table = TestTable::with_engines(1);
    let mut rounds = Rounds::new(
        2_000,
        "drains between the finding down and the finding back",
    );
    let start = Barrier::new(2);
    while rounds.another() {
        let drained = AtomicBool::new(false);
        thread::scope(|scope| {
            // Finds the engine down and back, again and again, until the drain comes in between or after that.
            let finder = scope.spawn(|| {
                start.wait();
                loop {
                    let is_drained = drained.load(Ordering::SeqCst);
                    if !table.down_if_active(0).unwrap() {
                        return false;
                    }
                    if !table.up_if_down(0).unwrap() {
                        return true;
                    }
                    assert!(!is_drained, "the drain is lost");
                }
            });
            start.wait();
            thread::sleep(Duration::from_micros(20));
            table.drain(0).unwrap();
            drained.store(true, Ordering::SeqCst);
            rounds.fell(finder.join().unwrap());
        });
        assert_eq!(table.view().engines[0].state, EngineState::Draining);
        table.up(0).unwrap();
    }
}

#[test]
fn nothing_is_admitted_after_drain_has_returned() {
    let table = TestTable::with_engines(2);
    let mut actors = spawn_all(table.path(), 2);
    let mut rounds = Rounds::new(1000, "drains amid a burst");
    while rounds.another() {
        actors
            .iter_mut()
            .for_each(|actor| actor.tell(&Task::burst(500)));
        thread::sleep(Duration::from_micros(100));
        table.drain(1).unwrap();
        let counts = table.in_flight();
        // Not before its first request, and not after its last.
        rounds.fell((1..1000).contains(&counts.iter().sum::<u32>()));
        for actor in &mut actors {
            actor.answer::<Vec<u32>>();
        }
        assert_eq!(table.in_flight()[1], counts[1]);
        table.up(1).unwrap();
        for actor in &mut actors {
            actor.finish_all();
        }
    }
}

#[test]
fn a_lower_cap_holds_from_the_moment_at_which_it_is_set() {
    let table = TestTable::with_engines(1);
    let mut actors = spawn_all(table.path(), 2);
    let mut rounds = Rounds::new(1000, "changes amid a burst");
    while rounds.another() {
        actors
            .iter_mut()
            .for_each(|actor| actor.tell(&Task::burst(500)));
        thread::sleep(Duration::from_micros(100));
        table.set_caps(0, Some(20), None).unwrap();
        let in_flight = table.in_flight()[0];
        // It had more than the new cap, and more were to come.
        rounds.fell((21..1000).contains(&in_flight));
        let at_change = in_flight.max(20);
        for actor in &mut actors {
            actor.answer::<Vec<u32>>();
        }
        assert!(table.in_flight()[0] <= at_change);
        table.set_caps(0, None, None).unwrap();
        for actor in &mut actors {
            actor.finish_all();
        }
    }
}

#[test]
fn engines_flap_and_go_and_come_under_load_and_counts_stay_exact() {
    let table = TestTable::new(&Table::options().engines(3).max_engines(4));
    let mut actors = spawn_all(table.path(), 2);
    let mut rounds = Rounds::new(10, "all of them at work");
    while rounds.another() {
        for actor in &mut actors {
            actor.churn(2);
        }
        for n in 0..100 {
            match n % 5 {
                0 => table.down(0).unwrap(),
                1 => table.up(0).unwrap(),
                2 => drop(table.remove(1).unwrap()),
                3 => drop(table.add(Engine::named("1")).unwrap()),
                _ => match table.add(Engine::named(format!("extra {n}"))) {
                    Ok(extra) => drop(table.remove(extra).unwrap()),
                    Err(Error::EnginesFull { .. }) => {}
                    Err(error) => panic!("{error}"),
                },
            }
            thread::sleep(Duration::from_micros(200));
        }
        let mut at_work = true;
        for actor in &mut actors {
            actor.pause();
            at_work &= actor.work_done().operations > 0;
        }
        let held = held(&mut actors, 4);
        let mut counted = vec![0; 4];
        for engine in table.view().engines {
            counted[engine.id.index()] = engine.in_flight;
        }
        assert_eq!(counted, held);
        rounds.fell(at_work);
    }
}

#[test]
fn an_engine_is_found_by_its_name_and_keeps_its_number() {
    let table = TestTable::with_engines(2);
    let name = "x".repeat(MAX_NAME_LEN);
    let long = table.add(Engine::named(&name)).unwrap();
    let foreign = table.add(Engine::named("ingénieur 日本")).unwrap();
    assert_eq!((long.index(), foreign.index()), (2, 3));
    assert_eq!(table.find(&name), Some(long));
    assert_eq!(table.find("ingénieur 日本"), Some(foreign));
    assert_eq!(table.find("unknown"), None);
    table.remove(long).unwrap();
    assert_eq!(table.find(&name), None);
    assert_eq!(table.find("ingénieur 日本"), Some(foreign));
    let again = table.add(Engine::named(&name)).unwrap();
    assert_eq!(again.index(), 2);
    assert_ne!(again, long, "nothing of the former one is left");
}

#[test]
fn a_change_of_an_engine_leaves_what_it_does_not_name() {
    let table = TestTable::with_engines(2);
    let limits = || {
        let engine = &table.view().engines[1];
        (engine.weight, engine.max_in_flight, engine.max_tokens)
    };
    table.set_caps(1, Some(5), Some(500)).unwrap();
    assert_eq!(limits(), (1.0, Some(5), Some(500)));
    table.set_weight(1, 2.5).unwrap();
    assert_eq!(limits(), (2.5, Some(5), Some(500)));
    table.down(1).unwrap();
    table.up(1).unwrap();
    assert_eq!(limits(), (2.5, Some(5), Some(500)));
    table.set_caps(1, None, Some(u32::MAX - 1)).unwrap();
    assert_eq!(limits(), (2.5, None, Some(u32::MAX - 1)));
    table.set_caps(1, Some(MAX_IN_FLIGHT - 1), None).unwrap();
    assert_eq!(limits(), (2.5, Some(MAX_IN_FLIGHT - 1), None));
    // Nothing counts further than these, so they are no caps.
    table.set_caps(1, Some(u32::MAX), Some(u32::MAX)).unwrap();
    assert_eq!(limits(), (2.5, None, None));
    let state = table.view().engines[1].state;
    assert_eq!(
        (state, table.find("1").unwrap().index()),
        (EngineState::Active, 1)
    );
}

#[test]
fn an_engine_with_an_impossible_name_weight_or_cap_is_refused() {
    let table = TestTable::new(&Table::options().engines(2).max_engines(3));
    let add = |engine: Engine| table.add(&engine).unwrap_err();
    // What a terminal would act on need not be ASCII, and a limit in bytes is none in characters.
    let too_long = [
        "x".repeat(MAX_NAME_LEN + 1),
        "é".repeat(MAX_NAME_LEN / 2 + 1),
    ];
    for name in [
        "",
        "a\nb",
        "\u{7f}",
        "a\u{9b}2J",
        // Two names that are shown alike: with a byte order mark, and with a space of no width.
        "\u{feff}a",
        "a\u{200b}",
        // The command's form of a number.
        "@0",
        &too_long[0],
        &too_long[1],
    ] {
        let error = add(Engine::named(name));
        assert!(matches!(error, Error::EngineName { .. }), "{error}");
    }
    for weight in [0.0, -1.0, f32::NAN, f32::INFINITY, 1e-40] {
        let error = add(Engine::named("w").weight(weight));
        assert!(matches!(error, Error::Weight { .. }), "{error}");
        assert!(matches!(
            table.set_weight(0, weight),
            Err(Error::Weight { .. })
        ));
    }
    assert!(matches!(
        add(Engine::named("1")),
        Error::NameTaken { engine: 1, .. }
    ));
    for engine in [2, 3, 4096, usize::MAX] {
        for result in [
            table.drain(engine),
            table.down(engine),
            table.up(engine),
            table.remove(engine).map(drop),
            table.set_weight(engine, 1.0),
            table.set_caps(engine, Some(1), None),
        ] {
            assert!(
                matches!(result, Err(Error::NoSuchEngine { engine: e, removed: false, .. }) if e == engine)
            );
        }
        let pinned = table
            .join()
            .unwrap()
            .route_with(&Request::new().pin(engine));
        assert!(matches!(pinned, Err(RouteError::NoSuchEngine { .. })));
    }
    table.add(Engine::named("third")).unwrap();
    assert!(matches!(
        add(Engine::named("fourth")),
        Error::EnginesFull { max_engines: 3, .. }
    ));
    let frontend = table.join().unwrap();
    assert_eq!(
        frontend.route_many(3).unwrap().len(),
        3,
        "it works on as before"
    );
}

#[test]
fn a_change_of_the_engine_list_waits_for_no_dead_process() {
    let table = TestTable::with_engines(1);
    let mut rounds = Rounds::new(40, "deaths between an engine's coming and going");
    while rounds.another() {
        let changer = {
            let mut actor = Actor::opened(table.path());
            actor.add_and_remove_forever();
            actor
        };
        thread::sleep(Duration::from_millis(2));
        changer.kill();
        let engine = table.add(Engine::named("next")).unwrap();
        table.remove(engine).unwrap();
        let view = table.view();
        assert!(view.engines.iter().all(|e| !e.name.is_empty()), "{view:?}");
        // One that the dead changer had just added may be there.
        rounds.fell(view.engines.len() > 1);
        for engine in &view.engines[1..] {
            table.remove(engine.id.index()).unwrap();
        }
    }
}

/// Every change that makes engine 0 more attractive, while a route has read engine 0 and has not
/// chosen yet. Once the change has returned, the route acts by it.
#[test]
fn c8_a_route_under_way_acts_by_a_change_that_has_returned() {
    type Change = fn(&Table);
    let changes: [(&str, Change, Change); 5] = [
        ("up", |t| t.down(0).unwrap(), |t| t.up(0).unwrap()),
        (
            "up if down",
            |t| t.down(0).unwrap(),
            |t| {
                assert!(t.up_if_down(0).unwrap());
            },
        ),
        (
            "a higher cap",
            |t| t.set_caps(0, Some(1), None).unwrap(),
            |t| {
                t.set_caps(0, None, None).unwrap();
            },
        ),
        (
            "more weight",
            |t| t.set_weight(0, 0.1).unwrap(),
            |t| {
                t.set_weight(0, 1.0).unwrap();
            },
        ),
        (
            "added again",
            |t| assert_eq!(t.remove(0).unwrap(), 1),
            |t| {
                assert_eq!(t.add(Engine::named("0")).unwrap().index(), 0);
            },
        ),
    ];
    for (name, before, change) in changes {
        let table = TestTable::with_engines(2);
        let frontend = table.join().unwrap();
        let pinned = |engine| frontend.route_with(&Request::new().pin(engine)).unwrap();
        let _held = [0, 1, 1, 1].map(pinned);
        before(&table);
        let (changes_now, may_change) = channel();
        let (goes_on, may_go_on) = channel::<()>();
        let may_go_on = Mutex::new(may_go_on);
        let least_in_flight = Policy::custom(move |engine| {
            // The first call for the other engine: engine 0 was read before, or passed over.
            if engine.engine.index() == 1 && changes_now.send(()).is_ok() {
                let _ = may_go_on.lock().unwrap().recv();
            }
            (f64::from(engine.in_flight) + 1.0) / f64::from(engine.weight)
        });
        let routes = frontend.clone().with_policy(least_in_flight);
        let route = thread::spawn(move || routes.route().unwrap().engine().index());
        may_change.recv().unwrap();
        change(&table);
        drop((may_change, goes_on));
        assert_eq!(route.join().unwrap(), 0, "{name}");
    }
}

#[test]
fn c4_a_change_of_one_cap_leaves_the_other_to_another_process() {
    let table = TestTable::new(&Table::options().engine(Engine::named("a").max_tokens(5)));
    let caps = || {
        let view = table.view();
        let engine = view.engine(0).unwrap();
        (engine.max_in_flight, engine.max_tokens)
    };
    table.set_max_in_flight(0, Some(8)).unwrap();
    assert_eq!(caps(), (Some(8), Some(5)));
    table.set_max_tokens(0, None).unwrap();
    assert_eq!(caps(), (Some(8), None));
    table.set_max_in_flight(0, None).unwrap();
    assert_eq!(caps(), (None, None));
    thread::scope(|scope| {
        let change = |set: fn(&Table, u32) -> headcount::Result<()>| {
            let table = &table;
            scope.spawn(move || (1..=100).for_each(|cap| set(table, cap).unwrap()))
        };
        change(|table, cap| table.set_max_in_flight(0, Some(cap)));
        change(|table, cap| table.set_max_tokens(0, Some(cap)));
    });
    assert_eq!(caps(), (Some(100), Some(100)));
    assert!(matches!(
        table.set_max_tokens(7, None),
        Err(Error::NoSuchEngine { engine: 7, .. })
    ));
}
