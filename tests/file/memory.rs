//! F3: the memory is reserved, and a memfd is sealed.

use crate::{left_behind, options};
use headcount::Table;
use headcount_tests::{Actor, Task, directory, is_root, skipped};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::process::Command;

#[test]
fn f3_the_memory_is_there_from_the_start() {
    let (_directory, path) = left_behind();
    let metadata = fs::metadata(&path).unwrap();
    assert!(metadata.blocks() * 512 >= metadata.len(), "no holes");
    // A copy with holes is filled when it is opened.
    let copy = path.with_file_name("copy");
    let bytes = fs::read(&path).unwrap();
    let file = File::create(&copy).unwrap();
    file.set_len(metadata.len()).unwrap();
    file.write_all_at(&bytes[..512], 0).unwrap();
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(fs::metadata(&copy).unwrap().blocks() * 512 < metadata.len());
    Table::open(&copy).unwrap();
    assert!(fs::metadata(&copy).unwrap().blocks() * 512 >= metadata.len());
}

#[test]
fn f3_a_full_file_system_is_an_error_on_create() {
    // A file system of 64 KiB, in a mount namespace of its own, so that nothing is left of it.
    let script = r#"mount -t tmpfs -o size=64k none "$1" && exec "$2""#;
    let directory = directory();
    let mut command = Command::new("unshare");
    if !is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command
        .args(["--mount", "sh", "-c", script, "sh"])
        .arg(directory.path());
    let mut probe = Command::new("unshare");
    let probe = probe.args(command.get_args()).arg("true").status();
    if !probe.is_ok_and(|status| status.success()) {
        skipped(
            "f3_a_full_file_system_is_an_error_on_create",
            "no tmpfs can be mounted here",
        );
        return;
    }
    let mut actor = Actor::start_by(command.arg(Actor::program()));
    let path = directory.path().join("table");
    let full = actor.refused(&Task::create(&path, 4));
    assert!(full.starts_with("NoSpace"), "{full}");
    let open = actor.refused(&Task::open(&path));
    assert!(open.starts_with("NotFound"), "nothing was left: {open}");
}

#[test]
fn f3_a_memfd_is_sealed_and_inherited_by_a_child() {
    let table = options().memfd().unwrap();
    let file = File::options().write(true).open(format!(
        "/proc/self/fd/{}",
        std::os::fd::AsRawFd::as_raw_fd(&std::os::fd::AsFd::as_fd(&table))
    ));
    for size in [0, 100, 1 << 30] {
        assert!(
            file.as_ref().unwrap().set_len(size).is_err(),
            "its size is sealed"
        );
    }
    let mut actor = Actor::start_by(table.pass_to(&mut Actor::command()));
    actor.inherit();
    assert_eq!(actor.join(), 0);
    assert_eq!(actor.burst(8), [2, 2, 2, 2]);
    let frontend = table.join().unwrap();
    assert_eq!(
        frontend.slot(),
        1,
        "the child is alive, and its place is its own"
    );
    assert_eq!(table.view().engines[0].in_flight, 2);
    actor.kill();
    assert_eq!(table.reap().unwrap().requests, 8);

    let mut stranger = Actor::start();
    assert!(
        stranger
            .refused(&Task::Inherit { threads: None })
            .starts_with("NotPassed"),
        "it was not passed"
    );
}
