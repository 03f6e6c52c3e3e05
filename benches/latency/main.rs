//! How long single requests wait for their engine, under load.
//!
//! ```text
//! cargo run --release --package headcount-benches --bin latency            # a table
//! cargo run --release --package headcount-benches --bin latency -- --json
//! ```
//!
//! Requests are due at fixed times, whether or not the ones before them are through, and the time of
//! each is counted from when it was due (Tene, "How not to measure latency", 2015): a late request delays
//! those behind it, and that counts. Flat out, nothing is due, and each `route` counts by itself.
//!
//! A second run does nothing where the first one calls `route`, which shows the delays of the machine.

mod pace;
mod report;
mod sender;

use clap::Parser;
use hdrhistogram::Histogram;
use headcount_benches::background::publishing;
use headcount_benches::outcome::tell;
use headcount_yardstick::{MeasureError, Processes, calm, fresh_table};
use report::{Report, Row};
use sender::Sender;
use std::process::ExitCode;

const ENGINES: usize = 8;
const PROCESSES: [usize; 4] = [1, 2, 4, 8];
/// Requests a second, of all processes together.
const RATES: [Option<u64>; 5] = [
    Some(1_000),
    Some(10_000),
    Some(100_000),
    Some(1_000_000),
    None,
];

/// Measures the latency of `route` by the number of processes and the rate of requests.
#[derive(Parser, Debug)]
struct Options {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// How long each combination runs, in milliseconds.
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u64).range(10..=3_600_000))]
    milliseconds: u64,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let report = run(options.milliseconds).map(|report| {
        if options.json {
            report.json().to_string()
        } else {
            report.to_string()
        }
    });
    tell("latency", report)
}

fn run(milliseconds: u64) -> Result<Report, MeasureError> {
    let mut rows = Vec::new();
    for count in PROCESSES {
        let table = fresh_table(ENGINES)?;
        let mut processes = Processes::start(count, |worker| {
            let sender = Sender::new(table.join()?, worker);
            Ok(move |asked: &[u64]| sender.send(asked))
        })?;
        let _publisher = publishing(&table, vec![calm(); ENGINES], 10)?;
        for rate in RATES {
            for routes in [true, false] {
                let question = Sender::question(rate, milliseconds, routes);
                let mut all = sender::histogram()?;
                for answer in processes.ask(&question)? {
                    for pair in answer.chunks_exact(2) {
                        add(&mut all, pair[0], pair[1])?;
                    }
                }
                rows.push(Row::new(count, rate, routes, milliseconds, &all));
            }
        }
    }
    Ok(Report {
        engines: ENGINES,
        clock: pace::cost_of_the_clock(),
        rows,
    })
}

fn add(all: &mut Histogram<u64>, nanoseconds: u64, count: u64) -> Result<(), MeasureError> {
    all.record_n(nanoseconds, count)
        .map_err(|error| MeasureError(format!("{nanoseconds} ns: {error}")))
}
