//! `verify` and `dump`.

use crate::command::{on, run};
use crate::scene::Scene;
use headcount::FaultKind;
use headcount_tests::Damage;
use serde_json::Value;
use std::fs;

#[test]
fn a_table_in_use_is_consistent() {
    let mut scene = Scene::new();
    let said = on(scene.path(), "verify PATH").fine();
    assert_eq!(said, "consistent: 70 counts are what 256 ledgers hold\n");
    for frontend in &mut scene.frontends {
        frontend.churn(2);
    }
    for _ in 0..5 {
        assert!(
            on(scene.path(), "verify PATH")
                .fine()
                .starts_with("consistent")
        );
    }
    for frontend in &mut scene.frontends {
        frontend.pause();
        assert!(frontend.work_done().operations > 0, "it was in use");
    }
    scene.kill_one();
    let found: Value =
        serde_json::from_str(&on(scene.path(), "verify PATH --json").fine()).unwrap();
    assert_eq!(found["consistent"], true);
    assert_eq!(found["faults"], Value::Array(vec![]));
}

#[test]
fn damage_is_named() {
    let scene = Scene::new();
    let damage = Damage::to(&scene.table, scene.path());
    damage.change("ledgers", 200, 2, |word| word + 5);
    let ran = on(scene.path(), "verify PATH");
    assert_eq!((ran.code, ran.err.as_str()), (1, ""), "{ran:?}");
    assert!(ran.out.contains("ledger: frontend slot 50"), "{}", ran.out);
    let count = "requests: engine 2 (\"gpu-2\"): 3 requests counted, but should be the 8";
    assert!(ran.out.contains(count), "{}", ran.out);
    assert!(ran.out.ends_with("inconsistent: 2 faults\n"), "{}", ran.out);
    let ran = on(scene.path(), "verify PATH --json");
    let found: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(
        (ran.code, &found["faults"][1]["kind"]),
        (1, &"requests".into())
    );
}

#[test]
fn its_help_names_each_kind_of_fault() {
    let help = run(["verify", "--help"]).fine();
    let (_, kinds) = help.split_once("`kind` (").expect("the kinds");
    let (kinds, _) = kinds.split_once(')').expect("their end");
    let kinds = kinds.replace(" or ", ", ").replace('\n', " ");
    let kinds: Vec<_> = kinds.split(", ").collect();
    let all: Vec<_> = FaultKind::ALL.iter().map(|kind| kind.name()).collect();
    assert_eq!(kinds, all);
}

#[test]
fn damage_that_keeps_a_table_from_being_opened_is_named_too() {
    let scene = Scene::new();
    let damage = Damage::to(&scene.table, scene.path());
    damage.change("header", 0, 5, |frontends| frontends + 1);
    let ran = on(scene.path(), "verify PATH");
    assert_eq!((ran.code, ran.err.as_str()), (1, ""), "{ran:?}");
    assert!(
        ran.out.starts_with("header: ") && ran.out.contains("checksum"),
        "{}",
        ran.out
    );
    on(scene.path(), "show PATH").refused(3);
    on(scene.path(), "rm PATH").refused(3);
    on(scene.path(), "rm PATH --force").fine();
}

#[test]
fn a_damaged_table_is_dumped_as_far_as_it_can_be_read() {
    let scene = Scene::new();
    let damage = Damage::to(&scene.table, scene.path());
    let words = |dump: &str| dump.lines().filter(|line| line.contains("]  ")).count();
    let whole = words(&on(scene.path(), "dump PATH").fine());
    // The checksum, then the very first word: where things lie is still known.
    for (word, sum) in [(63, "checksum"), (0, "magic: \"\\xb7EADCNT")] {
        damage.change("header", 0, word, |word| word ^ 0xff);
        let ran = on(scene.path(), "dump PATH");
        assert!(
            ran.out.contains(sum) && ran.out.contains("\"gpu-1"),
            "{ran:?}"
        );
        assert_eq!(words(&ran.out), whole);
        ran.refused(1);
    }
    // Nothing fits any more: the words are there all the same.
    damage.change("header", 0, 5, |frontends| frontends + 1);
    let ran = on(scene.path(), "dump PATH");
    assert!(ran.out.contains("max_frontends: 65"), "{ran:?}");
    let gpu_1 = u64::from_le_bytes(*b"gpu-1\0\0\0");
    assert!(ran.out.contains(&format!("{gpu_1:016x}\n")), "{ran:?}");
    ran.refused(1);
    damage.file().set_len(100).unwrap();
    on(scene.path(), "dump PATH").refused(1);
    damage.file().set_len(0).unwrap();
    on(scene.path(), "dump PATH").refused(3);
}

#[test]
fn a_dump_has_every_word_that_is_not_zero() {
    let mut scene = Scene::new();
    scene.kill_one();
    let dump = on(scene.path(), "dump PATH").fine();
    let words = dump.lines().filter(|line| line.contains("]  ")).count();
    let bytes = fs::read(scene.path()).unwrap();
    let (chunks, _) = bytes.as_chunks::<8>();
    assert_eq!(words, chunks.iter().filter(|word| **word != [0; 8]).count());
    for said in [
        "magic: \"HEADCNT",
        "3 Active by",
        "row 1: 1 requests",
        "taken, joined 1 times",
    ] {
        assert!(dump.contains(said), "{said}");
    }
}
