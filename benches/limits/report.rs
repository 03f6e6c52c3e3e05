//! The results, as text and as JSON.

use headcount_yardstick::{Machine, Ratio};
use serde_json::{Map, Value, json};
use std::fmt;

/// Everything.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) machine: Machine,
    pub(crate) rounds: usize,
    pub(crate) ratios: Vec<Ratio>,
    pub(crate) choices: Vec<Comparison>,
    pub(crate) snapshots: Comparison,
}

/// The times of several contenders, in nanoseconds an operation, as each process sees them.
#[derive(Debug)]
pub(crate) struct Comparison {
    pub(crate) engines: usize,
    pub(crate) processes: usize,
    pub(crate) undisturbed: usize,
    pub(crate) nanoseconds: Vec<(&'static str, f64)>,
}

impl Report {
    pub(crate) fn json(&self) -> Value {
        let of_each =
            |value: fn(&Ratio) -> Value| object(self.ratios.iter().map(|r| (r.name, value(r))));
        json!({
            "machine": self.machine,
            "ratios": of_each(|r| json!(r.value)),
            "limits": of_each(|r| json!({
                "must": r.must,
                "aim": r.aim,
                "more_is_better": r.more_is_better,
            })),
            "nanoseconds": of_each(|r| json!({ "takes": r.takes, "yardstick": r.yardstick_takes })),
            "route_and_finish": self.choices.iter().map(Comparison::json).collect::<Value>(),
            "snapshot_read": self.snapshots.json(),
            "rounds": self.rounds,
            "undisturbed_rounds": of_each(|r| json!(r.undisturbed)),
        })
    }
}

impl Comparison {
    fn json(&self) -> Value {
        let times = self.nanoseconds.iter();
        json!({
            "engines": self.engines,
            "processes": self.processes,
            "undisturbed_rounds": self.undisturbed,
            "nanoseconds": object(times.map(|(name, time)| (*name, json!(time)))),
        })
    }
}

fn object<'a>(fields: impl Iterator<Item = (&'a str, Value)>) -> Map<String, Value> {
    let owned = fields.map(|(name, value)| (name.to_owned(), value));
    owned.collect()
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.machine)?;
        writeln!(
            f,
            "Ratios, and nanoseconds: medians of {} rounds",
            self.rounds
        )?;
        for r in &self.ratios {
            let verdict = match (r.reaches(r.aim), r.reaches(r.must)) {
                (true, _) => "aim reached",
                (_, true) => "must reached",
                _ => "MISSED",
            };
            let (name, value, must, aim) = (r.name, r.value, r.must, r.aim);
            write!(
                f,
                "  {name:17} {value:6.2}  must {must:3}, aim {aim:3}: {verdict:12}  "
            )?;
            let (operation, engines, yardstick) = (r.operation, r.engines, r.yardstick);
            let (takes, yardstick_takes) = (r.takes, r.yardstick_takes);
            writeln!(
                f,
                "{takes:.1} ns ({operation}, {engines} engines) : {yardstick_takes:.1} ns ({yardstick})"
            )?;
        }
        let fewest = self.ratios.iter().map(|ratio| ratio.undisturbed).min();
        if fewest.is_some_and(|fewest| fewest < 15) {
            writeln!(
                f,
                "  The machine is too busy: cores were taken away in most rounds."
            )?;
        }
        for comparison in &self.choices {
            write!(f, "\nRoute and finish, {comparison}")?;
        }
        write!(f, "\nRead of statistics, {}", self.snapshots)
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (engines, processes) = (self.engines, self.processes);
        let many = if processes == 1 { "" } else { "es" };
        writeln!(
            f,
            "{engines} engines, {processes} process{many}: nanoseconds for each"
        )?;
        for (name, time) in &self.nanoseconds {
            writeln!(f, "  {name:22} {time:9.1}")?;
        }
        Ok(())
    }
}
