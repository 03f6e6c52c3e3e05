//! The warnings of `show`.

use super::line;
use crate::command::{command, on};
use crate::scene::Scene;
use headcount::{Engine, Table};
use headcount_tests::{Actor, TestTable, eventually};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

#[test]
fn warnings_stand_out() {
    let mut scene = Scene::new();
    scene.table.set_caps(0, Some(3), None).unwrap();
    scene.table.drain(1).unwrap();
    scene.table.down(2).unwrap();
    let mut publisher = Actor::opened(scene.path());
    publisher.become_publisher();
    publisher.publish(7);
    let pid = scene.kill_one();
    let shown = on(scene.path(), "show PATH --stale-after 600").fine();
    for said in [
        format!("! frontend 1 (pid {pid}) is dead and holds 3; `headcount reap` returns them"),
        "! engine gpu-0 is at its cap".to_owned(),
        "! engine gpu-1 drains: 3 in flight".to_owned(),
        "! engine gpu-2 is down: 3 in flight".to_owned(),
        format!("publisher pid {}, snapshot ", publisher.pid()),
    ] {
        assert!(shown.contains(&said), "{said:?} in {shown}");
    }
    assert_eq!(line(&shown, "gpu-0")[1], "full");
    assert_eq!(line(&shown, "1")[2], "DEAD");
    assert!(!shown.contains("ignore"), "not stale yet: {shown}");
    publisher.kill();
    eventually("the snapshot gets stale", || {
        let shown = on(scene.path(), "show PATH --stale-after 0.2").fine();
        shown.contains("old: policies ignore it") && shown.contains("! no process publishes")
    });
    scene.table.drain(0).unwrap();
    assert!(
        on(scene.path(), "show PATH")
            .fine()
            .contains("! no engine takes requests")
    );
}

#[test]
fn what_is_at_a_cap_is_shown_for_requests_and_for_tokens() {
    let options = Table::options()
        .engine(Engine::named("by-tokens").max_tokens(300))
        .engine(Engine::named("by-none"))
        .max_in_flight(6)
        .max_tokens(600);
    let table = TestTable::new(&options);
    let mut frontend = Actor::joined(table.path());
    for pinned in [0, 0, 0, 1, 1] {
        frontend.route_pinned_with_tokens(pinned, 100);
    }
    let shown = on(table.path(), "show PATH").fine();
    assert_eq!(line(&shown, "by-tokens")[1], "full", "{shown}");
    assert!(
        shown.contains("! engine by-tokens is at its cap"),
        "{shown}"
    );
    assert_eq!(line(&shown, "by-none")[1], "active");
    assert!(
        !shown.contains("! the table"),
        "there is one place left: {shown}"
    );
    assert_eq!(frontend.burst_with_tokens(1, 100), [0, 1]);
    let shown = on(table.path(), "show PATH").fine();
    for cap in ["6 requests", "600 tokens"] {
        let said = format!("! the table is at its cap of {cap}");
        assert!(shown.contains(&said), "{said:?} in {shown}");
    }
}

/// A table whose first engine, which is to have three times as much, refuses most requests: its cap on tokens
/// is small.
fn short_of_tokens() -> (TestTable, Vec<headcount::Permit>) {
    let options = Table::options()
        .engine(Engine::named("gpu-0").weight(3.0).max_tokens(1000))
        .engine(Engine::named("gpu-1"));
    let table = TestTable::new(&options);
    let frontend = table.join().unwrap();
    let request = |tokens| headcount::Request::new().tokens(tokens);
    let pinned = |tokens, engine: usize| frontend.route_with(&request(tokens).pin(engine));
    let mut permits = Vec::from_iter((0..6).map(|_| pinned(154, 0).unwrap()));
    permits.extend((0..9).map(|_| pinned(500, 1).unwrap()));
    assert!(matches!(
        pinned(154, 0),
        Err(headcount::RouteError::Saturated { .. })
    ));
    (table, permits)
}

#[test]
fn an_engine_that_gets_little_for_its_weight_is_shown_with_the_reason() {
    let (table, _permits) = short_of_tokens();
    let shown = on(table.path(), "show PATH").fine();
    assert!(
        shown.contains("! engine gpu-0 has 924 of at most 1000 tokens: a request of 154, its mean, finds no room\n"),
        "{shown}"
    );
    assert!(!shown.contains("! engine gpu-1"), "{shown}");
    let heads = line(&shown, "ENGINE");
    // Of the heads that stand over words, one stands over a bar, which has none.
    let of = |engine: &str, head: &str| {
        let place = heads.iter().position(|h| *h == head).expect(head);
        let words = line(&shown, engine);
        let bar = usize::from(place > 2 && words.len() > heads.len());
        words[place + bar].to_owned()
    };
    assert_eq!(of("gpu-0", "WEIGHT"), "3");
    assert_eq!(of("gpu-0", "TOK-CAP"), "1000");
    assert_eq!(of("gpu-0", "TOKENS"), "924");
    assert_eq!(of("gpu-1", "WEIGHT"), "1");
    assert_eq!(of("gpu-1", "TOK-CAP"), "-");
    let shown = on(table.path(), "show PATH --json").fine();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let expected = serde_json::json!({
        "kind": "engine_short_of_tokens", "engine": "gpu-0", "tokens": 924, "max_tokens": 1000,
        "mean": 154,
        "message": "engine gpu-0 has 924 of at most 1000 tokens: a request of 154, its mean, finds no room",
    });
    assert_eq!(shown["warnings"], Value::Array(vec![expected]));
    // Where all are alike, there are no such columns.
    let plain = TestTable::new(&Table::options().engines(2));
    let shown = on(plain.path(), "show PATH").fine();
    assert!(
        !shown.contains("WEIGHT") && !shown.contains("TOK-CAP"),
        "{shown}"
    );
}

#[test]
fn a_table_that_is_short_of_tokens_says_so() {
    let options = Table::options().engines(2).max_tokens(1000);
    let table = TestTable::new(&options);
    let frontend = table.join().unwrap();
    let request = headcount::Request::new().tokens(300);
    let mut permits = frontend.route_many_with(2, &request).unwrap();
    let shown = |path: &std::path::Path| on(path, "show PATH").fine();
    assert!(
        !shown(table.path()).contains('!'),
        "there is room for another"
    );
    permits.push(frontend.route_with(&request).unwrap());
    let said =
        "! the table has 900 of at most 1000 tokens: a request of 300, the mean, finds no room\n";
    assert!(
        shown(table.path()).contains(said),
        "{}",
        shown(table.path())
    );
}

#[test]
fn show_warns_of_frontends_that_count_in_a_table_that_was_replaced() {
    let mut scene = Scene::new();
    let mut child = command()
        .args(["show", "--json", "--watch=0.02"])
        .arg(scene.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut warned = || {
        let line = lines.next().expect("another line").unwrap();
        let shown: Value = serde_json::from_str(&line).unwrap();
        let warning = shown["warnings"][0].clone();
        (warning["kind"] == "other_table").then_some(warning)
    };
    assert_eq!(warned(), None);
    let new = scene.path().with_file_name("new");
    headcount::Table::options().engines(1).create(&new).unwrap();
    std::fs::rename(&new, scene.path()).unwrap();
    let mut warning = Value::Null;
    eventually("the warning", || {
        warning = warned().unwrap_or_default();
        warning != Value::Null
    });
    let pids: Vec<_> = scene
        .frontends
        .iter()
        .map(headcount_tests::Actor::pid)
        .collect();
    assert_eq!(warning["pids"], serde_json::json!(pids));
    assert_eq!(warning["in_flight"], 9);
    let message = warning["message"].as_str().unwrap();
    assert!(
        message.contains("still count in a former table at this path"),
        "{message}"
    );
    // Until the last of them is gone.
    scene.kill_one();
    eventually("one of them", || warned().unwrap()["in_flight"] == 6);
    scene.frontends.clear();
    eventually("the end of the warning", || warned().is_none());
    child.kill().unwrap();
    child.wait().unwrap();
}
