//! The texts for people: messages, and the debug forms of tables, frontends, permits and options.

use headcount::{Engine, Options, Request, RouteError, Table};
use headcount_tests::{TestTable, ids};

/// The message for a request that no engine takes.
fn unavailable(table: &Table, request: &Request<'_>) -> String {
    let error = table.join().unwrap().route_with(request).unwrap_err();
    assert!(matches!(error, RouteError::Unavailable(_)), "{error}");
    error.to_string()
}

#[test]
fn unavailable_advises_only_what_fits_the_case() {
    let table = TestTable::with_engines(3);
    let any = Request::new();
    let all = ids(&table, [0, 1, 2]);
    let none_of_three = Request::new().exclude(&all);
    assert_eq!(
        unavailable(&table, &none_of_three),
        "none of the 3 engines takes this request: 3 are excluded by the request; exclude fewer"
    );
    table.down(0).unwrap();
    table.drain(1).unwrap();
    assert_eq!(
        unavailable(&table, &none_of_three),
        "none of the 3 engines takes this request: 1 is down, 1 is draining, 1 is excluded by the request; bring one up with `Table::up`, add one, or exclude fewer"
    );
    assert_eq!(
        unavailable(&table, &any.pin(0)),
        "the engine that this request may go to takes none: 1 is down; bring one up with `Table::up`, or add one"
    );
    let empty = TestTable::new(&Table::options().engines(0));
    assert_eq!(
        unavailable(&empty, &any),
        "the table has no engine; add one with `Table::add` or `Table::apply`"
    );
}

#[test]
fn the_debug_form_of_options_names_what_was_set_and_no_other_numbers() {
    let said = |options: Options| format!("{options:?}");
    assert_eq!(said(Table::options()), "Options");
    let options = Table::options()
        .engine(Engine::named("a"))
        .engine(
            Engine::named("b")
                .weight(2.0)
                .max_in_flight(8)
                .max_tokens(9),
        )
        .max_frontends(3)
        .max_tokens(100)
        .mode(0o660);
    assert_eq!(
        said(options),
        "Options { engines: [Engine { name: \"a\", weight: 1.0 }, Engine { name: \"b\", weight: 2.0, max_in_flight: 8, max_tokens: 9 }], max_frontends: 3, max_tokens: 100, mode: 0o660 }"
    );
}

#[test]
fn the_debug_form_of_handles_is_short() {
    let table = TestTable::with_engines(2);
    let path = table.path();
    let shown = format!("Table {{ path: {path:?}, access: ReadWrite, .. }}");
    assert_eq!(format!("{:?}", *table), shown);
    let reader = Table::open_read_only(path).unwrap();
    assert!(format!("{reader:?}").contains("access: ReadOnly"));
    let publisher = format!("{:?}", table.publisher().unwrap());
    assert_eq!(publisher, format!("Publisher {{ table: {shown}, .. }}"));
    let deployment = format!("{:?}", table.deploy().unwrap());
    assert_eq!(deployment, format!("Deployment {{ table: {shown}, .. }}"));
    let frontend = format!("{:?}", table.join().unwrap());
    let policy = "InFlight { stale_after: 1s }";
    assert_eq!(
        frontend,
        format!("Frontend {{ table: {shown}, slot: 0, policy: {policy} }}")
    );
    let reaper = table.reap_every(std::time::Duration::from_secs(9)).unwrap();
    assert_eq!(format!("{reaper:?}"), "Reaper { last_error: None, .. }");
}

#[test]
fn differs_says_how_to_change_the_table_and_names_the_first_differences() {
    let options = (0..5).fold(Table::options(), |options, n| {
        options.engine(Engine::named(format!("gpu-{n}")))
    });
    let table = TestTable::new(&options);
    let asked = Table::options().engine(Engine::named("gpu-0").max_in_flight(9));
    let error = asked.open(table.path()).unwrap_err().to_string();
    let path = table.path().display();
    assert_eq!(
        error,
        format!(
            "{path} differs from what was asked for: engine \"gpu-0\": max_in_flight is none, not 9; engine \"gpu-1\" is in it and was not asked for; engine \"gpu-2\" is in it and was not asked for (and 2 more); ask for what it has, or change it with `Table::apply` or `headcount apply {path}`"
        )
    );
}
