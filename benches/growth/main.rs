//! How times grow with engines, processes, publications and the size of the table, how many bytes an
//! engine and a frontend take, and the largest table there can be.
//!
//! ```text
//! cargo run --release --package headcount-benches --bin growth > growth.json
//! ```

mod bytes;
mod largest;
mod times;

use headcount_benches::outcome::tell;
use headcount_yardstick::MeasureError;
use serde_json::{Value, json};
use std::process::ExitCode;

fn main() -> ExitCode {
    tell("growth", run().map(|report| format!("{report:#}")))
}

fn run() -> Result<Value, MeasureError> {
    Ok(json!({
        "engines": times::by_engines()?,
        "processes": times::by_processes()?,
        "publications": times::by_publications()?,
        "tables": times::by_table()?,
        "bytes": bytes::of_tables()?,
        "largest": largest::used()?,
    }))
}
