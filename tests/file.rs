//! F1 to F4: what is created, what is opened, and what is refused.

use headcount::{Engine, Error, FaultKind, Options, PathState, Table};
use headcount_tests::{
    Actor, Random, Rounds, Task, TestTable, directory, eventually, is_root, race, skipped,
};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

fn options() -> Options {
    Table::options().engines(4)
}

/// A finished table's file to be damaged, without anybody who has it open.
fn left_behind() -> (TempDir, PathBuf) {
    let directory = directory();
    let path = directory.path().join("table");
    options().create(&path).unwrap();
    (directory, path)
}

/// The error, whose message must say something to do.
fn refused<T: std::fmt::Debug>(result: Result<T, Error>) -> Error {
    let error = result.unwrap_err();
    let message = error.to_string();
    assert!(message.contains("; "), "says what to do: {message}");
    println!("{message}");
    error
}

#[test]
fn f1_racing_creators_end_in_one_table() {
    let mut rounds = Rounds::new(20, "creators that met");
    while rounds.another() {
        let directory = directory();
        let path = directory.path().join("table");
        let mut actors: Vec<_> = (0..4).map(|_| Actor::start()).collect();
        let raced = race(&mut actors, &Task::create(&path, 4));
        rounds.fell(raced.met);
        assert_eq!(raced.answers, [const { Ok(()) }; 4]);
        for actor in &mut actors {
            actor.join();
            actor.burst(2);
        }
        let table = Table::open(&path).unwrap();
        let in_flight: Vec<_> = table.view().engines.iter().map(|e| e.in_flight).collect();
        assert_eq!(in_flight, [2; 4], "all of them count in the same table");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}

#[test]
fn f1_a_creator_killed_half_way_leaves_nothing_that_stops_the_next() {
    let mut random = Random::seeded();
    let (mut none, mut finished) = (0, 0);
    let mut rounds = Rounds::new(
        60,
        "rounds after which some were killed before the end, and some after it",
    );
    for round in 0.. {
        if !rounds.another() {
            break;
        }
        let directory = directory();
        let path = directory.path().join("table");
        let mut creator = Actor::start();
        // An answer, whatever it is, says that it is up.
        creator.refused(&Task::Held);
        creator.tell(&Task::create(&path, 4));
        // It takes its time where others have more to do.
        random.pause(400 + 10 * round);
        creator.kill();
        match Table::open(&path) {
            Ok(table) => {
                finished += 1;
                assert_eq!(table.view().engines.len(), 4, "a finished one");
            }
            Err(Error::NotFound { .. }) => none += 1,
            Err(error) => panic!("{error}"),
        }
        let table = options().open_or_create(&path).unwrap();
        drop(table.join().unwrap().route().unwrap());
        assert_eq!(
            fs::read_dir(directory.path()).unwrap().count(),
            1,
            "no debris"
        );
        rounds.fell(none > 0 && finished > 0);
    }
    println!("killed before the end {none} times, after it {finished} times");
}

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
fn f1_open_or_create_gives_what_was_asked_for() {
    let (_directory, path) = left_behind();
    assert!(options().open_or_create(&path).is_ok());
    let differs = |options: Options, expected: &str| match refused(options.open(&path)) {
        Error::Differs { differences, .. } => {
            let said: Vec<_> = differences.iter().map(ToString::to_string).collect();
            assert_eq!(said.join("; "), expected);
        }
        other => panic!("{other}"),
    };
    let three = || Table::options().engines(3);
    let named = |name: &str| three().engine(Engine::named(name));
    let cases = [
        (three(), "engine \"3\" is in it and was not asked for"),
        (Table::options().engines(5), "engine \"4\" is not in it"),
        (
            named("x"),
            "engine \"x\" is not in it; engine \"3\" is in it and was not asked for",
        ),
        (options().max_in_flight(7), "max_in_flight is none, not 7"),
        (options().mode(0o666), "mode is 0600, not 0666"),
        (
            three().engine(Engine::named("3").weight(2.0).max_tokens(9)),
            "engine \"3\": weight is 1, not 2; engine \"3\": max_tokens is none, not 9",
        ),
        (
            three().engine(Engine::named("3").max_in_flight(9)),
            "engine \"3\": max_in_flight is none, not 9",
        ),
    ];
    for (options, expected) in cases {
        differs(options, expected);
    }
    let backwards = ["3", "2", "1", "0"].map(Engine::named);
    let backwards = (backwards.into_iter()).fold(Table::options(), Options::engine);
    assert!(backwards.open(&path).is_ok(), "in any order");
    let other = path.with_extension("other");
    let capped = |requests, tokens| {
        let engine = Engine::named("0").max_in_flight(requests);
        Table::options().engine(engine.max_tokens(tokens))
    };
    capped(8, 9).create(&other).unwrap();
    assert!(capped(8, 9).open(&other).is_ok());
    for (requests, tokens) in [(7, 9), (8, 10), (9, 8)] {
        let error = refused(capped(requests, tokens).open(&other));
        assert!(matches!(error, Error::Differs { .. }), "{error}");
    }
    let table = Table::open(&path).unwrap();
    table.add(Engine::named("fifth")).unwrap();
    table.set_caps(0, Some(9), None).unwrap();
    // What it was created with fits, and so does what it has now.
    assert!(options().open_or_create(&path).is_ok());
    let now = ["1", "2", "3", "fifth"].map(Engine::named);
    let zero = Table::options().engine(Engine::named("0").max_in_flight(9));
    let now = now.into_iter().fold(zero, Options::engine);
    assert!(now.open_or_create(&path).is_ok());
    differs(
        named("fifth"),
        "engine \"0\": max_in_flight is 9, not none; engine \"3\" is in it and was not asked for",
    );
    assert!(matches!(
        refused(options().create(&path)),
        Error::Exists { .. }
    ));
}

#[test]
fn f2_what_is_no_table_is_refused() {
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
fn f1_each_option_that_differs_is_named_however_the_table_is_opened() {
    let all = || {
        Table::options()
            .engines(2)
            .max_engines(8)
            .max_frontends(9)
            .threads(1)
            .max_in_flight(100)
            .max_tokens(1000)
            .mode(0o640)
    };
    let table = TestTable::new(&all());
    let descriptor = Options::default().from_fd(&*table).unwrap();
    for (options, name) in [
        (all().engines(1), "engine"),
        (all().max_engines(7), "max_engines"),
        (all().max_frontends(8), "max_frontends"),
        (all().threads(2), "threads"),
        (all().max_in_flight(99), "max_in_flight"),
        (all().max_tokens(999), "max_tokens"),
        (all().mode(0o600), "mode"),
    ] {
        for result in [
            options.open(table.path()),
            options.open_or_create(table.path()),
            options.open_read_only(table.path()),
            options.from_fd(&descriptor),
        ] {
            let error = refused(result);
            assert!(
                matches!(&error, Error::Differs { differences, .. } if differences[0].option == name),
                "{name}: {error:?}"
            );
        }
    }
    assert!(all().open_or_create(table.path()).is_ok());
}

#[test]
fn f2_a_changed_header_is_refused_and_a_restored_one_opens() {
    let (_directory, path) = left_behind();
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&path)
        .unwrap();
    let good = fs::read(&path).unwrap();
    for bit in (0..512 * 8).step_by(3) {
        let byte = bit / 8;
        file.write_all_at(&[good[byte] ^ (1 << (bit % 8))], byte as u64)
            .unwrap();
        let error = Table::open(&path).unwrap_err();
        match (byte, &error) {
            (0..8, Error::NotATable { .. })
            | (8..16, Error::Version { expected: 5, .. })
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
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&path)
        .unwrap();
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
    let file = OpenOptions::new().write(true).open(&path).unwrap();
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
fn those_who_use_a_table_know_whether_it_lies_at_its_path() {
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
        // Somebody else's file that is there on every machine.
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

#[test]
fn reading_only_changes_nothing_and_disturbs_nobody() {
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

#[test]
fn impossible_options_are_refused() {
    let directory = directory();
    let path = directory.path().join("table");
    let bad = |options: Options| refused(options.create(&path));
    for (options, name) in [
        (Table::options().engines(5).max_engines(4), "engines"),
        (Table::options().max_engines(0), "max_engines"),
        (Table::options().engines(5000), "engines"),
        (Table::options().engines(usize::MAX), "engines"),
        (Table::options(), "engines"),
        (Table::options().max_frontends(9), "engines"),
        (Table::options().max_frontends(0), "max_frontends"),
        (Table::options().max_frontends(5000), "max_frontends"),
        (Table::options().max_frontends(1000).threads(4), "threads"),
        (Table::options().mode(0o1777), "mode"),
        (Table::options().mode(0o066), "mode"),
    ] {
        let error = bad(options);
        assert!(
            matches!(error, Error::Option { option, .. } if option == name),
            "{error:?}"
        );
    }
    let twice = options().engine(Engine::named("2"));
    assert!(matches!(bad(twice), Error::NameTaken { engine: 2, .. }));
    assert!(!path.exists());
    for (options, said) in [
        (
            Table::options().engines(5000),
            "engines is 5000, but it must be 0 to 4096; change that option",
        ),
        (
            Table::options().max_frontends(4095).threads(3),
            "threads is 3, but it must be 0 to 0, for 4095 frontends and 4095 lanes in all; change that option",
        ),
        (
            Table::options().mode(660),
            "mode is 0o1224, but it must be permission bits that let the owner read and write (did you mean 0o660?); change that option",
        ),
    ] {
        assert_eq!(bad(options).to_string(), said);
    }
    let most = Table::options().engines(1).max_frontends(4095);
    assert!(most.create(&path).is_ok());
}

#[test]
fn a_table_of_no_engines_has_to_be_asked_for() {
    let directory = directory();
    let at = |name: &str| directory.path().join(name);
    let unsaid = refused(Table::options().open_or_create(at("unsaid")));
    assert!(
        unsaid
            .to_string()
            .starts_with("engines is 0, but it must be 1 or more"),
        "{unsaid}"
    );
    assert!(!at("unsaid").exists());
    for (options, name) in [
        (Table::options().engines(0), "none"),
        (Table::options().max_engines(8), "later"),
    ] {
        let table = options.open_or_create(at(name)).unwrap();
        assert!(table.view().engines.is_empty());
        // What is there is opened, whatever it has.
        assert!(Table::options().open_or_create(at(name)).is_ok());
    }
}

#[test]
fn the_largest_table_works() {
    let table = TestTable::new(
        &Table::options()
            .engines(4096)
            .max_frontends(1024)
            .threads(2),
    );
    let frontend = table.join().unwrap();
    let permits = frontend.route_many(5000).unwrap();
    assert_eq!(table.in_flight().iter().sum::<u32>(), 5000);
    drop(permits);
    assert_eq!(table.in_flight(), [0; 4096]);
}
