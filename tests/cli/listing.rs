//! `list`: the tables of a machine, and files that only resemble one.

use crate::command::{as_nobody, on, run};
use crate::scene::Scene;
use headcount::Table;
use headcount_tests::{directory, is_root};
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};

fn listed(path: &std::path::Path) -> Value {
    serde_json::from_str(&on(path, "list PATH --json").fine()).unwrap()
}

#[test]
fn tables_are_listed_with_what_is_in_flight_and_their_processes() {
    let mut scene = Scene::new();
    let place = scene.path().parent().unwrap().to_owned();
    let below = place.join("below");
    fs::create_dir(&below).unwrap();
    let _other = Table::options().engines(2).create(below.join("b")).unwrap();
    fs::write(place.join("no-table"), "HEADCOUNTED").unwrap();
    fs::write(place.join("empty"), "").unwrap();
    symlink(scene.path(), place.join("link")).unwrap();
    scene.kill_one();
    let _publisher = scene.table.publisher().unwrap();
    let _deployment = scene.table.deploy().unwrap();
    let path = scene.path().display().to_string();
    let expected = json!([
        {
            "path": path, "engines": 3, "in_flight": 9, "frontends": 1, "dead_frontends": 1,
            "publisher": std::process::id(), "deployment": std::process::id(), "error": null,
        },
        {
            "path": below.join("b"), "engines": 2, "in_flight": 0, "frontends": 0,
            "dead_frontends": 0, "publisher": null, "deployment": null, "error": null,
        },
    ]);
    let mut tables = listed(&place)["tables"].take();
    let tables = tables.as_array_mut().unwrap();
    tables.sort_by_key(|table| std::cmp::Reverse(table["engines"].as_u64()));
    assert_eq!(*tables, *expected.as_array().unwrap());
    let text = on(&place, "list PATH").fine();
    let line = text.lines().find(|line| line.starts_with(&path)).unwrap();
    let words: Vec<_> = line.split_whitespace().skip(1).collect();
    let pid = std::process::id().to_string();
    assert_eq!(words, ["3", "9", "1", "1", &pid, &pid], "{text}");
    // The command only reads.
    assert_eq!(scene.table.in_flight(), [3, 3, 3]);
}

#[test]
fn tables_of_this_machine_are_found_without_being_named() {
    let directory = tempfile::TempDir::new_in("/dev/shm").unwrap();
    let path = directory.path().join("table");
    let _table = Table::options().engines(1).create(&path).unwrap();
    let text = run(["list"]).fine();
    assert!(text.contains(path.to_str().unwrap()), "{text}");
}

#[test]
fn a_table_that_cannot_be_opened_is_listed_with_the_error() {
    let directory = directory();
    let at = |name: &str| directory.path().join(name);
    for name in ["damaged", "foreign"] {
        Table::options().engines(1).create(at(name)).unwrap();
    }
    let mut bytes = fs::read(at("damaged")).unwrap();
    bytes[50] ^= 1;
    fs::write(at("damaged"), bytes).unwrap();
    let text = on(directory.path(), "list PATH").fine();
    assert!(
        text.contains("! the header of ") && text.contains("damaged"),
        "{text}"
    );
    assert!(text.contains(at("foreign").to_str().unwrap()), "{text}");
    let said = on(&at("none"), "list PATH").refused(3);
    assert!(said.contains("No such file"), "{said}");
    fs::write(at("no-table"), "x").unwrap();
    let text = on(&at("no-table"), "list PATH").fine();
    assert!(
        text.starts_with("! ") && text.contains("is not a headcount table"),
        "{text}"
    );
    let text = on(directory.path(), "list PATH").fine();
    assert!(!text.contains("no-table"), "{text}");
    if !is_root() {
        return;
    }
    chown(at("foreign"), Some(65534), None).unwrap();
    let tables = listed(directory.path())["tables"].take();
    let error = tables[1]["error"].as_str().unwrap_or_default();
    assert!(error.contains("belongs to user 65534"), "{tables}");
    let text = on(directory.path(), "list PATH --any-owner").fine();
    assert!(text.contains(at("foreign").to_str().unwrap()), "{text}");
    // A user without permission to read them learns how many there are.
    fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
    let binary = at("headcount");
    fs::copy(crate::command::binary(), &binary).unwrap();
    let text = as_nobody(directory.path(), "list PATH").fine();
    assert!(text.contains("for lack of permission: 1"), "{text}");
}

#[test]
fn no_tables_is_an_answer() {
    let directory = directory();
    let place = directory.path().display();
    let text = on(directory.path(), "list PATH").fine();
    assert_eq!(text, format!("no tables in {place}\n"));
}
