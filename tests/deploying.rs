//! One deployment a table, and a table that is brought to another configuration.

use headcount::{
    Cap, Difference, Engine, EngineState, Error, Frontend, Options, Permit, Request, RouteError,
    Table,
};
use headcount_tests::{Actor, Rounds, Task, TestTable, eventually, many_engines};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// The pid of the deployment, as another one is told.
fn told(table: &Table) -> Option<i32> {
    match table.deploy() {
        Err(Error::Deployed { path, pid, .. }) if path == table.path() => Some(pid as i32),
        Err(other) => panic!("{other}"),
        Ok(_) => None,
    }
}

#[test]
fn a_table_has_one_deployment_at_a_time() {
    let table = TestTable::with_engines(2);
    assert_eq!(table.view().deployment, None);
    let mut first = Actor::opened(table.path());
    first.deploy();
    assert_eq!(told(&table), Some(first.pid()));
    assert_eq!(table.view().deployment, Some(first.pid() as u32));
    let said = table.deploy().unwrap_err().to_string();
    assert_eq!(
        said,
        format!(
            "{} is served by process {}; give this deployment a table of its own, or stop that one",
            table.path().display(),
            first.pid()
        )
    );
    // Frontends and people go on as ever.
    assert_eq!(first.join(), 0);
    table.drain(1).unwrap();
    let _permit = table.join().unwrap().route().unwrap();
    let reader = Table::open_read_only(table.path()).unwrap();
    assert_eq!(reader.view().deployment, Some(first.pid() as u32));
    assert!(matches!(reader.deploy(), Err(Error::ReadOnly)));
}

#[test]
fn k2_the_death_of_a_deployment_gives_its_place_to_the_next() {
    let table = TestTable::with_engines(2);
    let mut first = Actor::opened(table.path());
    first.deploy();
    // A stopped process lives.
    first.stop();
    assert_eq!(told(&table), Some(first.pid()));
    first.resume();
    first.kill();
    assert_eq!(table.view().deployment, None);
    let here = table.deploy().unwrap();
    assert_eq!(table.view().deployment, Some(std::process::id()));
    let mut second = Actor::opened(table.path());
    assert!(second.refused(&Task::Deploy).starts_with("Deployed"));
    drop(here);
    second.deploy();
}

#[test]
fn a_deployment_of_this_process_keeps_out_another_one_of_it() {
    let table = TestTable::with_engines(1);
    let own = table.deploy().unwrap();
    let again = Table::open(table.path()).unwrap();
    assert_eq!(told(&again), Some(std::process::id() as i32));
    drop(own);
    assert_eq!(told(&again), None);
}

/// The name of an engine, its state, its weight and its caps in requests and tokens.
type Shown = (String, EngineState, f32, Option<u32>, Option<u32>);

fn engines(table: &Table) -> Vec<Shown> {
    (table.view().engines.into_iter())
        .map(|e| (e.name, e.state, e.weight, e.max_in_flight, e.max_tokens))
        .collect()
}

fn named(name: &str) -> Engine {
    Engine::named(name)
}

#[test]
fn apply_brings_a_living_table_to_a_configuration() {
    use EngineState::{Active, Draining, Leaving};
    let options = Table::options()
        .engine(named("a").max_in_flight(8))
        .engine(named("b"))
        .engine(named("c").weight(2.0))
        .max_tokens(900);
    let table = TestTable::new(&options);
    assert!(table.apply(&options).unwrap().is_empty());
    table.drain(1).unwrap();
    let frontend = table.join().unwrap();
    let on_c = frontend.route_with(&Request::new().pin(2)).unwrap();

    let next = Table::options()
        .engine(named("d").max_in_flight(3))
        .engine(named("b").weight(3.0).max_tokens(70))
        .engine(named("a").max_in_flight(9))
        .max_in_flight(60);
    let changes = table.apply(&next).unwrap();
    assert_eq!(
        changes.to_string(),
        "max_in_flight none, now 60\n\
         max_tokens 900, now none\n\
         engine d: added\n\
         engine b: weight 1, now 3\n\
         engine b: max_tokens none, now 70\n\
         engine a: max_in_flight 8, now 9\n\
         engine c: removed\n"
    );
    assert_eq!(changes.added().collect::<Vec<_>>(), ["d"]);
    assert_eq!(changes.removed().collect::<Vec<_>>(), ["c"]);
    assert_eq!(
        engines(&table),
        [
            ("a".to_owned(), Active, 1.0, Some(9), None),
            ("b".to_owned(), Draining, 3.0, None, Some(70)),
            ("c".to_owned(), Leaving, 2.0, None, None),
            ("d".to_owned(), Active, 1.0, Some(3), None),
        ]
    );
    let view = table.view();
    assert_eq!((view.max_in_flight, view.max_tokens), (Some(60), None));
    assert!(
        table.apply(&next).unwrap().is_empty(),
        "once more changes nothing"
    );
    assert!(next.open(table.path()).is_ok(), "as it is now");
    assert!(options.open(table.path()).is_err(), "and not as it was");

    // One that comes back while requests to it finish has its count back.
    let last = next.clone().engine(named("c"));
    assert_eq!(table.apply(&last).unwrap().to_string(), "engine c: added\n");
    assert_eq!(table.in_flight(), [0, 0, 1, 0]);
    drop(on_c);
    assert_eq!(table.in_flight(), [0; 4]);
}

#[test]
fn apply_leaves_what_the_options_do_not_name_and_empties_when_told_to() {
    let table = TestTable::new(&Table::options().engines(2).max_in_flight(5));
    let changes = table.apply(&Table::options().max_tokens(7)).unwrap();
    assert_eq!(
        changes.to_string(),
        "max_in_flight 5, now none\nmax_tokens none, now 7\n"
    );
    assert_eq!(table.view().engines.len(), 2);
    let changes = table.apply(&Table::options().engines(0)).unwrap();
    assert_eq!(changes.removed().count(), 2);
    let view = table.view();
    assert!(view.engines.is_empty());
    assert_eq!((view.max_in_flight, view.max_tokens), (None, None));
}

#[test]
fn apply_changes_nothing_if_it_cannot_do_all() {
    let options = || {
        Table::options()
            .engines(2)
            .max_engines(2)
            .max_frontends(4)
            .threads(1)
    };
    let table = TestTable::new(&options());
    let before = engines(&table);
    let differs = |options: &Options| match table.apply(options) {
        Err(Error::Differs { differences, .. }) => differences[0].to_string(),
        other => panic!("{other:?}"),
    };
    let more = Table::options().engines(3);
    assert_eq!(differs(&more.clone().threads(2)), "threads is 1, not 2");
    assert_eq!(
        differs(&more.clone().max_engines(3)),
        "max_engines is 2, not 3"
    );
    assert_eq!(
        differs(&more.clone().max_frontends(5)),
        "max_frontends is 4, not 5"
    );
    assert_eq!(differs(&more.clone().mode(0o660)), "mode is 0600, not 0660");
    let said = table
        .apply(&more.clone().threads(2))
        .unwrap_err()
        .to_string();
    let advice = format!(
        "or `headcount rm {}` when no process uses it",
        table.path().display()
    );
    assert!(said.ends_with(&advice), "{said}");
    let twice = options().engine(named("0"));
    assert!(matches!(table.apply(&twice), Err(Error::NameTaken { .. })));
    let bad = options().engine(named("x").weight(-1.0));
    assert!(matches!(table.apply(&bad), Err(Error::Weight { .. })));
    // They could not be there at the same time, however long one waits.
    let room = table.dimensions().max_engines;
    let many = (0..=room).fold(Table::options(), |all, n| {
        all.engine(named(&format!("new-{n}")))
    });
    let too_many = table.apply(&many);
    assert!(
        matches!(
            too_many,
            Err(Error::Option {
                option: "engines",
                found: 3,
                ..
            })
        ),
        "{too_many:?}"
    );
    assert_eq!(engines(&table), before);
    let reader = Table::open_read_only(table.path()).unwrap();
    assert!(matches!(reader.apply(&options()), Err(Error::ReadOnly)));
    let mut other = Actor::opened(table.path());
    other.deploy();
    assert!(matches!(table.apply(&more), Err(Error::Deployed { .. })));
    assert_eq!(engines(&table), before);
}

#[test]
fn apply_says_that_engines_which_finish_keep_their_slots_and_goes_on_later() {
    let table = TestTable::new(&Table::options().engines(2).max_engines(2));
    let frontend = table.join().unwrap();
    let held = frontend.route_with(&Request::new().pin(0)).unwrap();
    let next = Table::options()
        .engine(named("x"))
        .engine(named("y"))
        .max_in_flight(7);
    assert!(matches!(
        table.apply(&next),
        Err(Error::EnginesFull { max_engines: 2, .. })
    ));
    let view = table.view();
    assert_eq!(view.max_in_flight, Some(7));
    let names: Vec<_> = view.engines.into_iter().map(|e| e.name).collect();
    assert_eq!(names, ["0", "x"], "as far as it goes");
    let left: Vec<_> = table
        .differences(&next)
        .iter()
        .map(Difference::change)
        .collect();
    assert_eq!(left, ["engine y: added"]);
    drop(held);
    assert_eq!(table.apply(&next).unwrap().to_string(), "engine y: added\n");
    assert!(table.apply(&next).unwrap().is_empty());
}

#[test]
fn c4_a_lowered_cap_of_the_table_takes_nothing_away_and_lets_nothing_in() {
    let table = TestTable::new(&Table::options().engines(2));
    let frontend = table.join().unwrap();
    // In flight before there was a cap.
    let mut held = frontend.route_many(5).unwrap();
    let cap = |requests| {
        table
            .apply(&Table::options().max_in_flight(requests))
            .map(drop)
    };
    cap(7).unwrap();
    held.extend(frontend.route_many(2).unwrap());
    let refused = |frontend: &Frontend| match frontend.route() {
        Err(RouteError::Saturated { cap, passes }) => (cap, passes),
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(&frontend), (Cap::TableRequests, true));
    cap(3).unwrap();
    assert_eq!(table.in_flight(), [4, 3]);
    while held.len() > 3 {
        held.pop();
        assert_eq!(held.len() < 3, frontend.route().is_ok());
    }
    held.pop();
    held.push(frontend.route().unwrap());
    assert_eq!(refused(&frontend), (Cap::TableRequests, true));
    cap(0).unwrap();
    assert_eq!(refused(&frontend), (Cap::TableRequests, false));
    assert!(!table.apply(&Table::options()).unwrap().is_empty());
    held.extend(frontend.route_many(50).unwrap());
    drop(held);
    assert_eq!(table.in_flight(), [0, 0]);
    let verified = table.verify().unwrap();
    assert!(
        verified.is_consistent() && verified.busy.is_empty(),
        "{verified:?}"
    );
}

#[test]
fn c5_a_cap_of_the_table_on_tokens_can_come_and_go() {
    let table = TestTable::new(&Table::options().engines(2));
    let frontend = table.join().unwrap();
    let tokens = |tokens| frontend.route_with(&Request::new().tokens(tokens));
    let held = tokens(50).unwrap();
    let cap = |cap| table.apply(&Table::options().max_tokens(cap)).map(drop);
    cap(80).unwrap();
    assert!(matches!(
        tokens(31),
        Err(RouteError::Saturated {
            cap: Cap::TableTokens,
            passes: true
        })
    ));
    let more = tokens(30).unwrap();
    assert!(frontend.route().is_ok(), "no cap on requests");
    cap(40).unwrap();
    drop(held);
    assert!(tokens(11).is_err());
    assert!(tokens(10).is_ok());
    drop(more);
    assert!(matches!(
        tokens(41),
        Err(RouteError::Saturated {
            cap: Cap::TableTokens,
            passes: false
        })
    ));
    assert_eq!(table.tokens(), [0, 0]);
}

#[test]
fn k1_an_applier_that_is_killed_leaves_a_valid_table_and_to_apply_again_does_the_rest() {
    let table = TestTable::new(&many_engines(0).max_engines(200));
    let frontend = table.join().unwrap();
    let mut rounds = Rounds::new(25, "kills in the middle of an apply");
    while rounds.another() {
        let mut applier = Actor::opened(table.path());
        applier.apply_forever();
        let start = table.view().max_in_flight;
        eventually("an apply", || table.view().max_in_flight != start);
        applier.kill();
        let is = |which| many_engines(which).open(table.path()).is_ok();
        rounds.fell(!is(0) && !is(1));
        let verified = table.verify().unwrap();
        assert!(verified.is_consistent(), "{verified:?}");
        drop(frontend.route().unwrap());
        for which in [1, 0] {
            drop(table.apply(&many_engines(which)).unwrap());
            assert!(table.apply(&many_engines(which)).unwrap().is_empty());
            assert!(is(which));
            let view = table.view();
            assert_eq!(
                (view.engines.len(), view.max_in_flight),
                (100, Some(100 + which))
            );
        }
    }
}

#[test]
fn apply_waits_for_another_process_that_applies() {
    let table = TestTable::new(&many_engines(0).max_engines(200));
    let mut applier = Actor::opened(table.path());
    applier.apply_forever();
    // It found the other one's configuration, which that has applied in between.
    let mut rounds = Rounds::new(25, "applies in turns");
    while rounds.another() {
        let changes = table.apply(&many_engines(0)).unwrap();
        rounds.fell(!changes.is_empty());
    }
}

#[test]
fn c5_a_request_without_tokens_needs_no_room_for_any() {
    let capped = |tokens| {
        Table::options()
            .engines(2)
            .max_in_flight(100)
            .max_tokens(tokens)
    };
    let table = TestTable::new(&capped(100));
    let frontend = table.join().unwrap();
    let _held = frontend.route_with(&Request::new().tokens(80)).unwrap();
    table.apply(&capped(50)).unwrap();
    let one = Request::new().tokens(1);
    let full = frontend.route_with(&one).unwrap_err();
    assert!(
        matches!(
            full,
            RouteError::Saturated {
                cap: Cap::TableTokens,
                passes: true
            }
        ),
        "{full:?}"
    );
    let _none = frontend.route().unwrap();
    assert_eq!(frontend.route_many(3).unwrap().len(), 3);
}

/// Tells those who race to end, also if the test fails.
struct StopsAtLast<'a>(&'a AtomicBool);

impl Drop for StopsAtLast<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Racing frontends against a cap that moves. They count what they hold beside the table: less than is in
/// flight, for a moment, and never more.
#[test]
fn c4_the_tables_cap_holds_while_it_changes_under_racing_frontends() {
    const NONE: usize = usize::MAX;
    let table = TestTable::new(&Table::options().engines(3));
    let deployment = table.deploy().unwrap();
    let stop = AtomicBool::new(false);
    let (held, limit, refused) = (
        AtomicUsize::new(0),
        AtomicUsize::new(NONE),
        AtomicUsize::new(0),
    );
    let laps = [const { AtomicUsize::new(0) }; 3];
    let race = |lap: &AtomicUsize| {
        let frontend = table.join().unwrap();
        let mut permits = VecDeque::new();
        let finish = |permit: Option<Permit>| {
            held.fetch_sub(usize::from(permit.is_some()), Ordering::SeqCst);
            drop(permit);
        };
        while !stop.load(Ordering::SeqCst) {
            match frontend.route() {
                Ok(permit) => {
                    let now = held.fetch_add(1, Ordering::SeqCst) + 1;
                    let limit = limit.load(Ordering::SeqCst);
                    assert!(now <= limit, "{now} held under a cap of {limit}");
                    permits.push_back(permit);
                }
                Err(_) => _ = refused.fetch_add(1, Ordering::SeqCst),
            }
            if permits.len() > 8 || frontend.table().view().max_in_flight.is_some() {
                finish(permits.pop_front());
            }
            lap.fetch_add(1, Ordering::SeqCst);
        }
        permits.into_iter().for_each(|permit| finish(Some(permit)));
    };
    thread::scope(|scope| {
        let _stops = StopsAtLast(&stop);
        let racing: Vec<_> = laps.iter().map(|lap| scope.spawn(|| race(lap))).collect();
        let some_laps = |count| {
            let before = laps.each_ref().map(|lap| lap.load(Ordering::SeqCst));
            eventually("laps of all", || {
                racing.iter().any(|racing| racing.is_finished())
                    || (laps.iter().zip(before))
                        .all(|(lap, before)| lap.load(Ordering::SeqCst) >= before + count)
            });
        };
        let mut rounds = Rounds::new(40, "refusals under a cap");
        while rounds.another() {
            let before = refused.load(Ordering::SeqCst);
            for cap in [None, Some(5), Some(2), Some(4), None, Some(1)] {
                limit.store(NONE, Ordering::SeqCst);
                let options =
                    cap.map_or(Table::options(), |cap| Table::options().max_in_flight(cap));
                drop(deployment.apply(&options).unwrap());
                let Some(cap) = cap else { continue };
                // What was placed before the change has returned is held by then.
                some_laps(2);
                eventually("no more than the cap", || {
                    held.load(Ordering::SeqCst) <= cap as usize
                });
                limit.store(cap as usize, Ordering::SeqCst);
                some_laps(20);
            }
            rounds.fell(refused.load(Ordering::SeqCst) > before);
        }
    });
    assert_eq!(table.in_flight(), [0; 3]);
}

#[test]
fn what_an_operator_changes_in_place_keeps_no_worker_from_starting() {
    let options = || {
        Table::options()
            .engine(Engine::named("a").max_in_flight(2))
            .engine(Engine::named("b").weight(2.0))
            .max_in_flight(60)
    };
    let table = TestTable::new(&options());
    let open = |options: Options| options.open_or_create(table.path());
    for change in [
        |table: &Table| table.set_max_in_flight(0, Some(1)),
        |table: &Table| table.set_weight(1, 3.0),
        |table: &Table| table.add(Engine::named("c")).map(drop),
        |table: &Table| table.remove(0).map(drop),
        |table: &Table| table.set_total_max_in_flight(Some(9)),
        |table: &Table| table.set_total_max_tokens(Some(9)),
    ] {
        change(&table).unwrap();
        // The configuration is still the table's, in any order, and the operator's change stands.
        let before = table.view();
        open(options()).unwrap();
        let other_order = Table::options()
            .engine(Engine::named("b").weight(2.0))
            .engine(Engine::named("a").max_in_flight(2));
        open(other_order).unwrap();
        let after = table.view();
        assert_eq!(after.engines, before.engines);
        assert_eq!(after.max_in_flight, before.max_in_flight);
    }
    // What was neither configured nor is there does not fit.
    let differs = |options: Options| open(options).unwrap_err().to_string();
    let said = differs(options().max_in_flight(61));
    assert!(said.contains("max_in_flight is 9, not 61"), "{said}");
    let said = differs(options().max_tokens(8));
    assert!(said.contains("max_tokens is 9, not 8"), "{said}");
    let other = Table::options().engine(Engine::named("a").max_in_flight(3));
    let said = differs(other);
    assert!(said.contains("engine \"a\" is not in it"), "{said}");
    // What is there now fits as well.
    let now = Table::options()
        .engine(Engine::named("b").weight(3.0))
        .engine(Engine::named("c"))
        .max_in_flight(9);
    open(now.clone()).unwrap();
    // The next configuration takes the place of the last one.
    table.apply(&now.max_in_flight(10)).unwrap();
    let said = differs(options());
    assert!(said.contains("max_in_flight is 10, not 60"), "{said}");
    assert!(said.contains("engine \"a\" is not in it"), "{said}");
}
