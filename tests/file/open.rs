//! F1 and F2: nothing in a file is trusted, and opening disturbs no process.

use crate::{left_behind, options, refused};
use headcount::{Engine, Error, Options, Table};
use headcount_tests::{Actor, TestTable, directory, eventually};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

#[test]
fn f1_opening_races_safely_with_reaping() {
    let table = TestTable::with_engines(3);
    let mut openers: Vec<_> = (0..2).map(|_| Actor::start()).collect();
    for opener in &mut openers {
        opener.open_forever(table.path());
    }
    for _ in 0..60 {
        let mut victim = Actor::joined(table.path());
        assert_eq!(victim.burst(30), [10, 10, 10]);
        victim.kill();
        eventually("a reap by an opener", || table.in_flight() == [0; 3]);
        eventually("a free slot", || table.view().frontends.is_empty());
    }
}

#[test]
fn f2_a_file_that_is_no_table_is_refused() {
    let directory = directory();
    let at = |name: &str| directory.path().join(name);
    let open = |path: &Path| refused(Table::open(path));

    assert!(
        matches!(open(directory.path()), Error::NotATable { found, .. } if found == "a directory")
    );
    assert!(matches!(open(&at("missing")), Error::NotFound { .. }));
    assert!(matches!(
        open(&at("no/such/directory/table")),
        Error::NotFound { .. }
    ));
    assert!(matches!(
        refused(options().create(at("no/such/directory/table"))),
        Error::NotFound { .. }
    ));
    fs::write(at("empty"), "").unwrap();
    assert!(
        matches!(open(&at("empty")), Error::NotATable { found, .. } if found == "an empty file")
    );
    fs::write(at("short"), "HEADCNT").unwrap();
    assert!(matches!(open(&at("short")), Error::NotATable { .. }));
    fs::write(at("text"), "In the beginning was the word.\n".repeat(100)).unwrap();
    assert!(matches!(open(&at("text")), Error::NotATable { .. }));
    let fifo = Command::new("mkfifo").arg(at("fifo")).status();
    assert!(fifo.unwrap().success());
    assert!(matches!(open(&at("fifo")), Error::NotATable { found, .. } if found == "a named pipe"));
    // Without a writer, opening a pipe for reading would wait for one.
    let pipe = at("fifo");
    let reader = std::thread::spawn(move || refused(Table::open_read_only(pipe)));
    eventually("the refusal", || reader.is_finished());
    assert!(matches!(reader.join().unwrap(), Error::NotATable { .. }));
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    assert!(matches!(open(&at("socket")), Error::NotATable { .. }));
    let device = refused(Options::default().any_owner(true).open("/dev/null"));
    assert!(matches!(device, Error::NotATable { found, .. } if found == "a device"));
    let read_only = refused(Table::open_read_only(directory.path()));
    assert!(matches!(read_only, Error::NotATable { found, .. } if found == "a directory"));
}

#[test]
fn f2_a_changed_header_is_refused_and_a_restored_one_opens() {
    let (_directory, path) = left_behind();
    let file = File::options().read(true).write(true).open(&path).unwrap();
    let good = fs::read(&path).unwrap();
    for bit in (0..512 * 8).step_by(3) {
        let byte = bit / 8;
        file.write_all_at(&[good[byte] ^ (1 << (bit % 8))], byte as u64)
            .unwrap();
        let error = Table::open(&path).unwrap_err();
        match (byte, &error) {
            (0..8, Error::NotATable { .. })
            | (8..16, Error::Version { expected: 8, .. })
            | (16.., Error::Checksum { .. }) => {}
            _ => panic!("bit {bit}: {error}"),
        }
        file.write_all_at(&good[byte..=byte], byte as u64).unwrap();
    }
    assert!(Table::open(&path).is_ok());
    file.write_all_at(&9_u64.to_le_bytes(), 8).unwrap();
    let other = refused(Table::open(&path));
    assert!(matches!(other, Error::Version { found: 9, .. }));
}

/// The checksum as documented, written here once more.
fn forge(header: &mut [u8; 512]) {
    let checksum = (header[..504].chunks(8)).fold(0xcbf2_9ce4_8422_2325_u64, |state, word| {
        (state ^ u64::from_le_bytes(word.try_into().unwrap())).wrapping_mul(0x0100_0000_01b3)
    });
    header[504..].copy_from_slice(&checksum.to_le_bytes());
}

#[test]
fn f2_absurd_geometry_is_refused_even_with_a_right_checksum() {
    let (_directory, path) = left_behind();
    let file = File::options().read(true).write(true).open(&path).unwrap();
    let mut good = [0; 512];
    file.read_exact_at(&mut good, 0).unwrap();
    // Word by word: header size, size, max_engines, max_frontends, lanes, engines, mode.
    for word in 2..9 {
        for value in [0, 1, 5000, 1 << 40, u64::MAX - 1, u64::MAX] {
            let mut bad = good;
            bad[word * 8..][..8].copy_from_slice(&value.to_le_bytes());
            if bad == good {
                continue;
            }
            forge(&mut bad);
            file.write_all_at(&bad, 0).unwrap();
            match Table::open(&path) {
                Err(Error::Geometry { .. } | Error::Size { .. } | Error::Mode { .. }) => {}
                Ok(_) if word == 7 => {} // possible numbers
                other => panic!("word {word} = {value}: {other:?}"),
            }
        }
    }
    file.write_all_at(&good, 0).unwrap();
    assert!(Table::open(&path).is_ok());
}

#[test]
fn f2_a_truncated_or_grown_file_is_refused() {
    let (_directory, path) = left_behind();
    let file = File::options().write(true).open(&path).unwrap();
    let size = file.metadata().unwrap().len();
    for wrong in [512, 513, 4096, size - 1, size + 1, size * 2] {
        file.set_len(wrong).unwrap();
        let error = refused(Table::open(&path));
        assert!(
            matches!(error, Error::Size { found, expected, .. } if (found, expected) == (wrong, size))
        );
    }
    file.set_len(100).unwrap();
    assert!(matches!(
        refused(Table::open(&path)),
        Error::NotATable { .. }
    ));
}

#[test]
fn a_reader_changes_nothing_and_disturbs_no_process() {
    let table = TestTable::with_engines(2);
    let mut dead = Actor::joined(table.path());
    dead.burst(4);
    dead.kill();
    let before = fs::read(table.path()).unwrap();
    let reader = Table::open_read_only(table.path()).unwrap();
    let view = reader.view();
    assert_eq!(
        (view.frontends[0].alive, view.engines[0].in_flight),
        (false, 2)
    );
    for result in [
        reader.join().map(drop),
        reader.publisher().map(drop),
        reader.reap().map(drop),
        reader.add(Engine::named("x")).map(drop),
        reader.remove(0).map(drop),
        reader.down(0),
        reader.set_weight(0, 2.0),
        reader
            .reap_every(std::time::Duration::from_secs(1))
            .map(drop),
    ] {
        assert!(matches!(refused(result), Error::ReadOnly));
    }
    assert!(fs::read(table.path()).unwrap() == before);
}

#[test]
fn handles_print_as_what_they_are_and_not_as_all_they_hold() {
    let table = TestTable::with_engines(4);
    let frontend = table.join().unwrap();
    let permit = frontend.route().unwrap();
    for printed in [
        format!("{:?}", &*table),
        format!("{frontend:?}"),
        format!("{permit:?}"),
    ] {
        assert!(printed.len() < 4000, "{} bytes", printed.len());
    }
}
