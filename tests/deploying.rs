//! One deployment a table, and a table that is brought to another configuration.

use headcount::{Error, Table};
use headcount_tests::{Actor, TestTable};

const ACTOR: &str = env!("CARGO_BIN_EXE_actor");

/// The pid of the deployment, as another one is told.
fn told(table: &Table) -> Option<i32> {
    match table.deploy() {
        Err(Error::Deployed { path, pid }) if path == table.path() => Some(pid as i32),
        Err(other) => panic!("{other}"),
        Ok(_) => None,
    }
}

#[test]
fn a_table_has_one_deployment_at_a_time() {
    let table = TestTable::with_engines(2);
    assert_eq!(table.snapshot().deployment, None);
    let mut first = Actor::open(ACTOR, table.path());
    assert_eq!(first.ask("deploy"), "ok");
    assert_eq!(told(&table), Some(first.pid()));
    assert_eq!(table.snapshot().deployment, Some(first.pid() as u32));
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
    assert_eq!(first.ask("join"), "slot 0");
    table.drain(1).unwrap();
    let _permit = table.join().unwrap().route().unwrap();
    let reader = Table::open_read_only(table.path()).unwrap();
    assert_eq!(reader.snapshot().deployment, Some(first.pid() as u32));
    assert!(matches!(reader.deploy(), Err(Error::ReadOnly)));
}

#[test]
fn k2_the_death_of_a_deployment_gives_its_place_to_the_next() {
    let table = TestTable::with_engines(2);
    let mut first = Actor::open(ACTOR, table.path());
    assert_eq!(first.ask("deploy"), "ok");
    // A stopped process lives.
    first.stop();
    assert_eq!(told(&table), Some(first.pid()));
    first.resume();
    first.kill();
    assert_eq!(table.snapshot().deployment, None);
    let here = table.deploy().unwrap();
    assert_eq!(table.snapshot().deployment, Some(std::process::id()));
    let mut second = Actor::open(ACTOR, table.path());
    assert!(second.ask("deploy").starts_with("error Deployed"));
    drop(here);
    assert_eq!(second.ask("deploy"), "ok");
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
