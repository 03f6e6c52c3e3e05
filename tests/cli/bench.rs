//! `bench`: the form of its output. The ratios mean something only on a quiet machine and in an optimized build.

use crate::command::run;
use serde_json::Value;

const NAMES: [&str; 10] = [
    "route_finish_e8",
    "route_finish_e64",
    "route_finish_e256",
    "pressed_e8",
    "pressed_e64",
    "pressed_e256",
    "shaped_e64",
    "snapshot_read_e8",
    "contended_p2_e8",
    "vs_robust_mutex",
];

#[test]
fn all_ratios_are_measured() {
    let measured: Value =
        serde_json::from_str(&run(["bench", "--json", "--rounds", "15"]).fine()).unwrap();
    assert_eq!(measured["schema"], 1);
    assert_eq!(measured["rounds"], 15);
    for part in [
        "ratios",
        "meanings",
        "nanoseconds",
        "limits",
        "undisturbed_rounds",
    ] {
        assert_eq!(measured[part].as_object().unwrap().len(), NAMES.len());
    }
    for name in NAMES {
        let ratio = measured["ratios"][name].as_f64().expect(name);
        assert!(ratio.is_finite() && ratio > 0.0, "{name} {ratio}");
        let meaning = measured["meanings"][name].as_str().expect(name);
        assert!(
            meaning.contains(&format!(" {ratio:.2} times ")),
            "{meaning}"
        );
        for limit in ["must", "aim"] {
            assert!(measured["limits"][name][limit].is_number(), "{name}");
        }
        let [takes, yardstick] = ["takes", "yardstick"].map(|what| {
            let time = measured["nanoseconds"][name][what].as_f64().expect(name);
            assert!(time > 0.0, "{name} {what} {time}");
            time
        });
        let quotient = match measured["limits"][name]["more_is_better"] == true {
            true => yardstick / takes,
            false => takes / yardstick,
        };
        // The one is a median of quotients, the other a quotient of medians.
        assert!((0.3..3.0).contains(&(ratio / quotient)), "{name}");
    }
    let machine = &measured["machine"];
    assert!(
        machine["cores"].as_u64().is_some_and(|cores| cores > 0),
        "{machine}"
    );
    assert!(
        !machine["vectors"].as_array().unwrap().is_empty(),
        "{machine}"
    );
    assert!(machine["caches"].is_array() && machine.get("processor").is_some());
}

#[test]
fn times_come_first_and_then_what_each_ratio_means_without_a_verdict() {
    let shown = run(["bench", "--rounds", "15"]).fine();
    let (times, rest) = shown
        .split_once("\n\n")
        .expect("times, and then the ratios");
    let mut lines = times.lines();
    let titles = [
        "OPERATION",
        "8",
        "ENGINES",
        "64",
        "ENGINES",
        "256",
        "ENGINES",
    ];
    assert!(
        lines.next().unwrap().split_whitespace().eq(titles),
        "{shown}"
    );
    let times: Vec<_> = lines.map(|line| line.matches(" ns").count()).collect();
    assert_eq!(times, [3, 3, 1, 1, 1], "{shown}");
    let (ratios, notes) = rest.split_once("\n\n").expect("the ratios, and then notes");
    let names = ratios
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    assert!(names.eq(NAMES), "{shown}");
    for line in ratios.lines() {
        assert!(
            line.contains(" times as long") && line.ends_with(" ns)."),
            "{line}"
        );
    }
    assert!(notes.contains("medians of 15 rounds"), "{shown}");
    for verdict in ["MISSED", "GOAL", "must", "aim"] {
        assert!(!shown.contains(verdict), "{verdict} in {shown}");
    }
    assert_eq!(run(["bench", "--rounds", "2"]).code, 2);
}
