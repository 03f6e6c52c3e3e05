//! `Table::apply`: a table that is brought to another configuration.

use headcount::{Difference, Engine, EngineState, Error, Options, Request, Table};
use headcount_tests::{Actor, Rounds, TestTable, eventually, many_engines};

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
    let mut rounds = Rounds::new(25, "applies after the other process");
    while rounds.another() {
        let changes = table.apply(&many_engines(0)).unwrap();
        rounds.fell(!changes.is_empty());
    }
}
