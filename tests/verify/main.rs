//! `Table::verify`: each kind of damage is found and named, and a running table is never accused.

mod queue;

use headcount::{EngineStats, FaultKind, Options, Table, Verification};
use headcount_tests::{Actor, Damage, Random, TestTable, lanes_in_midst, spawn_all};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::thread;
use std::time::{Duration, Instant};

fn kinds(found: &Verification) -> Vec<FaultKind> {
    found.faults.iter().map(|fault| fault.kind).collect()
}

/// Damages a table in use, and returns what is found then.
fn damaged(damage: impl FnOnce(&Damage, &TestTable)) -> Verification {
    let table = TestTable::new(&Table::options().engines(4).max_frontends(8).threads(1));
    let mut frontends = spawn_all(table.path(), 2);
    frontends[0].burst_with_tokens(6, 100);
    frontends[1].burst(5);
    let mut publisher = table.publisher().unwrap();
    publisher.publish(&[EngineStats::default(); 4]).unwrap();
    let reader = Table::open_read_only(table.path()).unwrap();
    let before = reader.verify().unwrap();
    assert!(
        before.is_consistent() && before.busy.is_empty(),
        "{before:?}"
    );
    damage(&Damage::to(&reader, table.path()), &table);
    let found = reader.verify().unwrap();
    for fault in &found.faults {
        println!("{fault}");
    }
    // The library must live with it, whatever it is.
    drop((reader.view(), reader.dump().unwrap()));
    found
}

#[test]
fn a_wrong_count_is_found() {
    let found = damaged(|damage, _| damage.change("words", 2, 0, |word| word + (1 << 42)));
    assert_eq!(kinds(&found), [FaultKind::Requests]);
    assert!(found.faults[0].at.contains("engine 2"), "{found:?}");
    let found = damaged(|damage, _| damage.change("words", 3, 0, |word| word - (1 << 42)));
    assert_eq!(kinds(&found), [FaultKind::Requests]);
}

#[test]
fn a_count_on_a_row_that_nothing_uses_is_found() {
    // Between the row of the table and those of its queue.
    for row in [65, 79] {
        let found = damaged(|damage, _| damage.change("words", row, 0, |word| word + (1 << 42)));
        assert_eq!(kinds(&found), [FaultKind::Requests]);
        let at = format!("row {row}, which nothing uses");
        assert_eq!(found.faults[0].at, at);
        let found = damaged(|damage, _| damage.change("ledgers", 0, row, |word| word + 1));
        assert_eq!(kinds(&found), [FaultKind::Requests]);
    }
}

#[test]
fn wrong_tokens_are_found() {
    let found = damaged(|damage, _| damage.change("tokens", 0, 0, |word| word + (1 << 32)));
    assert_eq!(kinds(&found), [FaultKind::Tokens]);
}

#[test]
fn a_wrong_ledger_is_found() {
    // The first lane of the first frontend: a request more on engine 1.
    let found = damaged(|damage, _| damage.change("ledgers", 0, 1, |word| word + 1));
    assert_eq!(kinds(&found), [FaultKind::Requests]);
    assert!(found.faults[0].at.contains("engine 1"), "{found:?}");
}

#[test]
fn a_ledger_of_no_frontend_is_found() {
    let found = damaged(|damage, _| damage.change("ledgers", 14, 1, |word| word + 3));
    assert_eq!(kinds(&found), [FaultKind::Ledger, FaultKind::Requests]);
    assert!(found.faults[0].at.contains("slot 7"), "{found:?}");
}

#[test]
fn an_impossible_slot_is_found() {
    let found = damaged(|damage, _| damage.change("slots", 5, 0, |_| 2));
    assert_eq!(kinds(&found), [FaultKind::Slot]);
}

#[test]
fn an_impossible_lane_is_found() {
    const INTENT: u64 = 1;
    const CONFIRMED: u64 = 8;
    for (part, lane, word, value) in [
        ("lanes", 14, INTENT, 1 << 50),
        ("lanes", 14, INTENT, 1 << 63),
        ("lanes", 0, INTENT, (1 << 63) | (8000 << 30)),
        ("lanes", 0, INTENT, (1 << 63) | 12345),
        ("lanes", 1, CONFIRMED, 1 << 40),
        // Of lane 1, by lane 3.
        ("witnesses", 2, 0, (1 << 29) | (1 << 20)),
    ] {
        let found = damaged(|damage, _| damage.change(part, lane, word, |_| value));
        assert!(
            kinds(&found).contains(&FaultKind::Lane),
            "{part} {lane} {word} {found:?}"
        );
    }
}

#[test]
fn an_impossible_engine_is_found() {
    const GENERATION: u64 = 0;
    const NAME_LENGTH: u64 = 1;
    const NAME: u64 = 2;
    let changes: [(&str, u64, u64, u64); 8] = [
        ("limits", 0, 0, u64::from(f32::NAN.to_bits()) << 32),
        ("limits", 0, 0, 5),
        ("engines", 0, NAME, u64::from_le_bytes(*b"\x1b[2J\0\0\0\0")),
        ("engines", 1, NAME_LENGTH, 300),
        ("engines", 1, NAME, u64::from(b'0')),
        ("engines", 2, GENERATION, 7),
        ("words", 40, 0, 1 << 42),
        ("words", 40, 0, 2 << 62),
    ];
    for (part, index, n, value) in changes {
        let found = damaged(|damage, _| damage.change(part, index, n, |_| value));
        assert!(
            kinds(&found).contains(&FaultKind::Engine),
            "{part} {index} {n} {found:?}"
        );
    }
    let found = damaged(|damage, _| damage.change("control", 0, 32, |_| 1000));
    assert!(kinds(&found).contains(&FaultKind::Engine), "{found:?}");
}

#[test]
fn an_impossible_publication_is_found() {
    let head = 8;
    let kv_usage = |damage: &Damage, _: &TestTable| {
        damage.change("publications", 1, head + 1, |_| f32::to_bits(1.5).into());
    };
    assert_eq!(kinds(&damaged(kv_usage)), [FaultKind::Publication]);
    let rows = |damage: &Damage, _: &TestTable| damage.change("publications", 1, 3, |_| 5000);
    assert_eq!(kinds(&damaged(rows)), [FaultKind::Publication]);
    let arrivals = |damage: &Damage, _: &TestTable| {
        damage.change("publications", 1, 4, |word| word + 1);
    };
    assert_eq!(kinds(&damaged(arrivals)), [FaultKind::Publication]);
}

#[test]
fn bits_that_nothing_uses_are_zero() {
    for (part, element, word) in [
        ("control", 0, 1),
        ("control", 0, 43),
        ("slots", 5, 3),
        ("lanes", 0, 7),
        ("lanes", 15, 15),
        // The table has room for 64 engines, so the queue's rows are 80 to 84, in planes of 96 words.
        ("ledgers", 0, 85),
        ("ledgers", 15, 3 * 96 - 1),
        // Two of 32 bits in a word, of 16 lanes; room for 32.
        ("witnesses", 15, 1),
        ("witnesses", 15, 8),
        ("publications", 1, 5),
        // After the last word, and before the first of the tokens.
        ("words", 85, 0),
        ("queue", 0, 6),
        ("queue", 0, 31),
        ("heads", 0, 30),
        ("heads", 7, 47),
        ("waited", 3, 20),
    ] {
        let found = damaged(|damage, _| damage.change(part, element, word, |_| 1 << 63));
        assert_eq!(
            kinds(&found),
            [FaultKind::Unused],
            "{part} {element} {word}"
        );
        assert_eq!(found.faults[0].found, "0x8000000000000000");
    }
    // A part of a word: pids, a cap, the zeros between a weight and a cap.
    for (part, element, word, bit) in [
        ("control", 0, 34, 32),
        ("control", 0, 36, 63),
        ("slots", 0, 1, 32),
        ("token caps", 1, 0, 32),
        ("limits", 1, 0, 20),
        ("limits", 1, 0, 31),
        ("queue", 0, 0, 20),
        ("queue", 0, 4, 20),
        ("queue", 0, 5, 1),
        ("heads", 0, 16, 63),
    ] {
        let found = damaged(|damage, _| damage.change(part, element, word, |is| is ^ (1 << bit)));
        assert_eq!(
            kinds(&found),
            [FaultKind::Unused],
            "{part} {element} {word}"
        );
    }
    let found = damaged(|damage, _| damage.change("header", 0, 9, |_| 1));
    assert_eq!(kinds(&found), [FaultKind::Header, FaultKind::Unused]);
}

#[test]
fn a_damaged_header_and_file_are_found() {
    let found = damaged(|damage, _| damage.change("header", 0, 5, |word| word ^ 1));
    assert_eq!(kinds(&found), [FaultKind::Header]);
    let found = damaged(|damage, _| {
        let size = damage.file().metadata().unwrap().len();
        damage.file().set_len(size + 4096).unwrap();
    });
    assert_eq!(kinds(&found), [FaultKind::Size]);
    let found = damaged(|_, table| {
        fs::set_permissions(table.path(), Permissions::from_mode(0o666)).unwrap();
    });
    assert_eq!(kinds(&found), [FaultKind::Mode]);
}

/// What many verifications of a running table have found.
#[derive(Debug, Default)]
struct Verified {
    all: usize,
    conclusive: usize,
}

/// Verifies a table again and again, which must never be found inconsistent: for so long, and for up to a
/// minute until `meanwhile` says that it is enough.
fn verify_for(seconds: u64, table: &Table, mut meanwhile: impl FnMut() -> bool) -> Verified {
    let mut verified = Verified::default();
    let start = Instant::now();
    let mut enough = false;
    while start.elapsed() < Duration::from_secs(if enough { seconds } else { 60 }) {
        enough = meanwhile();
        let found = table.verify().unwrap();
        assert!(found.is_consistent(), "{found:?}");
        verified.all += 1;
        verified.conclusive += usize::from(found.busy.is_empty());
    }
    println!("{verified:?}");
    verified
}

#[test]
fn a_table_in_full_use_is_not_accused() {
    in_full_use(&Table::options().engines(3).max_in_flight(5000));
}

/// Verifies a table while it is used by all means, and at rest.
fn in_full_use(options: &Options) {
    let table = TestTable::new(options);
    let reader = Table::open_read_only(table.path()).unwrap();
    let mut frontends = spawn_all(table.path(), 3);
    for frontend in &mut frontends {
        frontend.churn(2);
    }
    let mut others: Vec<_> = (0..3).map(|_| Actor::opened(table.path())).collect();
    others[0].publish_forever();
    others[1].reap_forever();
    others[2].add_and_remove_forever();
    let verified = verify_for(3, &reader, || true);
    assert!(
        verified.conclusive > 0,
        "nothing could be told: {verified:?}"
    );
    // At rest all of it can be seen.
    frontends.iter_mut().for_each(|frontend| frontend.pause());
    drop(others);
    let found = reader.verify().unwrap();
    assert!(found.is_consistent() && found.busy.is_empty(), "{found:?}");
}

#[test]
fn frontends_that_die_in_the_midst_of_an_operation_are_accounted_for() {
    // No process reaps, so what they were in stays unfinished. The first four lanes are those of the one that lives.
    that_die(&Table::options().engines(2), |table| {
        lanes_in_midst(table).iter().any(|lane| *lane >= 4)
    });
}

/// Verifies a table while frontends of it die that use it at full speed, and while one is stopped at any moment.
/// `is_in_midst`: whether one has died in the midst of that which is tested.
fn that_die(options: &Options, is_in_midst: impl Fn(&Table) -> bool) {
    let table = TestTable::new(options);
    let reader = Table::open_read_only(table.path()).unwrap();
    let mut random = Random::seeded();
    let mut frontends = spawn_all(table.path(), 1);
    frontends.iter_mut().for_each(|f| f.churn(2));
    let (mut dead, mut in_midst) = (0, 0);
    let verified = verify_for(4, &reader, || {
        if dead < 40 || in_midst == 0 {
            let mut victim = Actor::start();
            // Opening would reap; joining does as well, and both before the others die below.
            victim.open(table.path());
            victim.join();
            victim.churn(2);
            random.pause(2000);
            victim.kill();
            dead += 1;
            in_midst += usize::from(is_in_midst(&reader));
        }
        dead > 5 && in_midst > 0
    });
    println!("{dead} died, {in_midst} of them in the midst of it");
    assert!(
        dead > 5 && verified.conclusive > 5,
        "{dead} died, {verified:?}"
    );
    assert!(in_midst > 0, "none died in the midst of it");
    // Stopped wherever it is, and so at rest: all of it can be seen, and it is right.
    frontends.iter().for_each(Actor::stop);
    for _ in 0..20 {
        let found = reader.verify().unwrap();
        assert!(found.is_consistent() && found.busy.is_empty(), "{found:?}");
        frontends.iter().for_each(Actor::resume);
        random.pause(500);
        frontends.iter().for_each(Actor::stop);
    }
    frontends.iter().for_each(Actor::resume);
}

#[test]
fn a_wrong_count_is_found_while_the_table_is_used() {
    let table = TestTable::with_engines(3);
    let reader = Table::open_read_only(table.path()).unwrap();
    let mut frontends = spawn_all(table.path(), 2);
    for frontend in &mut frontends {
        frontend.churn(1);
    }
    // Like a lost update: the ledger of no frontend holds two requests that no word counts.
    let damage = Damage::to(&reader, table.path());
    damage.change("ledgers", 200, 1, |word| word + 2);
    let found = (0..200).any(|_| {
        thread::sleep(Duration::from_millis(1));
        let found = reader.verify().unwrap();
        assert!(!found.is_consistent(), "the ledger of no frontend at least");
        let found = kinds(&found);
        assert!(!found.contains(&FaultKind::Tokens), "{found:?}");
        found.contains(&FaultKind::Requests)
    });
    assert!(found, "the count that is off by two");
}

#[test]
fn a_cap_of_the_table_that_cannot_be_or_is_not_heeded_is_found() {
    // Words 37 and 38 of the control: the caps in requests and in tokens.
    for (word, cap) in [(37, u64::from(u32::MAX) + 1), (38, u64::MAX - 1)] {
        let found = damaged(|damage, _| damage.change("control", 0, word, |_| cap));
        assert_eq!(kinds(&found), [FaultKind::Cap]);
    }
    let found = damaged(|damage, _| damage.change("control", 0, 37, |_| 7));
    assert_eq!(kinds(&found), [FaultKind::Cap]);
    let said = "cap: the table: caps that are not heeded, but should be heeded";
    assert_eq!(found.faults[0].to_string(), said);
    // The table says that it has caps, and there are none: a process that dies while it sets them leaves this.
    let found = damaged(|damage, _| damage.change("control", 0, 32, |hints| hints | 1 << 32));
    assert_eq!(kinds(&found), []);
}
