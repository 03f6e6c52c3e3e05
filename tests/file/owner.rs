//! F4: modes, symbolic links and owners.

use crate::{left_behind, options, refused};
use headcount::{Error, Options, Table};
use headcount_tests::{directory, is_root, skipped};
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

#[test]
fn f4_mode_is_0600_unless_asked_for() {
    let directory = directory();
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    let private = directory.path().join("private");
    options().create(&private).unwrap();
    assert_eq!(mode(&private), 0o600);
    let shared = directory.path().join("shared");
    options().mode(0o666).create(&shared).unwrap();
    assert_eq!(mode(&shared), 0o666, "whatever the umask is");
    assert!(Table::open(&shared).is_ok());

    fs::set_permissions(&private, fs::Permissions::from_mode(0o640)).unwrap();
    let wide = refused(Table::open(&private));
    assert!(matches!(
        wide,
        Error::Mode {
            found: 0o640,
            expected: 0o600,
            ..
        }
    ));
    fs::set_permissions(&private, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(Table::open(&private).is_ok());
}

#[test]
fn f4_symlinks_are_not_followed() {
    let (directory, path) = left_behind();
    let link = directory.path().join("link");
    symlink(&path, &link).unwrap();
    assert!(matches!(refused(Table::open(&link)), Error::Symlink { .. }));
    assert!(matches!(
        refused(options().open_or_create(&link)),
        Error::Symlink { .. }
    ));
    assert!(matches!(
        refused(options().create(&link)),
        Error::Exists { .. }
    ));
    // One that leads nowhere is not a free name either.
    let dangling = directory.path().join("dangling");
    symlink(directory.path().join("nothing"), &dangling).unwrap();
    assert!(matches!(
        refused(options().open_or_create(&dangling)),
        Error::Symlink { .. }
    ));
    assert!(!directory.path().join("nothing").exists());
}

#[test]
fn f4_a_table_of_another_user_is_refused_unless_asked_for() {
    if !is_root() {
        skipped(
            "f4_a_table_of_another_user (the half with a chown)",
            "only root can chown",
        );
        // A file of another user that exists on every machine.
        let other = refused(Table::open_read_only("/etc/passwd"));
        assert!(matches!(other, Error::Owner { found: 0, .. }), "{other:?}");
        return;
    }
    let (_directory, path) = left_behind();
    std::os::unix::fs::chown(&path, Some(65_534), None).unwrap();
    let other = refused(Table::open(&path));
    assert!(matches!(
        other,
        Error::Owner {
            found: 65_534,
            expected: 0,
            ..
        }
    ));
    let file = File::options().read(true).write(true).open(&path).unwrap();
    let by_descriptor = refused(Options::default().from_fd(&file));
    assert!(
        matches!(by_descriptor, Error::Owner { .. }),
        "{by_descriptor:?}"
    );
    assert!(Options::default().any_owner(true).from_fd(&file).is_ok());
    let table = Options::default().any_owner(true).open(&path).unwrap();
    drop(table.join().unwrap().route().unwrap());
}
