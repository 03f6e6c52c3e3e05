//! Draws the charts of docs/performance.md from the raw results beside them.
//!
//! ```text
//! charts DIRECTORY    # reads limits.json, latency.json and growth.json there, and writes *.svg
//! ```

mod alternatives;
mod canvas;
mod growth;
mod latency;
mod ratios;

use serde_json::Value;
use std::path::Path;
use std::process::ExitCode;

/// Why a chart was not drawn.
type Drawn = Result<(), Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(directory), None) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: charts DIRECTORY");
        return ExitCode::from(2);
    };
    match draw(Path::new(&directory)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("charts: {error}");
            ExitCode::FAILURE
        }
    }
}

fn draw(directory: &Path) -> Drawn {
    let limits = read(directory, "limits.json")?;
    let growth = read(directory, "growth.json")?;
    let latency = read(directory, "latency.json")?;
    ratios::draw(&directory.join("ratios.svg"), &limits)?;
    alternatives::draw(&directory.join("alternatives.svg"), &limits)?;
    growth::draw(&directory.join("growth.svg"), &growth)?;
    latency::draw(&directory.join("latency.svg"), &latency)
}

fn read(directory: &Path, name: &str) -> Result<Value, Box<dyn std::error::Error>> {
    let path = directory.join(name);
    let text = std::fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(serde_json::from_slice(&text).map_err(|e| format!("{}: {e}", path.display()))?)
}

/// A number out of the results.
fn number(value: &Value, what: &str) -> Result<f64, Box<dyn std::error::Error>> {
    value[what]
        .as_f64()
        .ok_or_else(|| format!("no number {what} in {value}").into())
}

/// The rows of a list in the results.
fn rows(value: &Value) -> Result<&Vec<Value>, Box<dyn std::error::Error>> {
    value
        .as_array()
        .ok_or_else(|| format!("not a list: {value}").into())
}
