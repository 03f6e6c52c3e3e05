//! `headcount bench`.

use crate::failure::{Failure, Outcome};
use crate::output::print;
use crate::text_table::{Cell, align};
use anstyle::Style;
use clap::Args;
use headcount_yardstick::{MeasureError, Ratio, measure};
use serde_json::{Map, Value, json};

/// Measure how fast tables are on this machine, in nanoseconds, beside the cheapest possible code.
///
/// Takes a second or so. Uses tables of its own, in memory, and keeps two cores busy, which slows engines and
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
JSON: an object with `schema` (1), `rounds`, `optimized` (whether the build is), and by the names of the
ratios `ratios`, `nanoseconds` (of the table's operation and of its yardstick), `limits` (`must` and `aim`,
the goals, and whether `more_is_better`) and `undisturbed_rounds`: in how many no other program took a core.";

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
            "rounds": self.rounds,
            "optimized": !cfg!(debug_assertions),
            "ratios": of_each(|ratio| json!(ratio.value)),
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
        let titles = ["NAME", "TAKES", "YARDSTICK", "RATIO", "GOAL"];
        let titles = titles.map(|title| Cell::right(title).style(FAINT));
        let mut rows = vec![titles.to_vec()];
        rows[0][0] = Cell::left("NAME").style(FAINT);
        rows.extend(ratios.iter().map(row));
        // Nothing is cut: the last columns say what was measured.
        let mut out = align(&rows, usize::MAX) + "\n";
        let titles = ["NAME", "WHAT", "YARDSTICK"].map(|title| Cell::left(title).style(FAINT));
        let mut rows = vec![titles.to_vec()];
        let texts = |r: &Ratio| [r.name, r.operation, r.yardstick].map(Cell::left).to_vec();
        rows.extend(ratios.iter().map(texts));
        out += &align(&rows, usize::MAX);
        out += LEGEND;
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
RATIO is TAKES : YARDSTICK, or YARDSTICK : TAKES where more is better. GOAL is what the project asks
of it. Yardsticks differ more between processors than tables do: a ratio beyond its goal can come
from a fast yardstick, and not from a slow table. What your requests pay is TAKES.
";

fn row(ratio: &Ratio) -> Vec<Cell> {
    let goal = if ratio.more_is_better {
        format!("{} or more", ratio.must)
    } else {
        format!("{} or less", ratio.must)
    };
    vec![
        Cell::left(ratio.name),
        Cell::right(nanoseconds(ratio.takes)),
        Cell::right(nanoseconds(ratio.yardstick_takes)),
        Cell::right(format!("{:.2}", ratio.value)),
        Cell::right(goal).style(FAINT),
    ]
}

fn nanoseconds(time: f64) -> String {
    match time {
        time if time < 99.95 => format!("{time:.1} ns"),
        time => format!("{time:.0} ns"),
    }
}
