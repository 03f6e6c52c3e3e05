//! The tasks of this project, run by `cargo xtask NAME`.

mod aarch64;
mod burst;
mod checks;
mod http_bench;
mod instructions;
#[cfg(test)]
mod links;
mod mutants;
mod packages;
mod performance;
mod picture;
mod progress;
mod proofs;
mod python;
#[cfg(test)]
mod rooms;
mod step;
mod vllm;

use clap::Parser;
use progress::Part;
use std::process::ExitCode;
use step::Failed;

/// Runs the project's checks, proofs and benchmarks.
#[derive(Parser, Debug)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Task {
    /// Checks what every change has to pass: format, lints, documentation, tests, packages, the burst
    /// example and, if there is a Python, the Python package.
    Test,
    /// Runs what takes longer: all models, a kill at every 101st instruction, a stop at every 11th, two soaks
    /// of a minute and, if there is a valgrind, the instruction counts.
    Proof,
    /// Packs what users get, and compiles it from the packages.
    Packages,
    /// Runs the loom models of the algorithms: all interleavings within stated bounds.
    Loom {
        /// Run only models whose name contains this.
        filter: Option<String>,
    },
    /// Puts deliberate faults into a copy of the sources, one at a time, and runs the test that has to catch
    /// each.
    Mutants {
        /// Put in only faults whose name contains this. Those that weaken an ordering are named by
        /// file and function, as in "counter.rs, attempt 1".
        filter: Option<String>,
    },
    /// Kills a process at every instruction of every operation. Then stops one at every instruction while
    /// another process acts.
    Crash {
        /// Kill or stop at every N-th instruction only.
        #[arg(long, value_name = "N", default_value_t = 1)]
        every: usize,
        /// Run only the kills, or only the steps.
        #[arg(long)]
        only: Option<Only>,
        /// Take only operations, and pairs of them, whose name contains this: Route, Join, Reap-Open.
        #[arg(default_value = "")]
        operation: String,
    },
    /// Runs frontends at full speed while processes are killed, stopped and forked, and compares the counts
    /// with its own. Then has processes wait for places, and judges who is served when.
    Soak {
        /// Run for so many seconds.
        #[arg(long, default_value_t = 60)]
        seconds: u64,
    },
    /// Runs the tests of the library and of the choice on aarch64: in QEMU, if this machine is another one. Says
    /// what is missing for that.
    Aarch64,
    /// Puts `headcount-server` and nginx under the same load, compares their processor time with HAProxy's, and kills
    /// their workers.
    HttpBench {
        /// Run so many rounds, and show the medians.
        #[arg(long, default_value_t = 3)]
        rounds: usize,
        /// Let each load last so many seconds.
        #[arg(long, default_value_t = 8)]
        seconds: u64,
        /// Send so many requests a second in the open loop.
        #[arg(long, default_value_t = 1000)]
        rate: usize,
        /// Measure processor time at so many requests a second.
        #[arg(long, value_name = "RATE", default_value_t = 3000)]
        processor_rate: usize,
        /// Measure nothing but this.
        #[arg(long)]
        only: Option<http_bench::Only>,
    },
    /// Counts the instructions of a route and of a finish by callgrind. Fails if they have risen by
    /// more than 3 % over the recorded figures.
    Instructions {
        /// Record the figures instead.
        #[arg(long)]
        record: bool,
    },
    /// Measures anew all that docs/performance.md shows, and draws it. Run it on a quiet machine.
    Performance,
    /// Draws the charts of docs/performance.md from the recorded results.
    Charts,
    /// Takes docs/top.svg anew: `headcount top` in tmux, over a minute of real requests.
    Picture,
    /// Builds the Python package and tests it.
    Python,
    /// Serves a tiny model with a real vLLM, without the plugin and with it, and shows what each engine got.
    /// Installs some 7 GB under target/ the first time.
    VllmE2e,
}

/// A part of `cargo xtask crash`.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Only {
    Kills,
    Steps,
}

impl Task {
    fn parts(self) -> Vec<Part<'static>> {
        match self {
            Self::Test => checks::all(),
            Self::Proof => proofs::all(),
            Self::Packages => vec![Part::new("the packages", packages::check)],
            Self::Loom { filter } => vec![proofs::models(filter.as_deref())],
            Self::Mutants { filter } => {
                vec![Part::new("the faults", || mutants::run(filter))]
            }
            Self::Crash {
                every,
                only,
                operation,
            } => match only {
                Some(Only::Kills) => vec![proofs::kills(every, &operation)],
                Some(Only::Steps) => vec![proofs::steps(every, &operation)],
                None => vec![
                    proofs::kills(every, &operation),
                    proofs::steps(every, &operation),
                ],
            },
            Self::Soak { seconds } => vec![proofs::soak(seconds), proofs::queue(seconds)],
            Self::Aarch64 => aarch64::all(),
            Self::HttpBench {
                rounds,
                seconds,
                rate,
                processor_rate,
                only,
            } => vec![Part::new("the HTTP benchmark", move || {
                http_bench::run(http_bench::Plan {
                    rounds: rounds.max(1),
                    seconds,
                    rate,
                    processor_rate,
                    only,
                })
            })],
            Self::Instructions { record } => vec![Part::new("the instructions", move || {
                instructions::check(record)?.or_fail("instructions were not counted")
            })],
            Self::Performance => vec![
                Part::new("the measurements", performance::measure),
                Part::new("the charts", performance::charts),
            ],
            Self::Charts => vec![Part::new("the charts", performance::charts)],
            Self::Picture => vec![Part::new("the picture", picture::take)],
            Self::Python => vec![Part::new("the Python package", || {
                python::test()?.or_fail("Python was not tested")
            })],
            Self::VllmE2e => vec![Part::new("vLLM", vllm::end_to_end)],
        }
    }
}

fn main() -> ExitCode {
    let parts = Task::parse().parts();
    // Paths here are meant from the root of the sources, wherever cargo was called.
    let entered = std::env::set_current_dir(step::root())
        .map_err(|error| Failed(format!("{}: {error}", step::root().display())));
    match entered.and_then(|()| progress::run(parts)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => {
            eprintln!("xtask: {failed}");
            ExitCode::FAILURE
        }
    }
}
