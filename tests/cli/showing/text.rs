//! `show` as text.

use super::{line, unlike};
use crate::command::{command, on, run_with};
use crate::scene::Scene;
use headcount::{Engine, Table};
use headcount_tests::{Actor, TestTable};
use serde_json::Value;
use std::collections::BTreeSet;

#[test]
fn show_lists_engines_and_frontends() {
    let mut scene = Scene::new();
    let shown = on(scene.path(), "show PATH").fine();
    assert!(
        shown.contains("9 in flight, 600 tokens\nno publisher, no snapshot\n"),
        "{shown}"
    );
    let gpu = line(&shown, "gpu-1");
    assert_eq!(gpu[..3], ["gpu-1", "active", "3"], "{shown}");
    assert_eq!(gpu[4..10], ["33%", "64", "200", "-", "-", "-"], "{shown}");
    let pid = scene.frontends[1].pid().to_string();
    assert_eq!(line(&shown, "1")[..5], ["1", pid.as_str(), "yes", "3", "0"]);
    assert!(!shown.contains('!'), "nothing is wrong: {shown}");
    assert!(!shown.contains('\x1b'), "no colour in a pipe");
    scene.frontends[0].finish_all();
    let shown = on(scene.path(), "show PATH").fine();
    assert!(shown.contains(": 3 in flight"), "{shown}");
}

#[test]
fn refusals_are_shown_by_reason() {
    let options = Table::options()
        .engine(Engine::named("a").max_in_flight(1))
        .engine(Engine::named("b").max_tokens(10))
        .max_in_flight(2);
    let table = TestTable::new(&options);
    let shown = on(table.path(), "show PATH").fine();
    assert!(!shown.contains("refused"), "{shown}");
    let frontend = table.join().unwrap();
    let request = headcount::Request::new();
    let to = |engine: usize, tokens| frontend.route_with(&request.tokens(tokens).pin(engine));
    let _first = to(0, 0).unwrap();
    (0..3).for_each(|_| _ = to(0, 0).unwrap_err());
    (0..2).for_each(|_| _ = to(1, 11).unwrap_err());
    let _second = to(1, 0).unwrap();
    to(1, 0).unwrap_err();
    let shown = on(table.path(), "show PATH").fine();
    let said = "\nrefused since its creation: 3 for engines' caps on requests, 2 for engines' caps on tokens, \
                1 for the table's cap on requests\n";
    assert!(shown.contains(said), "{shown}");
    let json = on(table.path(), "show PATH --json").fine();
    let json: Value = serde_json::from_str(&json).unwrap();
    let expected = serde_json::json!({
        "engine_requests": 3, "engine_tokens": 2, "table_requests": 1, "table_tokens": 0,
        "unavailable": 0,
    });
    assert_eq!(json["refusals_total"], expected);
    let metrics = on(table.path(), "metrics PATH --once").fine();
    for (reason, count) in expected.as_object().unwrap() {
        let path = table.path().display();
        let sample =
            format!("headcount_refusals_total{{reason=\"{reason}\",table=\"{path}\"}} {count}\n");
        assert!(metrics.contains(&sample), "{sample} in {metrics}");
    }
}

#[test]
fn the_deployment_is_shown_while_it_lives() {
    let table = TestTable::new(&Table::options().engines(1));
    let alive = |metrics: &str| {
        metrics.contains("headcount_deployment_alive{table=")
            && metrics.contains("} 1\n# HELP headcount_engine")
    };
    let pid = std::process::id();
    let deployment = table.deploy().unwrap();
    let shown = on(table.path(), "show PATH").fine();
    assert!(
        shown.contains(&format!(", deployment pid {pid}\n")),
        "{shown}"
    );
    let json = on(table.path(), "show PATH --json").fine();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["deployment"]["pid"], pid);
    assert!(alive(&on(table.path(), "metrics PATH --once").fine()));
    drop(deployment);
    let shown = on(table.path(), "show PATH").fine();
    assert!(!shown.contains("deployment"), "{shown}");
    assert!(!alive(&on(table.path(), "metrics PATH --once").fine()));
}

#[test]
fn the_spread_is_by_weight_and_of_those_that_take_requests() {
    let options = Table::options()
        .engine(Engine::named("one"))
        .engine(Engine::named("three").weight(3.0))
        .engine(Engine::named("out"));
    let table = TestTable::new(&options);
    let mut frontend = Actor::joined(table.path());
    for pinned in [0, 1, 1, 1, 2, 2, 2, 2, 2] {
        frontend.route_pinned(pinned);
    }
    let spread = || {
        let shown = on(table.path(), "show PATH --json").fine();
        serde_json::from_str::<Value>(&shown).unwrap()["spread"].as_f64()
    };
    assert_eq!(spread(), Some(4.0), "5 in flight beside 1");
    table.drain(2).unwrap();
    assert_eq!(spread(), Some(0.0), "1 for each unit of weight");
}

#[test]
fn show_keeps_within_80_columns() {
    let mut options = Table::options().max_in_flight(1_000_000);
    for n in 0..40 {
        let name = format!("http://host-{n}.a-cluster-of-some-size.example:8000/v1/completions");
        options = options.engine(Engine::named(name).weight(0.5 + n as f32));
    }
    let table = TestTable::new(&options);
    let mut frontend = Actor::joined(table.path());
    frontend.burst_with_tokens(4000, 200000);
    table.set_caps(3, Some(1_000_000), None).unwrap();
    let mut publisher = table.publisher().unwrap();
    let stats = headcount::EngineStats::new()
        .waiting(u32::MAX)
        .running(u32::MAX)
        .kv_usage(1.0);
    publisher.publish(&[stats; 40]).unwrap();
    let mut command = command();
    command.arg("show").arg(table.path()).env("COLUMNS", "80");
    let shown = run_with(command).fine();
    let start = shown.find("\nENGINE").expect("a table of engines");
    let rows: Vec<_> = shown[start + 1..].lines().take(41).collect();
    for row in &rows {
        assert!(row.chars().count() <= 80, "{row}");
    }
    // The end of a name is where names differ.
    assert!(rows[1].contains("ions active"), "{shown}");
    let ends: BTreeSet<_> = rows.iter().map(|row| row.chars().count()).collect();
    assert_eq!(ends.len(), 1, "aligned on the right: {shown}");
}

#[test]
fn text_has_each_figure_under_its_head() {
    let (table, _permits) = unlike();
    let shown = on(table.path(), "show PATH --stale-after 600").fine();
    let words = |first: &str| {
        let line = shown.lines().find(|line| line.starts_with(first));
        let words = line.unwrap_or_default().split_whitespace();
        // A bar has no figure.
        let is_bar = |word: &&str| word.chars().all(|c| "█▏▎▍▌▋▊▉░ ".contains(c));
        words.filter(|word| !is_bar(word)).collect::<Vec<_>>()
    };
    assert_eq!(
        words("e2"),
        [
            "e2", "active", "3", "75%", "2", "77", "27", "8100", "12", "22", "25%", "5", "2"
        ],
        "{shown}"
    );
    // The bar says how full an engine is, and has a head of its own: it is no picture of the share.
    let heads = words("ENGINE");
    let figures = heads.iter().filter(|head| **head != "LOAD");
    assert_eq!(figures.count(), words("e2").len(), "{shown}");
    assert_eq!(heads[3..5], ["LOAD", "SHARE"], "{shown}");
}
