//! `bench`. What the ratios are is for a quiet machine and an optimized build to say.

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
    }
}

#[test]
fn ratios_are_shown_with_their_limits() {
    let shown = run(["bench", "--rounds", "15"]).fine();
    for name in NAMES {
        assert!(shown.contains(name), "{name} in {shown}");
    }
    assert!(shown.contains("medians of 15 rounds"), "{shown}");
    assert_eq!(run(["bench", "--rounds", "2"]).code, 2);
}
