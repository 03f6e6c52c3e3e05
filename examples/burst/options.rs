//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, value_parser};

use crate::roles::Assignment;
use crate::strategy::Strategy;

/// The replayed part of a trace when `--requests` does not say: as long as this, at the replay's
/// speed.
pub(crate) const TRACE_PORTION: Duration = Duration::from_secs(10);

/// Sends bursts of requests through real frontend, coordinator and engine processes, and shows how
/// evenly each strategy splits them.
#[derive(Debug, Parser)]
#[command(name = "burst")]
pub(crate) struct Options {
    /// Engines (data-parallel ranks) to start, 1 to 256
    #[arg(long, value_name = "N", default_value_t = 4)]
    #[arg(value_parser = value_parser!(u32).range(1..=256))]
    pub(crate) engines: u32,

    /// Frontends (API servers) to start, 1 to 64
    #[arg(long, value_name = "N", default_value_t = 4)]
    #[arg(value_parser = value_parser!(u32).range(1..=64))]
    pub(crate) frontends: u32,

    /// Requests in a burst, 1 to 100000 [default: 256]; with --trace, how many of its arrivals to
    /// replay [default: those of the first 10 seconds of the replay]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=100_000))]
    pub(crate) requests: Option<u32>,

    /// Bursts, one as soon as the one before has finished, 1 to 1000 [default: 3]; with --trace,
    /// how often to replay it [default: 1]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: Option<u32>,

    /// Milliseconds in which the requests of a burst arrive, 0 to 60000; no meaning with --trace
    #[arg(long, value_name = "MS", default_value_t = 300)]
    #[arg(value_parser = value_parser!(u64).range(0..=60_000))]
    pub(crate) submit_ms: u64,

    /// Milliseconds from one broadcast of the engines' statistics to the next, 1 to 60000
    #[arg(long, value_name = "MS", default_value_t = 100)]
    #[arg(value_parser = value_parser!(u64).range(1..=60_000))]
    pub(crate) publish_ms: u64,

    /// How the frontends choose an engine; repeat it or separate several by commas [default: all,
    /// that is overwrite,scaled,floor,headcount; with --trace also headcount-tokens, with --cap
    /// shared,headcount, and with --queue headcount,headcount-queue]
    #[arg(long = "strategy", value_name = "NAME", value_delimiter = ',')]
    strategies: Vec<Strategy>,

    /// Replay arrivals from a CSV file with the columns TIMESTAMP,ContextTokens,GeneratedTokens
    /// instead of sending bursts; not together with --kill
    #[arg(long, value_name = "FILE", conflicts_with = "kill")]
    pub(crate) trace: Option<PathBuf>,

    /// How many times faster than recorded the trace arrives, 0.001 to 1000000; no meaning without --trace
    #[arg(long, value_name = "N", default_value_t = 60.0, value_parser = speedup)]
    pub(crate) speedup: f64,

    /// Kill a frontend with SIGKILL in the middle of the second burst (of the first, if it is the
    /// only one), and show first what became of its requests; not together with --trace
    #[arg(long)]
    pub(crate) kill: bool,

    /// Instead of bursts: give each engine a cap of N requests, have more clients than that, kill a frontend
    /// with SIGKILL again and again, and show how many places are left
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1000))]
    #[arg(conflicts_with_all = ["kill", "trace", "requests", "rounds", "submit_ms"])]
    pub(crate) cap: Option<u32>,

    /// With --cap: kill no frontend. Send bursts of three times as many requests as there are places, and show how those
    /// get a place that find none: by trying again, and in one queue over all frontends
    #[arg(long, requires = "cap", conflicts_with = "kills")]
    pub(crate) queue: bool,

    /// With --cap, how many frontends are killed, 1 to 1000
    #[arg(long, value_name = "N", default_value_t = 16, requires = "cap")]
    #[arg(value_parser = value_parser!(u32).range(1..=1000))]
    pub(crate) kills: u32,

    /// Write a picture to this file, as SVG: how the bursts were split, or with --trace and --cap the requests
    /// in flight over time, and with --queue those that wait
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) chart: Option<PathBuf>,

    /// Print the results as JSON, and nothing else, to standard output
    #[arg(long)]
    pub(crate) json: bool,

    /// The part that this process plays when the example starts itself again
    #[arg(long, hide = true)]
    pub(crate) role: Option<Assignment>,
}

impl Options {
    /// The strategies to compare, each once, in the order asked for.
    pub(crate) fn strategies(&self) -> Vec<Strategy> {
        let asked: &[Strategy] = match self.strategies.as_slice() {
            [] if self.queue => &[Strategy::Headcount, Strategy::HeadcountQueue],
            [] if self.cap.is_some() => &[Strategy::Shared, Strategy::Headcount],
            [] => &[
                Strategy::Overwrite,
                Strategy::Scaled,
                Strategy::Floor,
                Strategy::Headcount,
            ],
            some => some,
        };
        let mut chosen = Vec::new();
        for &strategy in asked {
            let by_tokens = (strategy == Strategy::Headcount && self.trace.is_some())
                .then_some(Strategy::HeadcountTokens);
            for strategy in [Some(strategy), by_tokens].into_iter().flatten() {
                if !chosen.contains(&strategy) {
                    chosen.push(strategy);
                }
            }
        }
        chosen
    }

    pub(crate) fn rounds(&self) -> u32 {
        self.rounds
            .unwrap_or(if self.trace.is_some() { 1 } else { 3 })
    }

    pub(crate) fn burst_size(&self) -> u32 {
        self.requests.unwrap_or(256)
    }

    pub(crate) fn submit_window(&self) -> Duration {
        Duration::from_millis(self.submit_ms)
    }
}

fn speedup(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(speedup) if (0.001..=1_000_000.0).contains(&speedup) => Ok(speedup),
        _ => Err("expected a number from 0.001 to 1000000".to_owned()),
    }
}
