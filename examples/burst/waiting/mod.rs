//! Bursts of more requests than there are places: those that find none try again, or wait in one queue.

mod clients;
mod served;
mod text;

use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;

use crate::cap::history::{self, History};
use crate::chart;
use crate::deployment::Deployment;
use crate::error::Error;
use crate::interrupt;
use crate::options::Options;
use crate::progress::Progress;
use crate::run::{check_chart_directory, still_counted};
use crate::strategy::Strategy;

use self::clients::Clients;
use self::served::Served;

/// How long a client waits that was refused.
pub(crate) const PAUSE: Duration = Duration::from_millis(30);

/// The results of all strategies.
#[derive(Debug, Serialize)]
pub(crate) struct Waited {
    pub(crate) config: Config,
    #[serde(rename = "results")]
    pub(crate) runs: Vec<Run>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Config {
    pub(crate) engines: u32,
    pub(crate) frontends: u32,
    pub(crate) cap: u32,
    /// Requests in a burst.
    pub(crate) requests: u32,
    pub(crate) bursts: u32,
}

/// The result of one strategy.
#[derive(Debug, Serialize)]
pub(crate) struct Run {
    pub(crate) strategy: Strategy,
    /// The most that one engine had in flight at any time.
    pub(crate) most_on_an_engine: i64,
    /// How often a client was told that there is no place.
    pub(crate) refused: u64,
    /// Requests that got their places later than a request that had come later.
    pub(crate) overtaken: usize,
    /// From the time at which a client wants a request served to its place.
    pub(crate) median_wait_ms: f64,
    pub(crate) longest_wait_ms: f64,
    /// How many of all places were free, on average over the time in which requests waited.
    pub(crate) idle_while_waiting_percent: f64,
    /// The requests that are still counted when all are answered.
    pub(crate) leaked: u64,
    #[serde(skip)]
    pub(crate) start: Duration,
    #[serde(skip)]
    pub(crate) end: Duration,
    #[serde(skip)]
    served: Served,
    #[serde(skip)]
    history: History,
}

/// Runs every strategy, and prints and draws the results.
pub(crate) fn run(options: &Options) -> Result<(), Error> {
    let config = Config::new(options);
    if let Some(strategy) = options.strategies().into_iter().find(|s| !s.has_caps()) {
        return Err(Error::NoCap { strategy });
    }
    check_chart_directory(options)?;
    interrupt::watch()?;

    let mut progress = Progress::new();
    let mut runs = Vec::new();
    for strategy in options.strategies() {
        let requests = config.requests * config.bursts;
        progress.begin(format!("{strategy}, waiting"), requests.into());
        runs.push(try_out(options, &config, strategy, &mut progress)?);
    }
    drop(progress);

    let waited = Waited { config, runs };
    let mut out = io::stdout().lock();
    if options.json {
        serde_json::to_writer_pretty(&mut out, &waited)
            .map_err(io::Error::from)
            .and_then(|()| writeln!(out))
    } else {
        write!(out, "{waited}")
    }
    .map_err(Error::Output)?;
    match &options.chart {
        Some(path) => chart::draw_waiting(path, &waited),
        None => Ok(()),
    }
}

fn try_out(
    options: &Options,
    config: &Config,
    strategy: Strategy,
    progress: &mut Progress,
) -> Result<Run, Error> {
    let mut deployment = Deployment::start(options, strategy)?;
    let outcome = Clients::new(&mut deployment, config).play(progress)?;
    let history = History::new(deployment.logs()?, &[]);
    let served = outcome.served;
    Ok(Run {
        strategy,
        most_on_an_engine: history.most_on_an_engine(),
        refused: outcome.refused,
        overtaken: served.overtaken(),
        median_wait_ms: served.median().as_secs_f64() * 1e3,
        longest_wait_ms: served.longest().as_secs_f64() * 1e3,
        idle_while_waiting_percent: 100.0 * served.idle(&history, config.places().into()),
        leaked: still_counted(&mut deployment)?,
        start: outcome.start,
        end: outcome.end,
        served,
        history,
    })
}

impl Config {
    fn new(options: &Options) -> Self {
        let cap = options.cap.unwrap_or(1);
        Self {
            engines: options.engines,
            frontends: options.frontends,
            cap,
            requests: options.engines * cap * 3,
            bursts: clients::BURSTS,
        }
    }

    /// The most requests that all engines together may have in flight.
    pub(crate) fn places(&self) -> u32 {
        self.engines * self.cap
    }
}

impl Run {
    /// What became of a request that found no place.
    pub(crate) fn in_words(&self) -> String {
        match self.strategy {
            Strategy::HeadcountQueue => "one queue over all processes".to_owned(),
            strategy => format!("{strategy}, tried again every {} ms", PAUSE.as_millis()),
        }
    }

    /// The requests that wait, by seconds since the start.
    pub(crate) fn waiting_curve(&self) -> Vec<(f64, f64)> {
        history::corners(self.served.waiting(), self.start, self.end)
    }

    /// The requests in flight, by seconds since the start.
    pub(crate) fn in_flight_curve(&self) -> Vec<(f64, f64)> {
        history::corners(self.history.sums(), self.start, self.end)
    }

    /// How many milliseconds each request waited, by the second in which it came.
    pub(crate) fn waits(&self) -> Vec<(f64, f64)> {
        let seconds = |time: Duration| time.saturating_sub(self.start).as_secs_f64();
        let times = self.served.times().into_iter();
        times
            .map(|(came, placed)| {
                let wait = placed.saturating_sub(came);
                (seconds(came), wait.as_secs_f64() * 1e3)
            })
            .collect()
    }

    /// The most that waited at once.
    pub(crate) fn most_waiting(&self) -> i64 {
        let waiting = self.served.waiting();
        waiting.map(|(_, waiting)| waiting).max().unwrap_or(0)
    }
}
