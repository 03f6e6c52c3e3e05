//! F1: creation is atomic, and gives what the options ask for.

use crate::{left_behind, options, refused};
use headcount::{Engine, Error, Options, Table};
use headcount_tests::{Actor, Random, Rounds, Task, TestTable, directory, race};
use std::fs;

#[test]
fn f1_racing_creators_end_in_one_table() {
    let mut rounds = Rounds::new(20, "creators that met");
    while rounds.another() {
        let directory = directory();
        let path = directory.path().join("table");
        let mut actors: Vec<_> = (0..4).map(|_| Actor::start()).collect();
        let raced = race(&mut actors, &Task::create(&path, 4));
        rounds.fell(raced.met);
        assert_eq!(raced.answers, [const { Ok(()) }; 4]);
        for actor in &mut actors {
            actor.join();
            actor.burst(2);
        }
        let table = Table::open(&path).unwrap();
        let in_flight: Vec<_> = table.view().engines.iter().map(|e| e.in_flight).collect();
        assert_eq!(in_flight, [2; 4], "all of them count in the same table");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}

#[test]
fn f1_a_creator_killed_half_way_leaves_nothing_that_stops_the_next() {
    let mut random = Random::seeded();
    let (mut none, mut finished) = (0, 0);
    let mut rounds = Rounds::new(
        60,
        "rounds after which some were killed before the end, and some after it",
    );
    for round in 0.. {
        if !rounds.another() {
            break;
        }
        let directory = directory();
        let path = directory.path().join("table");
        let mut creator = Actor::start();
        // An answer, whatever it is, says that it is up.
        creator.refused(&Task::Held);
        creator.tell(&Task::create(&path, 4));
        // It takes its time where others have more to do.
        random.pause(400 + 10 * round);
        creator.kill();
        match Table::open(&path) {
            Ok(table) => {
                finished += 1;
                assert_eq!(table.view().engines.len(), 4, "a finished one");
            }
            Err(Error::NotFound { .. }) => none += 1,
            Err(error) => panic!("{error}"),
        }
        let table = options().open_or_create(&path).unwrap();
        drop(table.join().unwrap().route().unwrap());
        assert_eq!(
            fs::read_dir(directory.path()).unwrap().count(),
            1,
            "no debris"
        );
        rounds.fell(none > 0 && finished > 0);
    }
    println!("killed before the end {none} times, after it {finished} times");
}

#[test]
fn f1_open_or_create_gives_what_was_asked_for() {
    let (_directory, path) = left_behind();
    assert!(options().open_or_create(&path).is_ok());
    let differs = |options: Options, expected: &str| match refused(options.open(&path)) {
        Error::Differs { differences, .. } => {
            let said: Vec<_> = differences.iter().map(ToString::to_string).collect();
            assert_eq!(said.join("; "), expected);
        }
        other => panic!("{other}"),
    };
    let three = || Table::options().engines(3);
    let named = |name: &str| three().engine(Engine::named(name));
    let cases = [
        (three(), "engine \"3\" is in it and was not asked for"),
        (Table::options().engines(5), "engine \"4\" is not in it"),
        (
            named("x"),
            "engine \"x\" is not in it; engine \"3\" is in it and was not asked for",
        ),
        (options().max_in_flight(7), "max_in_flight is none, not 7"),
        (options().mode(0o666), "mode is 0600, not 0666"),
        (
            three().engine(Engine::named("3").weight(2.0).max_tokens(9)),
            "engine \"3\": weight is 1, not 2; engine \"3\": max_tokens is none, not 9",
        ),
        (
            three().engine(Engine::named("3").max_in_flight(9)),
            "engine \"3\": max_in_flight is none, not 9",
        ),
    ];
    for (options, expected) in cases {
        differs(options, expected);
    }
    let backwards = ["3", "2", "1", "0"].map(Engine::named);
    let backwards = (backwards.into_iter()).fold(Table::options(), Options::engine);
    assert!(backwards.open(&path).is_ok(), "in any order");
    let other = path.with_extension("other");
    let capped = |requests, tokens| {
        let engine = Engine::named("0").max_in_flight(requests);
        Table::options().engine(engine.max_tokens(tokens))
    };
    capped(8, 9).create(&other).unwrap();
    assert!(capped(8, 9).open(&other).is_ok());
    for (requests, tokens) in [(7, 9), (8, 10), (9, 8)] {
        let error = refused(capped(requests, tokens).open(&other));
        assert!(matches!(error, Error::Differs { .. }), "{error}");
    }
    let table = Table::open(&path).unwrap();
    table.add(Engine::named("fifth")).unwrap();
    table.set_caps(0, Some(9), None).unwrap();
    // What it was created with fits, and so does what it has now.
    assert!(options().open_or_create(&path).is_ok());
    let now = ["1", "2", "3", "fifth"].map(Engine::named);
    let zero = Table::options().engine(Engine::named("0").max_in_flight(9));
    let now = now.into_iter().fold(zero, Options::engine);
    assert!(now.open_or_create(&path).is_ok());
    differs(
        named("fifth"),
        "engine \"0\": max_in_flight is 9, not none; engine \"3\" is in it and was not asked for",
    );
    assert!(matches!(
        refused(options().create(&path)),
        Error::Exists { .. }
    ));
}

#[test]
fn f1_each_option_that_differs_is_named_however_the_table_is_opened() {
    let all = || {
        Table::options()
            .engines(2)
            .max_engines(8)
            .max_frontends(9)
            .threads(1)
            .max_in_flight(100)
            .max_tokens(1000)
            .mode(0o640)
    };
    let table = TestTable::new(&all());
    let descriptor = Options::default().from_fd(&*table).unwrap();
    for (options, name) in [
        (all().engines(1), "engine"),
        (all().max_engines(7), "max_engines"),
        (all().max_frontends(8), "max_frontends"),
        (all().threads(2), "threads"),
        (all().max_in_flight(99), "max_in_flight"),
        (all().max_tokens(999), "max_tokens"),
        (all().mode(0o600), "mode"),
    ] {
        for result in [
            options.open(table.path()),
            options.open_or_create(table.path()),
            options.open_read_only(table.path()),
            options.from_fd(&descriptor),
        ] {
            let error = refused(result);
            assert!(
                matches!(&error, Error::Differs { differences, .. } if differences[0].option == name),
                "{name}: {error:?}"
            );
        }
    }
    assert!(all().open_or_create(table.path()).is_ok());
}

#[test]
fn impossible_options_are_refused() {
    let directory = directory();
    let path = directory.path().join("table");
    let bad = |options: Options| refused(options.create(&path));
    for (options, name) in [
        (Table::options().engines(5).max_engines(4), "engines"),
        (Table::options().max_engines(0), "max_engines"),
        (Table::options().engines(5000), "engines"),
        (Table::options().engines(usize::MAX), "engines"),
        (Table::options(), "engines"),
        (Table::options().max_frontends(9), "engines"),
        (Table::options().max_frontends(0), "max_frontends"),
        (Table::options().max_frontends(5000), "max_frontends"),
        (Table::options().max_frontends(1000).threads(4), "threads"),
        (Table::options().mode(0o1777), "mode"),
        (Table::options().mode(0o066), "mode"),
    ] {
        let error = bad(options);
        assert!(
            matches!(error, Error::Option { option, .. } if option == name),
            "{error:?}"
        );
    }
    let twice = options().engine(Engine::named("2"));
    assert!(matches!(bad(twice), Error::NameTaken { engine: 2, .. }));
    assert!(!path.exists());
    for (options, said) in [
        (
            Table::options().engines(5000),
            "engines is 5000, but it must be 0 to 4096; change that option",
        ),
        (
            Table::options().max_frontends(4095).threads(3),
            "threads is 3, but it must be 0 to 0, for 4095 frontends and 4095 lanes in all; change that option",
        ),
        (
            Table::options().mode(660),
            "mode is 0o1224, but it must be permission bits that let the owner read and write (did you mean 0o660?); change that option",
        ),
    ] {
        assert_eq!(bad(options).to_string(), said);
    }
    let most = Table::options().engines(1).max_frontends(4095);
    assert!(most.create(&path).is_ok());
}

#[test]
fn a_table_of_no_engines_has_to_be_asked_for() {
    let directory = directory();
    let at = |name: &str| directory.path().join(name);
    let unsaid = refused(Table::options().open_or_create(at("unsaid")));
    assert!(
        unsaid
            .to_string()
            .starts_with("engines is 0, but it must be 1 or more"),
        "{unsaid}"
    );
    assert!(!at("unsaid").exists());
    for (options, name) in [
        (Table::options().engines(0), "none"),
        (Table::options().max_engines(8), "later"),
    ] {
        let table = options.open_or_create(at(name)).unwrap();
        assert!(table.view().engines.is_empty());
        // What is there is opened, whatever it has.
        assert!(Table::options().open_or_create(at(name)).is_ok());
    }
}

#[test]
fn the_largest_table_works() {
    let table = TestTable::new(
        &Table::options()
            .engines(4096)
            .max_frontends(1024)
            .threads(2),
    );
    let frontend = table.join().unwrap();
    let permits = frontend.route_many(5000).unwrap();
    assert_eq!(table.in_flight().iter().sum::<u32>(), 5000);
    drop(permits);
    assert_eq!(table.in_flight(), [0; 4096]);
}
