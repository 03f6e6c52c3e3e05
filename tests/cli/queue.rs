//! The queue, as the command sets and shows it.

use crate::command::{binary, on, run};
use crate::scene::{Queue, Scene};
use crate::tmux::{Terminal, is_there};
use headcount::Table;
use headcount_tests::{Actor, Waited, directory, eventually, skipped};
use serde_json::Value;

fn json(queue: &Queue) -> Value {
    let shown = on(queue.path(), "show PATH --json").fine();
    serde_json::from_str(&shown).unwrap()
}

#[test]
fn show_says_who_waits_and_who_has_waited() {
    let mut queue = Queue::new();
    let shown = on(queue.path(), "show PATH").fine();
    let (before, line) = shown
        .split_once("\nqueue: 3 of at most 3 waiting, the first for ")
        .unwrap();
    assert!(
        before.starts_with(queue.path().to_str().unwrap()),
        "{shown}"
    );
    let (age, line) = line
        .split_once(" (class 0: 1, class 1: 1, class 2: 1 of at most 1)\n")
        .unwrap();
    assert!(age.ends_with(" ms") || age.ends_with(" s"), "{age}");
    let waited = "waited since its creation: 1 served after waiting, half of them within ";
    let waited = line.strip_prefix(waited).unwrap();
    let (waited, _) = waited.split_once('\n').unwrap();
    assert!(
        waited.ends_with(", 1 refused because the queue was full, 1 timed out"),
        "{waited}"
    );
    for said in [
        "! the queue is full: 3 requests wait, and further ones are refused\n",
        "! the queue is full for class 2: 1 request waits, and further ones are refused\n",
    ] {
        assert!(shown.contains(said), "{said:?} in {shown}");
    }
    assert!(!shown.contains("drained"), "{shown}");
    // The heads and the rows of the frontends.
    let rows: Vec<Vec<_>> = (shown.lines())
        .skip_while(|line| !line.starts_with("FRONTEND"))
        .take(6)
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows[0][3..], ["IN-FL", "TOKENS", "WAIT", "JOINED"]);
    let waiting: Vec<_> = rows[1..].iter().map(|row| (row[3], row[5])).collect();
    assert_eq!(
        waiting,
        [("1", "0"), ("1", "0"), ("0", "1"), ("0", "1"), ("0", "1")]
    );
    // One is served, and an engine is drained: two wait, for both engines.
    queue.actors[0].finish_one();
    assert!(queue.actors[2].answer::<Waited>().outcome.is_ok());
    queue.table.drain(1).unwrap();
    let shown = on(queue.path(), "show PATH").fine();
    let drained =
        "! 2 requests wait while engine gpu-1 is drained; `headcount undrain` lets them go there\n";
    assert!(shown.contains(drained), "{shown}");
    assert!(!shown.contains("queue is full:"), "{shown}");
    queue.table.drain(0).unwrap();
    let shown = on(queue.path(), "show PATH").fine();
    assert!(shown.contains("! no engine takes requests"), "{shown}");
    eventually("they have given up: no engine is left", || {
        let shown = on(queue.path(), "show PATH").fine();
        shown.contains("\nqueue: 0 of at most 3 waiting (class 2: 0 of at most 1)\n")
            && shown.contains(", 1 timed out, 2 cancelled\n")
    });
}

#[test]
fn json_says_who_waits_and_who_has_waited() {
    let mut queue = Queue::new();
    let shown = json(&queue);
    let of = &shown["queue"];
    let figures = [
        "waiting",
        "max_waiting",
        "refused_total",
        "timed_out_total",
        "cancelled_total",
    ];
    assert_eq!(
        figures.map(|name| of[name].as_u64().unwrap()),
        [3, 3, 1, 1, 0]
    );
    assert_eq!(of["share_tokens"], true);
    let of_classes = |name: &str| -> Vec<_> {
        let classes = of["classes"].as_array().unwrap();
        classes.iter().map(|class| class[name].clone()).collect()
    };
    assert_eq!(of_classes("waiting"), [1, 1, 1, 0]);
    assert_eq!(
        of_classes("max_waiting"),
        [Value::Null, Value::Null, 1.into(), Value::Null]
    );
    let ages: Vec<_> = of_classes("oldest_seconds")
        .iter()
        .map(Value::as_f64)
        .collect();
    assert!(
        ages[0] >= ages[2] && ages[2] >= ages[1] && ages[1] >= Some(0.0),
        "{ages:?}"
    );
    assert_eq!(ages[3], None);
    let waited = &of["waited"];
    let seconds = waited["seconds_total"].as_f64().unwrap();
    assert!(
        seconds > 0.0 && waited["p50_seconds"].as_f64().unwrap() >= seconds,
        "{waited}"
    );
    assert_eq!(
        (&waited["served_total"], &waited["p99_seconds"]),
        (&1.into(), &waited["p50_seconds"])
    );
    let frontends = shown["frontends"].as_array().unwrap();
    let waiting: Vec<_> = frontends
        .iter()
        .map(|f| f["waiting"].as_u64().unwrap())
        .collect();
    assert_eq!(waiting, [0, 0, 1, 1, 1]);
    let kinds = |shown: &Value| -> Vec<_> {
        let warnings = shown["warnings"].as_array().unwrap().iter();
        warnings
            .map(|warning| (warning["kind"].clone(), warning["class"].clone()))
            .collect()
    };
    let full = |class: Value| (Value::from("queue_full"), class);
    assert_eq!(kinds(&shown)[..2], [full(Value::Null), full(2.into())]);
    // One that waits dies while the others are stopped: they would reap it.
    queue.actors[2..4].iter().for_each(Actor::stop);
    let pid = queue.actors[4].pid();
    queue.actors.pop().unwrap().kill();
    let dead = &json(&queue)["warnings"][0];
    assert_eq!(dead["waiting"], 1);
    let said = format!(
        "frontend 4 (pid {pid}) is dead, holds 0 and waits for 1; `headcount reap` returns them"
    );
    assert_eq!(dead["message"], said);
}

#[test]
fn a_table_without_a_queue_is_shown_without_one() {
    let scene = Scene::new();
    let shown = on(scene.path(), "show PATH").fine();
    for word in ["queue", "wait", "FRONTEND  WAIT"] {
        assert!(!shown.contains(word), "{word} in {shown}");
    }
    // The engines' own queues, as published.
    assert_eq!(shown.matches("WAIT").count(), 1, "{shown}");
    let shown: Value = serde_json::from_str(&on(scene.path(), "show PATH --json").fine()).unwrap();
    assert_eq!(shown["queue"], Value::Null);
}

#[test]
fn create_and_apply_set_the_bounds() {
    let directory = directory();
    let path = directory.path().join("table");
    let line = "--engine a --max-waiting 100 --max-waiting-of-class 0=90 --max-waiting-of-class 3=5 --share-tokens";
    let created = on(&path, &format!("create PATH {line}")).fine();
    let said = "\n  queue: at most 100 requests wait, at most 90 of class 0, at most 5 of class 3; tenants share tokens\n";
    assert!(created.ends_with(said), "{created}");
    let table = Table::open(&path).unwrap();
    let queue = table.view().queue.unwrap();
    assert_eq!((queue.max_waiting, queue.share_tokens), (100, true));
    let of_class = queue.classes.map(|class| class.max_waiting);
    assert_eq!(of_class, [Some(90), None, None, Some(5)]);
    let apply = |rest: &str| on(&path, &format!("apply PATH --engine a {rest}")).fine();
    assert_eq!(
        apply("--max-waiting 7 --max-waiting-of-class 1=3"),
        "max_waiting 100, now 7\nshare_tokens true, now false\nmax_waiting_of_class(0) 90, now none\n\
         max_waiting_of_class(1) none, now 3\nmax_waiting_of_class(3) 5, now none\n"
    );
    assert_eq!(
        apply("--max-waiting 7 --max-waiting-of-class 1=3"),
        "nothing to change\n"
    );
    assert_eq!(
        apply("--max-waiting none"),
        "max_waiting 7, now none\nmax_waiting_of_class(1) 3, now none\n"
    );
    assert_eq!(table.view().queue, None);
    for wrong in [
        "--max-waiting 0",
        "--max-waiting 1048576",
        "--max-waiting-of-class 1=3",
        "--share-tokens",
        "--max-waiting none --share-tokens",
        "--max-waiting 5 --max-waiting-of-class 4=1",
        "--max-waiting 5 --max-waiting-of-class 1",
        "--max-waiting 5 --max-waiting-of-class 1=1 --max-waiting-of-class 1=2",
    ] {
        for command in ["apply PATH --engine a", "create PATH-2 --engine a"] {
            let ran = on(&path, &format!("{command} {wrong}"));
            assert_eq!(ran.code, 2, "{wrong}: {}{}", ran.out, ran.err);
        }
    }
    assert!(
        run(["create", "--help"])
            .fine()
            .contains("--max-waiting-of-class <CLASS=N>")
    );
}

#[test]
fn top_shows_who_waits() {
    if !is_there() {
        return skipped("top", "tmux is not installed");
    }
    let mut queue = Queue::new();
    let line = format!("'{}' top '{}'", binary().display(), queue.path().display());
    let terminal = Terminal::run(120, 24, &line);
    let screen = terminal.wait_for("who waits", |screen| {
        screen[2].starts_with("3 of at most 3 waiting, the first for ")
            && screen[2].contains(" (class 0: 1, class 1: 1, class 2: 1 of at most 1)")
            && screen[3] == "! the queue is full: 3 requests wait, and further ones are refused"
    });
    let heads = screen
        .iter()
        .position(|line| line.starts_with("FRONTEND"))
        .unwrap();
    let words =
        |line: &str| -> Vec<String> { line.split_whitespace().map(str::to_owned).collect() };
    assert_eq!(
        words(&screen[heads])[3..],
        ["IN-FL", "TOKENS", "WAIT", "JOINED"]
    );
    let waiting: Vec<_> = screen[heads + 1..heads + 6]
        .iter()
        .map(|line| words(line)[5].clone())
        .collect();
    assert_eq!(waiting, ["0", "0", "1", "1", "1"]);
    queue.actors[0].finish_one();
    terminal.wait_for("one is served", |screen| {
        screen[2].starts_with("2 of at most 3 waiting, the first for ")
            && screen[2].contains("2 served after waiting")
            && screen[1].starts_with("spread ")
    });
    queue.table.drain(1).unwrap();
    terminal.wait_for_text("! 2 requests wait while engine gpu-1 is drained");
    terminal.resize(40, 8);
    terminal.wait_for("it is cut", |screen| {
        screen.len() == 8
            && screen.iter().all(|line| line.chars().count() <= 40)
            && screen[2].starts_with("2 of at most 3 waiting")
    });
    terminal.resize(80, 4);
    terminal.wait_for("what matters is left", |screen| {
        screen.len() == 4 && screen.iter().any(|line| line.starts_with("gpu-"))
    });
}
