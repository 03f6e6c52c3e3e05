//! `headcount bench`.

use crate::columns::{Cell, align};
use crate::failure::{Failure, Outcome};
use crate::output::print;
use crate::ratios::{Failed, Ratio, measure};
use anstyle::{AnsiColor, Style};
use clap::Args;
use serde_json::{Map, Value, json};

/// Measure how fast tables are on this machine, as ratios to what nobody can beat. Takes a second or so.
///
/// Uses tables of its own, in memory, and keeps two cores busy; engines and their frontends on this
/// machine will notice. What is compared takes turns of half a millisecond, so other load on the
/// machine disturbs little; a build without --release says nothing.
#[derive(Args, Debug)]
pub(crate) struct Bench {
    /// Print one JSON object; docs/cli.md says what is in it.
    #[arg(long)]
    json: bool,
    /// Over how many rounds the medians are taken.
    #[arg(long, default_value_t = 61, allow_negative_numbers = true,
          value_parser = clap::value_parser!(u32).range(15..=10_000))]
    rounds: u32,
}

const MISSED: Style = AnsiColor::Red.on_default().bold();
const REACHED: Style = AnsiColor::Green.on_default();

/// With fewer rounds in which nothing else took a core, a median is not worth much.
const FEWEST: usize = 15;

impl Bench {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        let ratios = measure(self.rounds as usize)
            .map_err(|Failed(why)| Failure::failed(format!("{why}; nothing was measured")))?;
        match self.json {
            true => print(&format!("{:#}\n", self.in_json(&ratios)))?,
            false => print(&self.in_text(&ratios))?,
        }
        Ok(Outcome::Fine)
    }

    fn in_json(&self, ratios: &[Ratio]) -> Value {
        let of_each = |say: fn(&Ratio) -> Value| -> Map<String, Value> {
            let fields = ratios
                .iter()
                .map(|ratio| (ratio.name.to_owned(), say(ratio)));
            fields.collect()
        };
        json!({
            "schema": 1,
            "rounds": self.rounds,
            "optimized": !cfg!(debug_assertions),
            "ratios": of_each(|ratio| json!(ratio.value)),
            "limits": of_each(|ratio| json!({
                "must": ratio.must,
                "aim": ratio.aim,
                "more_is_better": ratio.more_is_better,
            })),
            "undisturbed_rounds": of_each(|ratio| json!(ratio.undisturbed)),
        })
    }

    fn in_text(&self, ratios: &[Ratio]) -> String {
        let titles = [
            Cell::left("RATIO"),
            Cell::right("VALUE"),
            Cell::right("MUST"),
            Cell::right("AIM"),
            Cell::left(""),
            Cell::left("OF WHAT"),
        ];
        let mut rows = vec![titles.to_vec()];
        rows.extend(ratios.iter().map(row));
        // Texts in the last column are not cut: they say what was measured.
        let mut out = align(&rows, usize::MAX);
        out += &format!("medians of {} rounds by turns\n", self.rounds);
        if cfg!(debug_assertions) {
            out += "this build is not optimized: its ratios say nothing; build with --release\n";
        }
        if ratios.iter().any(|ratio| ratio.undisturbed < FEWEST) {
            out += "the machine is too busy: cores were taken away in most rounds; try again\n";
        }
        out
    }
}

fn row(ratio: &Ratio) -> Vec<Cell> {
    let verdict = match (ratio.reaches(ratio.aim), ratio.reaches(ratio.must)) {
        (true, _) => Cell::left("aim reached").style(REACHED),
        (_, true) => Cell::left("must reached").style(REACHED),
        _ => Cell::left("MISSED").style(MISSED),
    };
    let sign = if ratio.more_is_better { ">=" } else { "<=" };
    vec![
        Cell::left(ratio.name),
        Cell::right(format!("{:.2}", ratio.value)),
        Cell::right(format!("{sign} {}", ratio.must)),
        Cell::right(format!("{sign} {}", ratio.aim)),
        verdict,
        Cell::left(ratio.what),
    ]
}
