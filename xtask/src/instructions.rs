//! Counts by callgrind the instructions of what every request does, and compares them with the recorded figures: a
//! route among calm engines, a route under KV pressure among engines with weights and caps, and a finish.
//!
//! Such a count depends on the code, the compiler and the C library only: not on how fast or how busy the
//! machine is.

use crate::step::{Checked, Failed, cargo, root};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const FIGURES: &str = "docs/performance/instructions.json";
const ENGINES: [u64; 2] = [8, 64];
/// The requests of two runs, whose difference is taken. Both are multiples of the engines, so that both runs
/// end with equal loads.
const COUNTS: [u64; 2] = [6_400, 12_800];
/// The share by which a figure may rise.
const TOLERANCE: f64 = 0.03;

type Figures = BTreeMap<String, f64>;

/// Counts, and records the figures or compares them with the recorded ones.
pub(crate) fn check(record: bool) -> Result<Checked, Failed> {
    if !is_installed() {
        return Ok(Checked::Not("valgrind is not installed"));
    }
    if !cfg!(target_arch = "x86_64") {
        return Ok(Checked::Not("the recorded figures are of x86-64"));
    }
    let found = count_all(&build()?)?;
    match record {
        true => write(&found),
        false => compare(&found),
    }
}

fn is_installed() -> bool {
    let mut command = Command::new("valgrind");
    let command = command.arg("--version").stdout(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Builds the program whose instructions are counted, and returns its path.
fn build() -> Result<PathBuf, Failed> {
    let build =
        "build --release --package headcount-benches --bin instructions --message-format json";
    let output = cargo("the program that is counted", build).output()?;
    let messages = String::from_utf8_lossy(&output);
    (messages.lines())
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .ok_or_else(|| Failed("cargo names no program whose instructions to count".to_owned()))
}

/// Returns the instructions of a route and of a finish, by name.
fn count_all(program: &Path) -> Result<Figures, Failed> {
    let mut figures = Figures::new();
    for engines in ENGINES {
        let each = |what| -> Result<f64, Failed> {
            let [few, many] = COUNTS;
            let more = count(program, engines, many, what)? - count(program, engines, few, what)?;
            Ok(more / (many - few) as f64)
        };
        let (route, both) = (each("route")?, each("finish")?);
        let finish = both - route;
        figures.insert(format!("route_e{engines}"), route);
        figures.insert(format!("finish_e{engines}"), finish);
        // There, each request that is routed finishes another one: by the same code.
        let pressed = each("pressed")? - finish;
        figures.insert(format!("route_pressed_e{engines}"), pressed);
    }
    Ok(figures)
}

/// The instructions of one run.
fn count(program: &Path, engines: u64, count: u64, what: &str) -> Result<f64, Failed> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args([&engines.to_string(), &count.to_string(), what])
        // Its own memory allocator and hash seeds are the same in every environment; so is this.
        .env_clear()
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .output()
        .map_err(|error| Failed(format!("valgrind: {error}")))?;
    let report = String::from_utf8_lossy(&output.stderr);
    let collected = (report.lines())
        .find_map(|line| line.split_once("Collected : "))
        .and_then(|(_, number)| number.trim().parse().ok());
    match (output.status.success(), collected) {
        (true, Some(instructions)) => Ok(instructions),
        _ => Err(Failed(format!("callgrind has counted nothing: {report}"))),
    }
}

fn compare(found: &Figures) -> Result<Checked, Failed> {
    let path = root().join(FIGURES);
    let broken = |reason: String| {
        Failed(format!(
            "{}: {reason}; record it anew by `cargo xtask instructions --record`",
            path.display()
        ))
    };
    let text = std::fs::read(&path).map_err(|error| broken(error.to_string()))?;
    let recorded: Value = serde_json::from_slice(&text).map_err(|e| broken(e.to_string()))?;
    let recorded_figures = recorded["instructions"].as_object();
    let recorded_figures = recorded_figures.ok_or_else(|| broken("has no figures".to_owned()))?;
    let (mut risen, mut lacking) = (Vec::new(), Vec::new());
    for (name, &now) in found {
        let Some(before) = recorded_figures.get(name).and_then(Value::as_f64) else {
            println!("   {name:17} {now:8.1} instructions, not recorded");
            lacking.push(name.as_str());
            continue;
        };
        let percent = (now / before - 1.0) * 100.0;
        println!("   {name:17} {now:8.1} instructions, {before:8.1} recorded, {percent:+.1} %");
        if now > before * (1.0 + TOLERANCE) {
            risen.push(format!(
                "{name} takes {now:.1} instructions, {before:.1} recorded"
            ));
        }
    }
    if !lacking.is_empty() {
        return Err(broken(format!("has no figure for {}", lacking.join(", "))));
    }
    let is_unknown = |name: &&String| !found.contains_key(*name);
    if let Some(name) = recorded_figures.keys().find(is_unknown) {
        return Err(broken(format!(
            "has a figure for {name}, which is not counted"
        )));
    }
    if risen.is_empty() {
        return Ok(Checked::Fine);
    }
    let then = recorded["compiler"]
        .as_str()
        .unwrap_or("an unknown compiler");
    Err(Failed(format!(
        "more than {} % above the record: {}. Recorded with {then}, now {}; if it is worth it, \
         `cargo xtask instructions --record`",
        TOLERANCE * 100.0,
        risen.join("; "),
        compiler(),
    )))
}

fn write(found: &Figures) -> Result<Checked, Failed> {
    let path = root().join(FIGURES);
    for (name, instructions) in found {
        println!("   {name:17} {instructions:8.1} instructions");
    }
    let record = json!({ "compiler": compiler(), "instructions": found });
    std::fs::write(&path, format!("{record:#}\n"))
        .map_err(|error| Failed(format!("{}: {error}", path.display())))?;
    Ok(Checked::Fine)
}

fn compiler() -> String {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output();
    version.map_or_else(
        |_| "an unknown compiler".to_owned(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    )
}
