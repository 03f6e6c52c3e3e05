//! A cap on each engine, more clients than places, and frontends that are killed again and again.

mod clients;
pub(crate) mod history;
mod text;

use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;

use crate::chart;
use crate::deployment::Deployment;
use crate::error::Error;
use crate::interrupt;
use crate::options::Options;
use crate::progress::Progress;
use crate::run::{check_chart_directory, still_counted};
use crate::strategy::Strategy;

use self::clients::Clients;
use self::history::History;

/// From one kill to the next.
pub(crate) const KILL_EVERY: Duration = Duration::from_millis(800);

/// The results of all strategies.
#[derive(Debug, Serialize)]
pub(crate) struct Held {
    pub(crate) config: Config,
    #[serde(rename = "results")]
    pub(crate) runs: Vec<Run>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Config {
    pub(crate) engines: u32,
    pub(crate) frontends: u32,
    pub(crate) cap: u32,
    pub(crate) clients: u32,
    pub(crate) kills: u32,
    pub(crate) kill_every_ms: u64,
}

/// The result of one strategy.
#[derive(Debug, Serialize)]
pub(crate) struct Run {
    pub(crate) strategy: Strategy,
    /// Requests that were answered before the clients stopped.
    pub(crate) answered: u64,
    /// How often a client was told that there is no place.
    pub(crate) refused: u64,
    /// The most that one engine had in flight at any time.
    pub(crate) most_on_an_engine: i64,
    /// The most that all engines had in flight at once after the last kill.
    pub(crate) in_flight_after_last_kill: i64,
    /// The requests that are still counted when all are answered.
    pub(crate) leaked: u64,
    #[serde(skip)]
    pub(crate) start: Duration,
    #[serde(skip)]
    pub(crate) end: Duration,
    #[serde(skip)]
    pub(crate) kills: Vec<Duration>,
    /// The count of all frontends, every 10 ms.
    #[serde(skip)]
    pub(crate) counted: Vec<(Duration, u64)>,
    /// The requests at the engines, by their own logs.
    #[serde(skip)]
    pub(crate) history: History,
}

/// Runs every strategy, and prints and draws the results.
pub(crate) fn run(options: &Options) -> Result<(), Error> {
    if options.frontends < 2 {
        return Err(Error::NoFrontendLeft {
            frontends: options.frontends,
        });
    }
    let config = Config::new(options);
    if let Some(strategy) = options.strategies().into_iter().find(|s| !s.has_caps()) {
        return Err(Error::NoCap { strategy });
    }
    check_chart_directory(options)?;
    interrupt::watch()?;

    let mut progress = Progress::new();
    let mut runs = Vec::new();
    for strategy in options.strategies() {
        progress.begin(format!("{strategy}, kills"), config.kills.into());
        runs.push(try_out(options, &config, strategy, &mut progress)?);
    }
    drop(progress);

    let held = Held { config, runs };
    let mut out = io::stdout().lock();
    if options.json {
        serde_json::to_writer_pretty(&mut out, &held)
            .map_err(io::Error::from)
            .and_then(|()| writeln!(out))
    } else {
        write!(out, "{held}")
    }
    .map_err(Error::Output)?;
    match &options.chart {
        Some(path) => chart::draw_places(path, &held),
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
    let history = History::new(deployment.logs()?, &outcome.kills);
    let last_kill = outcome.kills.last().copied().unwrap_or(outcome.start);
    Ok(Run {
        strategy,
        answered: outcome.answered,
        refused: outcome.refused,
        most_on_an_engine: history.most_on_an_engine(),
        in_flight_after_last_kill: history.most_from(last_kill + KILL_EVERY / 4, outcome.end),
        leaked: still_counted(&mut deployment)?,
        start: outcome.start,
        end: outcome.end,
        kills: outcome.kills,
        counted: outcome.counted,
        history,
    })
}

impl Config {
    fn new(options: &Options) -> Self {
        let cap = options.cap.unwrap_or(1);
        let places = options.engines * cap;
        Self {
            engines: options.engines,
            frontends: options.frontends,
            cap,
            clients: places + places.div_ceil(4),
            kills: options.kills,
            kill_every_ms: KILL_EVERY.as_millis() as u64,
        }
    }

    /// The most requests that all engines together may have in flight.
    pub(crate) fn places(&self) -> u32 {
        self.engines * self.cap
    }
}

impl Run {
    pub(crate) fn in_words(&self, config: &Config) -> String {
        let (left, places, kills) = (
            self.in_flight_after_last_kill,
            config.places(),
            self.kills.len(),
        );
        format!("{left} of {places} places left after {kills} kills")
    }

    /// The requests that were counted, by seconds since the start.
    pub(crate) fn counted_curve(&self) -> Vec<(f64, f64)> {
        let steps = self
            .counted
            .iter()
            .map(|&(at, requests)| (at, requests as i64));
        history::corners(steps, self.start, self.end)
    }

    /// The requests in flight, by seconds since the start.
    pub(crate) fn in_flight_curve(&self) -> Vec<(f64, f64)> {
        history::corners(self.history.sums(), self.start, self.end)
    }
}
