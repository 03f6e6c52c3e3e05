//! `headcount bench`.

use crate::failure::{Failure, Outcome};
use crate::output::print;
use crate::text_table::{Cell, align};
use anstyle::Style;
use clap::Args;
use headcount_yardstick::{Machine, MeasureError, Ratio, measure};
use serde_json::{Map, Value, json};

/// Measure how fast tables are on this machine, in nanoseconds, beside the cheapest possible code.
///
/// Takes some seconds. Uses tables of its own, in memory, and keeps two cores busy, which slows engines and
/// frontends on this machine. The code that is compared runs alternately, for half a millisecond each, so other
/// load on the machine disturbs little. A build without --release shows nothing.
#[derive(Args, Debug)]
#[command(after_long_help = JSON)]
pub(crate) struct Bench {
    /// Print one JSON object; `headcount bench --help` says what is in it.
    #[arg(long)]
    json: bool,
    /// The number of rounds of which the medians are taken.
    #[arg(long, default_value_t = 61, allow_negative_numbers = true,
          value_parser = clap::value_parser!(u32).range(15..=10_000))]
    rounds: u32,
}

const JSON: &str = "\
JSON: an object with `schema` (1), `machine` (`vendor`, `processor`, `cores`, `caches`, `vectors`), `rounds`,
`optimized` (whether the build is), and by the names of the ratios `ratios`, `meanings` (each in a sentence),
`nanoseconds` (of the table's operation and of its yardstick), `limits` (`must` and `aim`, the goals of the
project's developers, and whether `more_is_better`) and `undisturbed_rounds`: in how many no other program took a
core.";

const FAINT: Style = Style::new().dimmed();

/// With fewer undisturbed rounds a median means little.
const FEWEST: usize = 15;

impl Bench {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        let ratios = measure(self.rounds as usize)
            .map_err(|MeasureError(why)| Failure::failed(format!("{why}; nothing was measured")))?;
        if self.json {
            print(&format!("{:#}\n", self.in_json(&ratios)))?;
        } else {
            print(&self.in_text(&ratios))?;
        }
        Ok(Outcome::Fine)
    }

    fn in_json(&self, ratios: &[Ratio]) -> Value {
        let of_each = |value: fn(&Ratio) -> Value| -> Map<String, Value> {
            let fields = ratios
                .iter()
                .map(|ratio| (ratio.name.to_owned(), value(ratio)));
            fields.collect()
        };
        json!({
            "schema": 1,
            "machine": Machine::look(),
            "rounds": self.rounds,
            "optimized": !cfg!(debug_assertions),
            "ratios": of_each(|ratio| json!(ratio.value)),
            "meanings": of_each(|ratio| json!(meaning(ratio))),
            "nanoseconds": of_each(|ratio| json!({
                "takes": ratio.takes,
                "yardstick": ratio.yardstick_takes,
            })),
            "limits": of_each(|ratio| json!({
                "must": ratio.must,
                "aim": ratio.aim,
                "more_is_better": ratio.more_is_better,
            })),
            "undisturbed_rounds": of_each(|ratio| json!(ratio.undisturbed)),
        })
    }

    fn in_text(&self, ratios: &[Ratio]) -> String {
        // Nothing is cut: the first column says what was measured.
        let mut out = align(&times(ratios), usize::MAX) + "\n";
        let meanings = ratios.iter().map(|ratio| {
            let yardstick = nanoseconds(ratio.yardstick_takes);
            let sentence = format!("{} ({yardstick}).", meaning(ratio));
            vec![Cell::left(ratio.name).style(FAINT), Cell::left(sentence)]
        });
        out += &align(&meanings.collect::<Vec<_>>(), usize::MAX);
        out += LEGEND;
        out += &format!("{}\n", Machine::look());
        out += &format!("medians of {} rounds\n", self.rounds);
        if cfg!(debug_assertions) {
            out +=
                "this build is not optimized, so its figures mean nothing; build with --release\n";
        }
        if ratios.iter().any(|ratio| ratio.undisturbed < FEWEST) {
            out += "the machine is too busy: cores were taken away in most rounds; try again\n";
        }
        out
    }
}

const LEGEND: &str = "
A bare choice is the least that an exact choice costs: a search for the smallest count, and a
compare-and-swap that adds one to it. It knows no weights, caps, states or tokens, and what a killed
process held stays counted. The ratios say what all that costs. They differ between processors,
since yardsticks do. What your requests pay is the time.

";

/// Returns the times of the table's operations: a line each, with a column for each number of engines.
fn times(ratios: &[Ratio]) -> Vec<Vec<Cell>> {
    let (mut operations, mut engines) = (Vec::new(), Vec::new());
    for ratio in ratios {
        if !operations.contains(&ratio.operation) {
            operations.push(ratio.operation);
        }
        if !engines.contains(&ratio.engines) {
            engines.push(ratio.engines);
        }
    }
    let title = |engines: &usize| Cell::right(format!("{engines:>4} ENGINES")).style(FAINT);
    let mut rows = vec![vec![Cell::left("OPERATION").style(FAINT)]];
    rows[0].extend(engines.iter().map(title));
    for operation in operations {
        let mut row = vec![Cell::left(operation)];
        for &engines in &engines {
            let mut those = ratios.iter();
            let ratio = those.find(|r| r.operation == operation && r.engines == engines);
            let time = ratio.map_or_else(String::new, |ratio| nanoseconds(ratio.takes));
            row.push(Cell::right(time));
        }
        rows.push(row);
    }
    rows
}

/// Returns what a ratio tells, in a sentence without its full stop.
fn meaning(ratio: &Ratio) -> String {
    let [before, after] = ratio.meaning;
    format!("{before} {:.2} {after}", ratio.value)
}

fn nanoseconds(time: f64) -> String {
    match time {
        time if time < 99.95 => format!("{time:.1} ns"),
        time => format!("{time:.0} ns"),
    }
}
