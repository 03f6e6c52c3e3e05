//! `show --json`.

use super::unlike;
use crate::command::{on, run};
use crate::scene::Scene;
use serde_json::Value;
use std::collections::BTreeSet;

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
fn json_is_as_documented() {
    let mut scene = Scene::new();
    let queue = headcount::Table::options().max_waiting(100);
    let queue = queue.max_waiting_of_class(3, 20);
    scene.table.apply(&queue).unwrap();
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
    let document = include_str!("../../../docs/cli.md");
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
