//! One deployment a table.

use headcount::{Error, Table};
use headcount_tests::{Actor, Task, TestTable};

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
