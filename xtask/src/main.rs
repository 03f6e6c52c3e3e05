//! What is run on this project, by `cargo xtask NAME`.

mod burst;
mod http_bench;
mod instructions;
mod mutants;
mod performance;
mod picture;
mod python;
#[cfg(test)]
mod rooms;
mod step;
mod vllm;

use clap::Parser;
use std::process::ExitCode;
use step::{Checked, Failed, cargo};

/// Runs the project's checks.
#[derive(Parser, Debug)]
#[command(name = "cargo xtask")]
enum Task {
    /// What every change has to pass, and runs on a fresh machine: format, lints, documentation, unit,
    /// integration and documentation tests, the burst example, and with Python the package.
    Test,
    /// What takes longer: all models, kills at every 101st instruction, steps at every 11th, a minute's
    /// soak, and with valgrind the instruction counts.
    Proof,
    /// The loom models of the algorithms: all interleavings within stated bounds.
    Loom {
        /// Only models whose name contains this.
        filter: Option<String>,
    },
    /// Puts deliberate faults into a copy of the sources, one at a time, and shows what catches each.
    Mutants {
        /// Only faults whose name contains this.
        filter: Option<String>,
    },
    /// Kills a process at every instruction of every operation; then stops one at every instruction, and
    /// has another process act there.
    Crash {
        /// Only every so-manieth instruction.
        #[arg(long, default_value_t = 1)]
        every: usize,
        /// Only the one or the other.
        #[arg(long)]
        only: Option<Only>,
        /// Only operations and pairs of them whose name contains this: Route, Join, Reap-Open and so on.
        #[arg(default_value = "")]
        operation: String,
    },
    /// Runs frontends at full speed while processes are killed, stopped and forked, and counts by hand.
    Soak {
        /// How long.
        #[arg(long, default_value_t = 60)]
        seconds: u64,
    },
    /// Puts `headcount-server` and nginx under the same load, and kills their workers.
    HttpBench {
        /// How often; the medians are shown.
        #[arg(long, default_value_t = 3)]
        rounds: usize,
        /// How long each load lasts.
        #[arg(long, default_value_t = 8)]
        seconds: u64,
        /// Requests a second of the open loop.
        #[arg(long, default_value_t = 1000)]
        rate: usize,
    },
    /// Counts the instructions of a route and of a finish by callgrind. Fails if they have risen by
    /// more than 3 % over the recorded figures.
    Instructions {
        /// Record the figures instead.
        #[arg(long)]
        record: bool,
    },
    /// Measures anew all that docs/performance.md shows, and draws it. Best on a quiet machine.
    Performance,
    /// Draws the charts of docs/performance.md from the results that are there.
    Charts,
    /// Takes docs/top.svg anew: `headcount top` in tmux, over a minute of real requests.
    Picture,
    /// Builds the Python package and tests it.
    Python,
    /// Serves a tiny model with a real vLLM, stock and with the plugin, and shows what each engine got.
    /// Installs some 7 GB under target/ the first time.
    VllmE2e,
}

/// A part of `cargo xtask crash`.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Only {
    Kills,
    Steps,
}

fn main() -> ExitCode {
    let result = match Task::parse() {
        Task::Test => test(),
        Task::Proof => proof(),
        Task::Loom { filter } => loom(filter.as_deref()),
        Task::Mutants { filter } => mutants::run(filter.as_deref()),
        Task::Crash {
            every,
            only,
            operation,
        } => crash(every, only, &operation),
        Task::Soak { seconds } => soak(seconds),
        Task::HttpBench {
            rounds,
            seconds,
            rate,
        } => http_bench::run(rounds.max(1), seconds, rate),
        Task::Instructions { record } => instructions(record),
        Task::Performance => performance::measure().and_then(|()| performance::charts()),
        Task::Charts => performance::charts(),
        Task::Picture => picture::take(),
        Task::Python => python::test().and_then(|checked| checked.or_fail("Python was not tested")),
        Task::VllmE2e => vllm::end_to_end(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => {
            eprintln!("xtask: {failed}");
            ExitCode::FAILURE
        }
    }
}

fn test() -> Result<(), Failed> {
    cargo("the format", &["fmt", "--all", "--check"]).run()?;
    cargo(
        "the lints",
        &[
            "clippy",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ],
    )
    .run()?;
    cargo(
        "the documentation",
        &[
            "doc",
            "--workspace",
            "--no-deps",
            "--document-private-items",
        ],
    )
    .env("RUSTDOCFLAGS", "-D warnings")
    .run()?;
    // All of them even if one fails, so that one run shows everything. The models are a proof, since
    // they take a release build and time.
    let tests = [
        "test",
        "--workspace",
        "--exclude",
        "headcount-loom-tests",
        "--no-fail-fast",
    ];
    cargo("the tests", &tests).run()?;
    burst::check()?;
    let python = python::test()?;
    println!("-- all passed");
    if let Checked::Not(why) = python {
        println!("-- but the Python package was NOT TESTED: {why}");
    }
    Ok(())
}

fn proof() -> Result<(), Failed> {
    loom(None)?;
    kills(101, "")?;
    steps(11, "")?;
    soak(60)?;
    let instructions = instructions::check(false)?;
    println!("-- all proved");
    if let Checked::Not(why) = instructions {
        println!("-- but instructions were NOT COUNTED: {why}");
    }
    Ok(())
}

fn instructions(record: bool) -> Result<(), Failed> {
    instructions::check(record)?.or_fail("instructions were not counted")
}

fn crash(every: usize, only: Option<Only>, operation: &str) -> Result<(), Failed> {
    if only != Some(Only::Steps) {
        kills(every, operation)?;
    }
    if only != Some(Only::Kills) {
        steps(every, operation)?;
    }
    Ok(())
}

fn kills(every: usize, operation: &str) -> Result<(), Failed> {
    traced("the crashes", "crash", every, operation)
}

fn steps(every: usize, pair: &str) -> Result<(), Failed> {
    traced("the steps", "step", every, pair)
}

/// Runs a program that leads processes instruction by instruction.
fn traced(name: &'static str, program: &str, every: usize, which: &str) -> Result<(), Failed> {
    let every = every.to_string();
    let arguments = [
        "run",
        "--release",
        "--package",
        "headcount-tests",
        "--bin",
        program,
        "--",
        &every,
        which,
    ];
    cargo(name, &arguments).run()
}

fn soak(seconds: u64) -> Result<(), Failed> {
    cargo(
        "the actor",
        &["build", "--release", "--package", "headcount-tests"],
    )
    .run()?;
    let seconds = seconds.to_string();
    let arguments = [
        "run",
        "--release",
        "--package",
        "headcount-tests",
        "--bin",
        "soak",
        "--",
    ];
    cargo("the soak", &[&arguments[..], &[&seconds]].concat()).run()
}

fn loom(filter: Option<&str>) -> Result<(), Failed> {
    let mut arguments = vec![
        "test",
        "--release",
        "--package",
        "headcount-loom-tests",
        "--",
    ];
    arguments.extend(filter);
    arguments.push("--nocapture");
    cargo("the models", &arguments).run()
}
