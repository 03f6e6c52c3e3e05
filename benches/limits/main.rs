//! How close to the limit a table is, and how it compares with the alternatives.
//!
//! ```text
//! cargo bench --bench limits              # tables
//! cargo bench --bench limits -- --json    # {"ratios": {"route_finish_e8": ..., ...}, ...}
//! ```
//!
//! Each figure is a median over rounds. In a round, all contenders of a comparison run one after the other.

mod choices;
mod report;
mod snapshots;

use clap::Parser;
use headcount_benches::outcome::tell;
use headcount_yardstick::{Machine, MeasureError, measure};
use report::Report;
use std::process::ExitCode;

/// Measures the ratios to the limit, and the alternatives.
#[derive(Parser, Debug)]
struct Options {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Over how many rounds the medians are taken.
    #[arg(long, default_value_t = 61, value_parser = clap::value_parser!(u32).range(15..))]
    rounds: u32,
    /// Given by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let report = run(options.rounds as usize).map(|report| {
        if options.json {
            report.json().to_string()
        } else {
            report.to_string()
        }
    });
    tell("limits", report)
}

fn run(rounds: usize) -> Result<Report, MeasureError> {
    let ratios = measure(rounds)?;
    let mut choices = Vec::new();
    for processes in [1, 2] {
        for engines in [8, 64] {
            choices.push(choices::measure(engines, processes, rounds)?);
        }
    }
    Ok(Report {
        machine: Machine::look(),
        rounds,
        ratios,
        choices,
        snapshots: snapshots::measure(rounds)?,
    })
}
