//! The results in figures: for `--json`, the table and the chart.

use serde::Serialize;

use crate::kill::Killed;
use crate::options::Options;
use crate::padding;
use crate::run::Outcome;
use crate::strategy::Strategy;
use crate::timeline::{Spread, Timeline, range};

/// Engines whose shares are listed one by one.
const MOST_ENGINES: usize = 8;

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) config: Config,
    pub(crate) results: Vec<StrategyResult>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Config {
    pub(crate) engines: u32,
    pub(crate) frontends: u32,
    pub(crate) requests: u32,
    pub(crate) rounds: u32,
    pub(crate) publish_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) submit_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) speedup: Option<f64>,
}

#[derive(Debug, Serialize)]
pub(crate) struct StrategyResult {
    pub(crate) strategy: Strategy,
    pub(crate) worst_spread: u32,
    pub(crate) worst_padded_batch: u32,
    /// The requests that are still counted when all are answered.
    pub(crate) leaked: u64,
    pub(crate) rounds: Vec<Round>,
    /// Of the requests and tokens in flight, from the first arrival to the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) in_flight_spread: Option<Spread>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kill: Option<KillResult>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Round {
    /// What each engine was sent.
    pub(crate) per_engine: Vec<u32>,
    /// Largest minus smallest of them.
    pub(crate) spread: u32,
    /// Of a burst, the largest share, padded; of a trace, the most that an engine had in flight,
    /// padded.
    pub(crate) padded_batch: u32,
    /// More slots than with an even split.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) padding_cost_percent: Option<f64>,
    /// Whether all requests of the burst were in flight together, as the figures above suppose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) one_batch: Option<bool>,
}

#[derive(Debug, Serialize)]
pub(crate) struct KillResult {
    /// Counted from 1.
    pub(crate) round: usize,
    #[serde(flatten)]
    pub(crate) killed: Killed,
}

impl Report {
    pub(crate) fn new(options: &Options, requests: usize, outcomes: &[Outcome]) -> Self {
        let is_trace = options.trace.is_some();
        let config = Config {
            engines: options.engines,
            frontends: options.frontends,
            requests: requests as u32,
            rounds: options.rounds(),
            publish_ms: options.publish_ms,
            submit_ms: (!is_trace).then_some(options.submit_ms),
            trace: options
                .trace
                .as_ref()
                .map(|path| path.display().to_string()),
            speedup: is_trace.then_some(options.speedup),
        };
        let results = outcomes
            .iter()
            .map(|outcome| config.judge(outcome))
            .collect();
        Self { config, results }
    }
}

impl Config {
    /// The way that the requests take, in words.
    pub(crate) fn way(&self) -> String {
        let count = |number, what| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
        format!(
            "through {} to {}",
            count(self.frontends, "frontend"),
            count(self.engines, "engine")
        )
    }

    /// The largest share of an even split.
    pub(crate) fn even_share(&self) -> u32 {
        self.requests.div_ceil(self.engines)
    }

    /// The batch that an even split is padded to.
    pub(crate) fn even_batch(&self) -> u32 {
        padding::padded(self.even_share())
    }

    fn judge(&self, outcome: &Outcome) -> StrategyResult {
        let rounds: Vec<_> = outcome
            .rounds
            .iter()
            .map(|timeline| self.judge_round(timeline))
            .collect();
        StrategyResult {
            strategy: outcome.strategy,
            worst_spread: rounds.iter().map(|round| round.spread).max().unwrap_or(0),
            worst_padded_batch: rounds
                .iter()
                .map(|round| round.padded_batch)
                .max()
                .unwrap_or(0),
            leaked: outcome.leaked,
            rounds,
            in_flight_spread: self.trace.is_some().then(|| mean_spread(&outcome.rounds)),
            kill: outcome.killed.clone().map(|(round, killed)| KillResult {
                round: round + 1,
                killed,
            }),
        }
    }

    fn judge_round(&self, timeline: &Timeline) -> Round {
        let is_burst = self.trace.is_none();
        let per_engine = timeline.per_engine();
        let largest = per_engine.iter().copied().max().unwrap_or(0);
        let padded_batch = padding::padded(if is_burst { largest } else { timeline.peak() });
        Round {
            spread: range(per_engine.iter().copied()),
            per_engine,
            padded_batch,
            padding_cost_percent: is_burst
                .then(|| padding::cost_percent(padded_batch, self.even_batch())),
            one_batch: is_burst.then(|| timeline.is_one_batch()),
        }
    }
}

impl Round {
    /// Orders the rounds of a strategy: the larger, the worse.
    pub(crate) fn badness(&self) -> (u32, u32) {
        (self.padded_batch, self.spread)
    }

    /// What each engine was sent; if there are too many to list, the smallest and the largest
    /// share.
    pub(crate) fn shares(&self, separator: &str) -> String {
        match (self.per_engine.iter().min(), self.per_engine.iter().max()) {
            (Some(least), Some(most)) if self.per_engine.len() > MOST_ENGINES => {
                format!("{least} to {most}")
            }
            _ => self
                .per_engine
                .iter()
                .map(u32::to_string)
                .collect::<Vec<_>>()
                .join(separator),
        }
    }
}

/// The highest peaks and the mean of the means.
fn mean_spread(rounds: &[Timeline]) -> Spread {
    let share = 1.0 / rounds.len() as f64;
    rounds
        .iter()
        .map(Timeline::spread)
        .fold(Spread::default(), |all, round| Spread {
            peak_requests: all.peak_requests.max(round.peak_requests),
            mean_requests: all.mean_requests + share * round.mean_requests,
            peak_tokens: all.peak_tokens.max(round.peak_tokens),
            mean_tokens: all.mean_tokens + share * round.mean_tokens,
        })
}
