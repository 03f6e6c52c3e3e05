//! `show`: aligned in 80 columns, what is wrong standing out, JSON as documented.

use crate::command::{command, on, run, run_with};
use crate::scene::Scene;
use headcount::{Engine, Table};
use headcount_tests::{Actor, TestTable, eventually};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

/// The line that begins with a word.
fn line<'a>(text: &'a str, first: &str) -> Vec<&'a str> {
    let mut lines = text
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    let found = lines.find(|words| words.first() == Some(&first));
    found.unwrap_or_else(|| panic!("a line of {first} in {text}"))
}

#[test]
fn it_shows_engines_and_frontends() {
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
fn what_is_wrong_stands_out() {
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
fn what_is_at_a_cap_is_said_of_requests_and_of_tokens() {
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
fn it_keeps_within_80_columns() {
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

/// The paths of all fields of a value, elements of arrays taken together.
fn fields(value: &Value, at: &str, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                into.insert(format!("{at}.{key}"));
                fields(value, &format!("{at}.{key}"), into);
            }
        }
        Value::Array(array) => array.iter().for_each(|value| fields(value, at, into)),
        _ => {}
    }
}

/// A table in which no two figures are alike, and numbers have a gap.
fn unlike() -> (TestTable, Vec<headcount::Permit>) {
    let engine = |n: u32| headcount::Engine::named(format!("e{n}"));
    let options = Table::options().engine(engine(0)).engine(engine(1));
    let options = options.engine(engine(2).weight(2.0).max_in_flight(77).max_tokens(8_100));
    let table = TestTable::new(&options.engine(engine(3)));
    let frontend = table.join().unwrap();
    let request = headcount::Request::new().tokens(9);
    let mut permits = frontend.route_many_with(5, &request.pin(2_usize)).unwrap();
    permits.truncate(3);
    permits.push(frontend.route_with(&request.pin(3_usize)).unwrap());
    let stats = [0, 1, 2, 3].map(|n| {
        headcount::EngineStats::new()
            .waiting(10 + n)
            .running(20 + n)
            .kv_usage(0.25)
            .in_flight(30 + n)
    });
    table.publisher().unwrap().publish(&stats).unwrap();
    table.remove(0).unwrap();
    table.down(3).unwrap();
    (table, permits)
}

#[test]
fn json_says_of_each_engine_what_the_table_says() {
    let (table, _permits) = unlike();
    let shown = on(table.path(), "show PATH --json --stale-after 600").fine();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let stats = |n: u32| {
        serde_json::json!({
            "waiting": 10 + n, "running": 20 + n, "kv_usage": 0.25, "sampled_in_flight": 30 + n,
        })
    };
    let expected = serde_json::json!([
        {
            "index": 1, "name": "e1", "state": "active", "weight": 1.0, "in_flight": 0, "share": 0.0,
            "tokens": 0, "max_in_flight": null, "max_tokens": null, "admitted_total": 0,
            "finished_total": 0, "stats": stats(1),
        },
        {
            "index": 2, "name": "e2", "state": "active", "weight": 2.0, "in_flight": 3, "share": 0.75,
            "tokens": 27, "max_in_flight": 77, "max_tokens": 8_100, "admitted_total": 5,
            "finished_total": 2, "stats": stats(2),
        },
        {
            "index": 3, "name": "e3", "state": "down", "weight": 1.0, "in_flight": 1, "share": 0.25,
            "tokens": 9, "max_in_flight": null, "max_tokens": null, "admitted_total": 1,
            "finished_total": 0, "stats": stats(3),
        },
    ]);
    assert_eq!(shown["engines"], expected);
    assert_eq!(shown["frontends"][0]["in_flight"], 4);
    assert_eq!(shown["frontends"][0]["tokens"], 36);
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

#[test]
fn json_is_as_documented() {
    let mut scene = Scene::new();
    let mut publisher = scene.table.publisher().unwrap();
    publisher
        .publish_with(&[headcount::EngineStats::default(); 3], [5, 1])
        .unwrap();
    let _deployment = scene.table.deploy().unwrap();
    scene.kill_one();
    let shown = on(scene.path(), "show PATH --json --stale-after 600").fine();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["in_flight"], 9);
    assert_eq!(shown["spread"], 0.0);
    assert_eq!(shown["engines"][1]["max_in_flight"], 64);
    assert_eq!(shown["engines"][0]["max_in_flight"], Value::Null);
    assert_eq!(shown["frontends"][1]["alive"], false);
    assert_eq!(shown["warnings"][0]["kind"], "dead_frontend");
    assert_eq!(shown["snapshot"]["words"], serde_json::json!([5, 1]));
    assert_eq!(shown["table"]["mode"], "0600");
    // The example in the documentation has these fields and no others.
    let document = include_str!("../../docs/cli.md");
    let example = document.split("```json\n").nth(1).expect("an example");
    let example = example.split("```").next().expect("its end");
    let example: Value = serde_json::from_str(example).expect("the example is JSON");
    let (mut there, mut documented) = (BTreeSet::new(), BTreeSet::new());
    fields(&shown, "", &mut there);
    fields(&example, "", &mut documented);
    assert_eq!(there, documented);
    for same in ["/schema", "/table/format", "/table/size"] {
        assert_eq!(shown.pointer(same), example.pointer(same), "{same}");
    }
    // An installed command has no documentation beside it.
    let help = run(["show", "--help"]).fine();
    let (_, described) = help.split_once("\nJSON: ").expect("what is in it");
    let widest = described.lines().map(str::len).max();
    assert!(widest <= Some(80), "breaks at 80 columns once: {described}");
    assert!(
        !help.contains("--help`"),
        "does not refer to itself: {help}"
    );
    let words: BTreeSet<_> = help
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .collect();
    for field in there
        .iter()
        .filter(|field| !field.starts_with(".warnings."))
    {
        let name = field.rsplit('.').next().unwrap();
        assert!(words.contains(name), "{field} in {help}");
    }
}

#[test]
fn it_watches_until_there_is_no_table() {
    let scene = Scene::new();
    let mut watch = command();
    watch
        .args(["show", "--json", "--watch=0.02"])
        .arg(scene.path());
    watch.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = watch.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.next().expect("a first line").unwrap();
    std::fs::remove_file(scene.path()).unwrap();
    assert!(lines.all(|line| line.unwrap().starts_with('{')));
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(said.contains("does not exist"), "{said}");
    assert_eq!(ended.status.code(), Some(3));
}

#[test]
fn it_says_who_still_counts_in_a_table_that_was_replaced() {
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

#[test]
fn it_watches_until_nobody_reads() {
    let mut scene = Scene::new();
    let mut child = command()
        .args(["show", "--json", "--watch=0.02"])
        .env("HEADCOUNT_TABLE", scene.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut in_flight = || {
        let line = lines.next().expect("another line").unwrap();
        serde_json::from_str::<Value>(&line).unwrap()["in_flight"].as_u64()
    };
    assert_eq!([in_flight(), in_flight()], [Some(9), Some(9)]);
    scene.frontends[0].finish_all();
    eventually("the change is shown", || in_flight() == Some(3));
    drop(lines);
    assert!(
        child.wait().unwrap().success(),
        "it ends when its pipe does"
    );
    let mut complaint = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut complaint)
        .unwrap();
    assert_eq!(complaint, "");
}
