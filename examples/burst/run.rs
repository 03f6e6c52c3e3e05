//! The whole run: every strategy in turn, then the results.

use std::io::{self, Write};
use std::path::Path;

use crate::arrivals::{self, Arrival};
use crate::cap;
use crate::chart;
use crate::deployment::Deployment;
use crate::error::Error;
use crate::interrupt;
use crate::kill::Killed;
use crate::options::Options;
use crate::play;
use crate::progress::Progress;
use crate::report::Report;
use crate::strategy::Strategy;
use crate::table::Table;
use crate::timeline::Timeline;
use crate::trace;
use crate::waiting;

/// The result of one strategy.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) strategy: Strategy,
    pub(crate) rounds: Vec<Timeline>,
    /// In which round, counted from 0, and what it left.
    pub(crate) killed: Option<(usize, Killed)>,
    pub(crate) leaked: u64,
}

pub(crate) fn run(options: &Options) -> Result<(), Error> {
    if options.queue {
        return waiting::run(options);
    }
    if options.cap.is_some() {
        return cap::run(options);
    }
    if options.kill && options.frontends < 2 {
        return Err(Error::NoFrontendLeft {
            frontends: options.frontends,
        });
    }
    let rounds = rounds(options)?;
    check_chart_directory(options)?;
    interrupt::watch()?;

    let mut progress = Progress::new();
    let mut outcomes = Vec::new();
    for strategy in options.strategies() {
        outcomes.push(try_out(options, strategy, &rounds, &mut progress)?);
    }
    drop(progress);

    let report = Report::new(options, rounds[0].len(), &outcomes);
    print(options, &report).map_err(Error::Output)?;
    match &options.chart {
        Some(path) => chart::draw(path, &report, &outcomes),
        None => Ok(()),
    }
}

fn print(options: &Options, report: &Report) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if options.json {
        serde_json::to_writer_pretty(&mut out, report)?;
        writeln!(out)
    } else {
        write!(out, "{}", Table(report))
    }
}

/// The arrivals of every round.
fn rounds(options: &Options) -> Result<Vec<Vec<Arrival>>, Error> {
    match &options.trace {
        Some(path) => Ok(vec![trace::read(path, options)?; options.rounds() as usize]),
        None => Ok((0..options.rounds())
            .map(|round| arrivals::burst(options, round))
            .collect()),
    }
}

/// Runs all rounds back to back: the next begins when the last request of the one before is
/// answered, while the last broadcast still tells of the end of that one.
fn try_out(
    options: &Options,
    strategy: Strategy,
    rounds: &[Vec<Arrival>],
    progress: &mut Progress,
) -> Result<Outcome, Error> {
    let mut deployment = Deployment::start(options, strategy)?;
    let round_to_kill_in = options.kill.then_some(rounds.len().min(2) - 1);
    let mut timelines = Vec::new();
    let mut killed = None;
    for (arrivals, round) in rounds.iter().zip(0..) {
        let part = format!("{}, round {} of {}", strategy, round + 1, rounds.len());
        progress.begin(part, arrivals.len() as u64);
        let victim = play::play(
            &mut deployment,
            arrivals,
            progress,
            round_to_kill_in == Some(round),
        )?;
        killed = killed.or(victim.map(|victim| (round, victim)));
        timelines.push(deployment.logs()?);
    }
    Ok(Outcome {
        strategy,
        rounds: timelines.into_iter().map(Timeline::new).collect(),
        killed,
        leaked: still_counted(&mut deployment)?,
    })
}

/// The requests that are still counted: by the count that the frontends share, or by each living frontend.
pub(crate) fn still_counted(deployment: &mut Deployment) -> Result<u64, Error> {
    if let Some(table) = deployment.table() {
        table.reap()?;
    }
    match deployment.counted() {
        Some(requests) => Ok(requests),
        None => deployment.counted_by_frontends(),
    }
}

/// Better now than when all is done.
pub(crate) fn check_chart_directory(options: &Options) -> Result<(), Error> {
    let Some(path) = &options.chart else {
        return Ok(());
    };
    let directory = path
        .parent()
        .filter(|parent| *parent != Path::new(""))
        .unwrap_or(Path::new("."));
    if directory.is_dir() && !path.is_dir() {
        return Ok(());
    }
    Err(Error::Chart {
        path: path.clone(),
        reason: "it is a directory, or in none".to_owned(),
    })
}
