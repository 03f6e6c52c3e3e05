//! F2: a child process opens and uses files that are cut, damaged and forged. It may not die of a signal, hang or
//! panic.
//!
//! Rules: docs/contract.md.

use headcount::{Engine, Table};
use headcount_tests::{Actor, Task, TestTable, directory, eventually};
use proptest::prelude::*;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

const HEADER: usize = 512;

/// What is done to a finished table.
#[derive(Clone, Debug)]
enum Damage {
    /// Words of the body, wherever they lie.
    Words(Vec<(prop::sample::Index, u64)>),
    /// Everything behind the header, from a seed.
    Everything(u64),
    /// A byte of the header, with or without a checksum that fits.
    Header(usize, u8, bool),
    /// The length.
    Length(prop::sample::Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let word = prop_oneof![
        any::<u64>(),
        Just(u64::MAX),
        0..1_u64 << 20,
        any::<u64>().prop_map(|word| word | 1 << 63),
    ];
    prop_oneof![
        4 => prop::collection::vec((any::<prop::sample::Index>(), word), 1..400).prop_map(Damage::Words),
        2 => any::<u64>().prop_map(Damage::Everything),
        2 => (0..HEADER - 8, any::<u8>(), any::<bool>()).prop_map(|(at, byte, forged)| Damage::Header(at, byte, forged)),
        1 => any::<prop::sample::Index>().prop_map(Damage::Length),
    ]
}

fn apply(damage: &Damage, path: &Path) -> std::io::Result<()> {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let size = file.metadata()?.len() as usize;
    let words = (size - HEADER) / 8;
    match damage {
        Damage::Words(words_to_change) => {
            for (index, word) in words_to_change {
                let at = HEADER + 8 * index.index(words);
                file.write_all_at(&word.to_le_bytes(), at as u64)?;
            }
        }
        Damage::Everything(seed) => {
            let mut state = *seed;
            let body: Vec<u8> = (0..words)
                .flat_map(|_| {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    (state ^ (state >> 29)).to_le_bytes()
                })
                .collect();
            file.write_all_at(&body, HEADER as u64)?;
        }
        Damage::Header(at, byte, forged) => {
            let mut header = [0; HEADER];
            file.read_exact_at(&mut header, 0)?;
            header[*at] = *byte;
            if *forged {
                // The checksum as documented.
                let checksum = header[..HEADER - 8].chunks(8).fold(
                    0xcbf2_9ce4_8422_2325,
                    |state: u64, word| {
                        let word = word
                            .iter()
                            .rev()
                            .fold(0, |word, byte| word << 8 | u64::from(*byte));
                        (state ^ word).wrapping_mul(0x0100_0000_01b3)
                    },
                );
                header[HEADER - 8..].copy_from_slice(&checksum.to_le_bytes());
            }
            file.write_all_at(&header, 0)?;
        }
        Damage::Length(index) => file.set_len(index.index(2 * size) as u64)?,
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]
    #[test]
    fn f2_no_file_kills_hangs_or_panics_its_user(damages in prop::collection::vec(damage(), 1..3)) {
        let directory = directory();
        let path = directory.path().join("table");
        let options = Table::options().engines(4).max_frontends(8).max_in_flight(100).max_waiting(20);
        drop(options.create(&path).unwrap());
        for damage in &damages {
            // One that was cut may be too short for the next damage, which is all the same.
            let _ = apply(damage, &path);
        }
        let output = Actor::command().arg("use-everything").arg(&path).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        prop_assert!(output.status.success(), "{:?}: {said}", output.status);
        prop_assert!(!said.contains("panicked"), "{said}");
    }
}

#[test]
fn f2_limits_that_are_written_and_not_announced_hang_no_route() {
    let table = TestTable::new(&Table::options().engine(Engine::named("0").max_in_flight(0)));
    let frontend = table.join().unwrap();
    let damage = headcount_tests::Damage::to(&table, table.path());
    let routes = std::thread::spawn(move || {
        assert!(frontend.route().is_err());
        // This thread's lane remembers that the engine is full.
        damage.change("limits", 0, 0, |limits| limits + 1);
        let permit = frontend.route();
        assert!(permit.is_ok() && frontend.route().is_err());
    });
    eventually("the last route", || routes.is_finished());
    routes.join().unwrap();
}

#[test]
fn f4_two_users_share_a_table_if_both_want_to() {
    if !headcount_tests::is_root() {
        headcount_tests::skipped("f4_two_users", "only root can become another user");
        return;
    }
    let directory = directory();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let (path, actor) = (
        directory.path().join("table"),
        directory.path().join("actor"),
    );
    fs::copy(Actor::program(), &actor).unwrap();
    let table = Table::options()
        .engines(2)
        .mode(0o666)
        .create(&path)
        .unwrap();
    let _frontend = table.join().unwrap();
    let mut other = Actor::start_by(Command::new(&actor).uid(65_534).gid(65_534));
    let refused = other.refused(&Task::open(&path));
    assert!(refused.starts_with("Owner"), "{refused}");
    other.open_any_owner(&path);
    assert_eq!(other.join(), 1);
    assert_eq!(other.burst(4), [2, 2]);
    other.kill();
    assert_eq!(
        table.reap().unwrap().requests,
        4,
        "their deaths are seen across users, too"
    );

    let private = directory.path().join("private");
    drop(Table::options().engines(2).create(&private).unwrap());
    let mut other = Actor::start_by(Command::new(&actor).uid(65_534).gid(65_534));
    let refused = other.refused(&Task::open_any_owner(&private));
    assert!(refused.contains("PermissionDenied"), "{refused}");
}
