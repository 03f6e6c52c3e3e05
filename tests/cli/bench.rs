//! `bench`: the form of its output. The ratios mean something only on a quiet machine and in an optimized build.

use crate::command::run;
use serde_json::Value;

const NAMES: [&str; 6] = [
    "route_finish_e8",
    "route_finish_e64",
    "route_finish_e256",
    "snapshot_read_e8",
    "contended_p2_e8",
    "vs_robust_mutex",
];

#[test]
fn all_ratios_are_measured() {
    let measured: Value =
        serde_json::from_str(&run(["bench", "--json", "--rounds", "15"]).fine()).unwrap();
    assert_eq!(measured["rounds"], 15);
    for part in ["ratios", "limits", "undisturbed_rounds"] {
        assert_eq!(measured[part].as_object().unwrap().len(), NAMES.len());
    }
    for name in NAMES {
        let ratio = measured["ratios"][name].as_f64().expect(name);
        assert!(ratio.is_finite() && ratio > 0.0, "{name} {ratio}");
        assert!(measured["limits"][name]["must"].is_number(), "{name}");
        for what in ["takes", "yardstick"] {
            let time = measured["nanoseconds"][name][what].as_f64().expect(name);
            assert!(time > 0.0, "{name} {what} {time}");
        }
    }
}

#[test]
fn times_are_shown_beside_their_yardsticks_and_no_verdict() {
    let shown = run(["bench", "--rounds", "15"]).fine();
    for name in NAMES {
        assert!(shown.contains(name), "{name} in {shown}");
    }
    assert!(shown.contains("medians of 15 rounds"), "{shown}");
    assert!(!shown.contains("MISSED"), "{shown}");
    for line in shown.lines().skip(1).take(NAMES.len()) {
        // The name, two times with their unit, their ratio, and what it should be.
        let words: Vec<_> = line.split_whitespace().collect();
        let [name, takes, "ns", yardstick, "ns", ratio, _, "or", better] = words[..] else {
            panic!("{line}");
        };
        assert!(NAMES.contains(&name), "{line}");
        let number = |text: &str| text.parse::<f64>().unwrap();
        let quotient = match better {
            "less" => number(takes) / number(yardstick),
            _ => number(yardstick) / number(takes),
        };
        // The one is a median of quotients, the other a quotient of medians.
        let parts = number(ratio) / quotient;
        assert!((0.3..3.0).contains(&parts), "{line}");
    }
    assert_eq!(run(["bench", "--rounds", "2"]).code, 2);
}
