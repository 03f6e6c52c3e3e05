//! `apply`, and the caps of a table in use.

use crate::command::{Ran, on, run, with_variable};
use crate::scene::Scene;
use headcount::{Engine, EngineState, Error, RouteError, Table};
use headcount_tests::{TestTable, directory};
use std::fs;
use std::path::Path;

/// Applies engines and other arguments, some of which have spaces.
fn apply(path: &Path, arguments: &[&str]) -> Ran {
    let path = path.to_str().unwrap();
    run([&["apply", path], arguments].concat())
}

#[test]
fn a_living_table_comes_to_a_list_and_each_change_is_said() {
    let mut scene = Scene::new();
    scene.table.drain(1).unwrap();
    let list = scene.path().with_file_name("engines");
    fs::write(
        &list,
        "# those of tomorrow\ngpu-0 weight=2\ngpu-1 max_in_flight=64\nnew max_tokens=900\n",
    )
    .unwrap();
    let list = list.to_str().unwrap();
    let arguments = [
        "--engines-file",
        list,
        "--max-in-flight",
        "8",
        "--max-in-flight-total",
        "60",
    ];
    let before = fs::read(scene.path()).unwrap();
    let changes = "max_in_flight_total none, now 60\n\
                   engine gpu-0: weight 1, now 2\n\
                   engine gpu-0: max_in_flight none, now 8\n\
                   engine new: added\n\
                   engine gpu-2: removed\n";
    let said = apply(scene.path(), &[&arguments[..], &["--dry-run"]].concat()).fine();
    assert_eq!(said, format!("{changes}nothing was changed: --dry-run\n"));
    assert!(fs::read(scene.path()).unwrap() == before, "no byte");
    assert_eq!(apply(scene.path(), &arguments).fine(), changes);
    let view = scene.table.view();
    assert_eq!(view.max_in_flight, Some(60));
    let engines = view.engines.iter();
    let engines: Vec<_> = engines
        .map(|e| {
            (
                e.name.as_str(),
                e.state,
                e.weight,
                e.in_flight,
                e.max_in_flight,
            )
        })
        .collect();
    assert_eq!(
        engines,
        [
            ("gpu-0", EngineState::Active, 2.0, 3, Some(8)),
            // A drain stays until the operator ends it.
            ("gpu-1", EngineState::Draining, 1.0, 3, Some(64)),
            ("gpu-2", EngineState::Leaving, 1.0, 3, None),
            ("new", EngineState::Active, 1.0, 0, Some(8)),
        ]
    );
    assert_eq!(
        apply(scene.path(), &arguments).fine(),
        "nothing to change\n"
    );
    // Its frontends go by it.
    assert_eq!(scene.frontends[0].burst(4)[2], 0);
    // A cap that is not given any more is none.
    let said = apply(scene.path(), &arguments[..4]).fine();
    assert_eq!(said, "max_in_flight_total 60, now none\n");
}

#[test]
fn a_table_of_the_command_is_the_one_that_a_program_with_caps_asks_for() {
    let directory = directory();
    let path = directory.path().join("table");
    let engines = [
        "--engine=gpu-0 max_in_flight=8",
        "--engine=gpu-1=2",
        "--max-in-flight-total=512",
    ];
    let create = ["create".to_owned(), path.display().to_string()];
    run(create.into_iter().chain(engines.map(str::to_owned))).fine();
    let options = Table::options()
        .engine(Engine::named("gpu-1").weight(2.0))
        .engine(Engine::named("gpu-0").max_in_flight(8))
        .max_in_flight(512);
    options.open_or_create(&path).unwrap();
    on(&path, "cap PATH gpu-0 9").fine();
    options.open_or_create(&path).unwrap();
    let next = Table::options()
        .engine(Engine::named("gpu-1").weight(2.0))
        .engine(Engine::named("gpu-0").max_in_flight(7))
        .max_in_flight(512);
    let differs = next.open_or_create(&path).unwrap_err();
    assert!(matches!(differs, Error::Differs { .. }), "{differs}");
    // As its message says.
    assert!(
        differs.to_string().contains("`headcount apply "),
        "{differs}"
    );
    let said = apply(&path, &engines).fine();
    assert_eq!(said, "engine gpu-0: max_in_flight 9, now 8\n");
    options.open_or_create(&path).unwrap();
}

#[test]
fn a_table_that_serves_a_deployment_is_left_to_it() {
    let table = TestTable::new(&Table::options().engine(Engine::named("a")));
    let deployment = table.deploy().unwrap();
    let served = format!("is served by process {}, ", std::process::id());
    let said = apply(table.path(), &["-e", "b"]).refused(1);
    assert!(said.contains(&served), "{said}");
    let view = table.view();
    assert_eq!((view.engines.len(), view.max_in_flight), (1, None));
    assert_eq!(view.engines[0].name, "a");
    // To apply the same changes nothing, and neither does a dry run.
    assert_eq!(
        apply(table.path(), &["-e", "a"]).fine(),
        "nothing to change\n"
    );
    let said = apply(table.path(), &["-e", "b", "--dry-run"]).refused(1);
    assert!(said.contains(&served), "{said}");
    drop(deployment);
    apply(table.path(), &["-e", "b"]).fine();
    assert_eq!(table.view().engines[0].name, "b");
}

#[test]
fn the_caps_of_a_living_table_change_and_hold() {
    let mut scene = Scene::new();
    let said = on(scene.path(), "cap PATH --max-in-flight-total 10").fine();
    assert_eq!(
        said,
        "all engines together: at most 10 requests, no cap on tokens\n"
    );
    let frontend = scene.table.join().unwrap();
    let permit = frontend.route().unwrap();
    let full = frontend.route().unwrap_err();
    assert!(matches!(full, RouteError::Saturated { .. }), "{full}");
    drop(permit);
    // What is not named stays. An operator may do so beside a deployment.
    let _deployment = scene.table.deploy().unwrap();
    let said = on(scene.path(), "cap PATH --max-tokens-total 700").fine();
    assert_eq!(
        said,
        "all engines together: at most 10 requests, at most 700 tokens\n"
    );
    let said = on(
        scene.path(),
        "cap PATH --max-in-flight-total none --max-tokens-total none",
    )
    .fine();
    assert_eq!(said, "all engines together: no caps\n");
    assert_eq!(scene.frontends[0].burst(30).iter().sum::<u32>(), 30);
    assert_eq!(scene.table.view().engines.len(), 3, "engines stay");
    on(scene.path(), "cap PATH gpu-0 5 --max-in-flight-total 9").refused(2);
}

#[test]
fn a_list_that_cannot_be_changes_nothing() {
    let scene = Scene::new();
    let before = fs::read(scene.path()).unwrap();
    let none = scene.path().with_file_name("none");
    fs::write(&none, "\n# nothing\n").unwrap();
    let said = apply(scene.path(), &["--engines-file", none.to_str().unwrap()]).refused(2);
    assert!(
        said.contains("names no engine; give at least one"),
        "{said}"
    );
    apply(scene.path(), &["--max-in-flight-total", "5"]).refused(2);
    apply(scene.path(), &["--engines-file", "/nowhere"]).refused(2);
    let said = apply(scene.path(), &["-e", "a=1", "-e", "a=2"]).refused(2);
    assert!(said.contains("\"a\" is given twice"), "{said}");
    assert_eq!(apply(scene.path(), &["-e", "gpu=2x"]).code, 2);
    apply(&scene.path().with_file_name("no-table"), &["-e", "a"]).refused(3);
    assert!(fs::read(scene.path()).unwrap() == before, "no byte");
}

#[test]
fn engines_for_which_there_is_no_slot_yet_are_reported_as_missing() {
    let options = Table::options().engines(2).max_engines(2);
    let table = TestTable::new(&options);
    let frontend = table.join().unwrap();
    let permits = frontend.route_many(2).unwrap();
    let wanted = ["-e", "1", "-e", "new", "--max-in-flight-total", "9"];
    let ran = apply(table.path(), &wanted);
    let changed = "max_in_flight_total none, now 9\nengine 0: removed\n";
    assert_eq!(ran.out, changed);
    let said = ran.refused(1);
    assert!(said.contains("what is left: engine new: added"), "{said}");
    assert_eq!(table.view().max_in_flight, Some(9));
    drop(permits);
    assert_eq!(apply(table.path(), &wanted).fine(), "engine new: added\n");
    // These never could be there together: nothing is changed.
    let too_many = ["-e", "1", "-e", "2", "-e", "3"];
    let said = apply(table.path(), &too_many).refused(2);
    assert!(
        said.contains("0 to 2, which is the table's max_engines"),
        "{said}"
    );
    assert_eq!(table.view().max_in_flight, Some(9));
}

#[test]
fn an_engine_without_its_flag_is_not_taken_for_a_table() {
    let scene = Scene::new();
    let before = names(&scene);
    for stray in ["gpu-1", "http://10.0.0.7:8000"] {
        let line = format!("apply --engine gpu-0 {stray}");
        let said = with_variable(scene.path(), &line).refused(2);
        let advice = format!("there is no table {stray}; write --engine before each engine");
        assert!(said.starts_with(&advice), "{said}");
    }
    assert_eq!(names(&scene), before);
    // A table that is there goes before the one that the environment names.
    let other = TestTable::with_engines(1);
    let line = format!("apply {} --engine gpu-0", other.path().display());
    with_variable(scene.path(), &line).fine();
    assert_eq!(names(&scene), before);
    assert_eq!(other.find("gpu-0").map(|id| id.index()), Some(1));
    with_variable(scene.path(), "apply --engine gpu-0").fine();
    assert_eq!(names(&scene)[0], "gpu-0");
}

fn names(scene: &Scene) -> Vec<String> {
    let engines = scene.table.view().engines.into_iter();
    engines.map(|engine| engine.name).collect()
}
