//! What a process knows of the path of its table, and of a table that is passed to it.

use crate::{left_behind, options};
use headcount::{FaultKind, Options, PathState, Table};
use headcount_tests::{Actor, Task, TestTable, eventually};
use std::fs;
use std::os::unix::fs::symlink;

#[test]
fn a_passed_table_goes_to_that_child_and_no_further() {
    let table = options().memfd().unwrap();
    let other = TestTable::with_engines(1);
    let mut actor = Actor::start_by(table.pass_to(&mut Actor::command()));
    actor.inherit();
    actor.inherit();
    let other_lanes = actor.refused(&Task::Inherit { threads: Some(2) });
    assert!(other_lanes.starts_with("Differs"), "{other_lanes}");
    let theirs = actor.child_has_table();
    assert!(
        !theirs.display().to_string().contains("headcount"),
        "{theirs:?}"
    );
    // The variable goes further than the descriptor: it must not lead to anything.
    let none = actor.child_is_refused(None);
    assert!(none.contains("NotPassed"), "{none}");
    let another = actor.child_is_refused(Some(other.path()));
    assert!(another.contains("NotPassed"), "{another}");
    assert_eq!(actor.join(), 0);
    assert_eq!(table.view().frontends.len(), 1);
}

#[test]
fn each_user_of_a_table_knows_whether_it_lies_at_its_path() {
    let table = TestTable::with_engines(2);
    let path = table.path();
    let mut users = [
        Actor::joined(path),
        Actor::start_by(Actor::command().current_dir(path.parent().unwrap())),
        Actor::start_by(table.pass_to(&mut Actor::command())),
    ];
    users[1].open("table".as_ref());
    users[1].change_directory("/".as_ref());
    users[2].inherit();
    for user in &mut users {
        user.reap_every(5);
    }
    let mut see = |state: PathState, expected_error: Option<&str>| {
        let found = table.verify().unwrap();
        let kinds: Vec<_> = found.faults.iter().map(|fault| fault.kind).collect();
        let expected: &[_] = if state.is_split() {
            &[FaultKind::Path]
        } else {
            &[]
        };
        assert_eq!((table.path_state().unwrap(), &*kinds), (state, expected));
        for user in &mut users {
            assert_eq!(user.path_state(), format!("{state:?}"));
            eventually("the reaper's error", || {
                match (user.reaper_error(), expected_error) {
                    (None, None) => true,
                    (Some(error), Some(text)) => error.contains(text) && error.contains("/table "),
                    _ => false,
                }
            });
        }
    };
    let away = path.with_file_name("away");
    see(PathState::Here, None);
    fs::rename(path, &away).unwrap();
    see(PathState::Gone, Some("was removed or renamed"));
    let other = options().create(path).unwrap();
    see(PathState::Replaced, Some("was replaced by another file"));
    assert_eq!(other.path_state().unwrap(), PathState::Here);
    fs::rename(&away, path).unwrap();
    see(PathState::Here, None);
    assert_eq!(other.path_state().unwrap(), PathState::Replaced);
    fs::remove_file(path).unwrap();
    see(PathState::Gone, Some("was removed or renamed"));
    symlink(&away, path).unwrap();
    see(PathState::Replaced, Some("was replaced by another file"));
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
    see(PathState::Gone, Some("was removed or renamed"));
    // It goes on nevertheless, and all of these are still one.
    assert_eq!(users[0].burst(4), [2, 2]);
    assert_eq!(users[2].join(), 1);
    assert_eq!(users[2].burst(2), [1, 1]);
    assert_eq!(table.in_flight(), [3, 3]);
}

#[test]
fn a_table_without_a_path_says_so() {
    let memfd = options().memfd().unwrap();
    assert_eq!(memfd.path_state().unwrap(), PathState::NoPath);
    let (_directory, path) = left_behind();
    let table = Table::open(&path).unwrap();
    let by_descriptor = Options::default().from_fd(&table).unwrap();
    assert_eq!(by_descriptor.path_state().unwrap(), PathState::NoPath);
    assert_eq!(table.path_state().unwrap(), PathState::Here);
    assert!(memfd.verify().unwrap().is_consistent());
}
