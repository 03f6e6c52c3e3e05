//! K2: file systems whose mappings keep no locks.

use headcount::{Error, Table};
use headcount_tests::{TestTable, fork, in_flight, skipped, succeeds_alone, wait};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// On overlayfs a mapping keeps another file than the one that was opened.
#[test]
fn k2_a_frontend_lives_on_file_systems_whose_mappings_keep_no_locks() {
    let name = "k2_a_frontend_lives_on_file_systems_whose_mappings_keep_no_locks";
    succeeds_alone(
        name,
        || TestTable::with_engines(1),
        |path| {
            let directory = path.parent().unwrap();
            let Some(mount) = overlay(directory) else {
                return skipped(name, "overlayfs cannot be mounted here");
            };
            let table = Table::options().engines(1).max_frontends(1);
            let table = table.create(mount.join("table")).unwrap();
            let permit = table.join().unwrap().route().unwrap();
            let publisher = table.publisher().unwrap();
            let other = fork(|| {
                let other = Table::open(mount.join("table")).unwrap();
                let is_held = matches!(other.publisher(), Err(Error::PublisherHeld { .. }));
                let is_full = matches!(other.join(), Err(Error::FrontendsFull { .. }));
                i32::from(!(is_held && is_full && in_flight(&other) == [1]))
            });
            assert_eq!(wait(other), 0, "another process takes them for alive");
            drop((permit, publisher));
            assert_eq!(in_flight(&table), [0]);
            let dies = fork(|| {
                std::mem::forget(table.join().unwrap().route().unwrap());
                0
            });
            assert_eq!(wait(dies), 0);
            assert_eq!(
                table.reap().unwrap().requests,
                1,
                "and for dead when they are"
            );
        },
    );
}

/// Mounts an overlay below `directory`, in a mount namespace of this process's own.
fn overlay(directory: &Path) -> Option<PathBuf> {
    // SAFETY: changes the mounts that this process sees, and nothing else.
    if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
        return None;
    }
    let [lower, upper, work, mount] = ["lower", "upper", "work", "mount"].map(|part| {
        let part = directory.join(part);
        std::fs::create_dir(&part).unwrap();
        part
    });
    let (lower, upper, work) = (lower.display(), upper.display(), work.display());
    let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
    let run = |arguments: &[&str]| {
        let status = Command::new("mount")
            .args(arguments)
            .stderr(Stdio::null())
            .status();
        status.is_ok_and(|status| status.success())
    };
    let mounted = run(&["--make-rprivate", "/"])
        && run(&[
            "-t",
            "overlay",
            "overlay",
            "-o",
            &options,
            &mount.to_string_lossy(),
        ]);
    mounted.then_some(mount)
}
