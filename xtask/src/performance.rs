//! Measures all raw results of docs/performance.md anew, and draws the charts from them.

use crate::step::{Failed, Step, cargo, root};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Command;

/// The directory of the raw results and the charts.
fn directory() -> PathBuf {
    root().join("docs/performance")
}

/// Measures everything, which takes some minutes. Best while the machine does nothing else.
pub(crate) fn measure() -> Result<(), Failed> {
    let limits = "bench --quiet --package headcount-benches --bench limits -- --json";
    keep("limits", cargo("the limits", limits).output()?)?;
    let latency = of_the_benches("the latency", "latency").args(&["--json"]);
    keep("latency", latency.output()?)?;
    keep("growth", of_the_benches("the growth", "growth").output()?)?;
    write("machine", &machine())
}

/// Draws the charts.
pub(crate) fn charts() -> Result<(), Failed> {
    let directory = directory().display().to_string();
    (of_the_benches("the charts", "charts").args(&[&directory])).run()
}

/// A call of a program of the benchmarks' package, without its arguments.
fn of_the_benches(name: &'static str, program: &str) -> Step {
    cargo(name, "run --quiet --release --package headcount-benches").args(&["--bin", program, "--"])
}

fn keep(name: &str, output: Vec<u8>) -> Result<(), Failed> {
    let results = serde_json::from_slice(&output)
        .map_err(|error| Failed(format!("{name} printed no JSON: {error}")))?;
    write(name, &results)
}

fn write(name: &str, results: &Value) -> Result<(), Failed> {
    let path = directory().join(format!("{name}.json"));
    std::fs::write(&path, format!("{results:#}\n"))
        .map_err(|error| Failed(format!("{}: {error}", path.display())))
}

/// Describes the machine. What it does not tell is null.
fn machine() -> Value {
    let first_line = |command: &str| {
        let (program, arguments) = command.split_once(' ')?;
        let arguments = arguments.split(' ');
        let output = Command::new(program).args(arguments).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().next().map(str::to_owned)
    };
    let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus.lines().find(|line| line.starts_with("model name"));
    let model = model.and_then(|line| line.split_once(": "));
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    json!({
        "processor": model.map(|(_, name)| name),
        "cores": std::thread::available_parallelism().ok().map(usize::from),
        "kernel": first_line("uname -sr"),
        "compiler": first_line("rustc --version"),
        "commit": first_line("git rev-parse --short HEAD"),
        "load_average_afterwards": load.split(' ').next(),
    })
}
