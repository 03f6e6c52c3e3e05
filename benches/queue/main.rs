//! What the queue costs while none waits, and how fast a place goes from one process to the next.
//!
//! ```text
//! cargo bench --bench queue              # sentences
//! cargo bench --bench queue -- --json
//! ```

mod hand_over;
mod idle;

use clap::Parser;
use headcount_benches::outcome::tell;
use headcount_yardstick::{Machine, MeasureError};
use serde_json::json;
use std::process::ExitCode;

/// Measures what the queue costs.
#[derive(Parser, Debug)]
struct Options {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Over how many rounds the medians are taken.
    #[arg(long, default_value_t = 31, value_parser = clap::value_parser!(u32).range(15..))]
    rounds: u32,
    /// Given by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    tell("queue", run(&options))
}

fn run(options: &Options) -> Result<String, MeasureError> {
    let rounds = options.rounds as usize;
    let idle = idle::measure(rounds)?;
    let over = hand_over::measure(rounds)?;
    let machine = Machine::look();
    if options.json {
        let report =
            json!({ "machine": machine, "rounds": rounds, "idle": idle, "hand_over": over });
        return Ok(report.to_string());
    }
    let mut text = format!("{machine}\nMedians of {rounds} rounds.\n");
    for idle::Idle {
        engines,
        without,
        with,
        ratio,
    } in &idle
    {
        text += &format!(
            "Route and finish, {engines} engines: {without:.1} ns in a table without a queue, {with:.1} ns in one whose queue is empty: {ratio:.3} times as long.\n"
        );
    }
    let hand_over::HandOver { ours, bare, ratio } = over;
    for (name, taken) in [("A place", ours), ("A bare futex", bare)] {
        text += &format!(
            "{name} goes from one process to the other in {:.2} us at the median, {:.2} us at the 99th percentile.\n",
            taken.median / 1e3,
            taken.p99 / 1e3
        );
    }
    text += &format!("The place takes {ratio:.2} times as long (must be at most 1.5).\n");
    Ok(text)
}
