//! Commands that only read: they need read permission only, and change nothing, not even by a reap.

use crate::command::{as_nobody, on};
use crate::scene::Scene;
use headcount_tests::{is_root, skipped};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

const READING: [&str; 5] = [
    "show PATH --any-owner",
    "show PATH --json --any-owner",
    "verify PATH --any-owner",
    "dump PATH --any-owner",
    "metrics PATH --once --any-owner",
];

#[test]
fn reading_commands_change_no_byte_and_reap_no_frontend() {
    let mut scene = Scene::new();
    scene.kill_one();
    let before = fs::read(scene.path()).unwrap();
    for line in READING {
        on(scene.path(), line).fine();
        assert!(fs::read(scene.path()).unwrap() == before, "{line}");
    }
    assert_eq!(scene.table.in_flight(), [3, 3, 3]);
}

#[test]
fn reading_commands_need_read_permission_only() {
    if !is_root() {
        return skipped(
            "reading_commands_need_read_permission_only",
            "needs another user",
        );
    }
    let scene = Scene::new();
    let directory = scene.path().parent().unwrap();
    fs::set_permissions(directory, Permissions::from_mode(0o755)).unwrap();
    // A table that is created for others to read. The binary must be reachable for them, too.
    let path = directory.join("shared");
    on(&path, "create PATH --engine a --mode 0644").fine();
    let binary = directory.join("headcount");
    fs::copy(crate::command::binary(), &binary).unwrap();
    for line in READING {
        as_nobody(&path, line).fine();
    }
    as_nobody(&path, "drain PATH a --any-owner").refused(3);
    as_nobody(&path, "rm PATH --any-owner").refused(3);
}
