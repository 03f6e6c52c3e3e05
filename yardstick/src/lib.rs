//! How fast a table is on this machine, as ratios to yardsticks: the cheapest code that could do the same.
//!
//! `headcount bench` and the benchmarks use it. It is a package of its own, so it sees no more of the
//! library than users do.
//!
//! Each ratio is taken between two [workloads](Workload). The same processes run both alternately, in
//! [slices](SLICE) of half a millisecond, many times. So a disturbance by the machine meets both.
//!
//! [`measure`] returns the project's own ratios. [`Processes`] and [`Alternation`] compare other workloads.

mod alternation;
mod contenders;
mod error;
mod locked;
mod ours;
mod pair;
mod processes;
mod robust_mutex;
mod shared;

pub use alternation::{Alternation, Times, median};
pub use contenders::{Contenders, Workload};
pub use error::MeasureError;
pub use locked::{Lock, LockedTable};
pub use ours::{calm, fresh_table, pressed, read_statistics, route_and_finish};
pub use pair::{bare_pair, plain_loads, shared_line, shared_words};
pub use processes::{Gate, Processes, Worker};
pub use robust_mutex::RobustMutex;
pub use shared::Shared;

use headcount::{Publisher, Table};
use std::time::Duration;

/// A ratio, and what it should be.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Ratio {
    /// Its name.
    pub name: &'static str,
    /// What is divided by what, as `this : that`.
    pub what: &'static str,
    /// The median over all rounds.
    pub value: f64,
    /// The operation of the table.
    pub operation: &'static str,
    /// The median time of the operation, in nanoseconds.
    pub takes: f64,
    /// What the operation is compared with.
    pub yardstick: &'static str,
    /// The median time of the yardstick, in nanoseconds.
    pub yardstick_takes: f64,
    /// The value that the project requires.
    pub must: f64,
    /// The value that the project aims at.
    pub aim: f64,
    /// Whether a larger value is better.
    pub more_is_better: bool,
    /// In how many rounds no other program took a core.
    pub undisturbed: usize,
}

impl Ratio {
    /// Whether the ratio is at least as good as `limit`.
    pub fn reaches(&self, limit: f64) -> bool {
        if self.more_is_better {
            self.value >= limit
        } else {
            self.value <= limit
        }
    }
}

/// How long each contender runs before the next one does.
pub const SLICE: Duration = Duration::from_micros(500);

const ENGINES: [usize; 3] = [8, 64, 256];

const BARE_PAIR: &str = "fetch_add + fetch_sub";

/// Measures all ratios, which takes a second or so.
///
/// It forks, so no other thread of this process may run.
///
/// # Errors
///
/// A sentence, if the system refuses memory or processes, or a process ends before it has answered.
pub fn measure(rounds: usize) -> Result<Vec<Ratio>, MeasureError> {
    let mut ratios = alone(rounds)?;
    ratios.extend(by_two(rounds)?);
    Ok(ratios)
}

/// Measures the ratios of one process.
fn alone(rounds: usize) -> Result<Vec<Ratio>, MeasureError> {
    let mut tables = Vec::new();
    for engines in ENGINES {
        tables.push(fresh_table(engines)?);
    }
    let line = pair::shared_line()?;
    let words = pair::shared_words()?;
    let mut processes = Processes::start(1, |worker| {
        let mut workloads = vec![bare_pair(&line), plain_loads(&words)];
        for table in &tables {
            workloads.push(route_and_finish(table.join()?));
        }
        workloads.push(read_statistics(&tables[0], ENGINES[0]));
        Ok(Contenders::new(worker, workloads))
    })?;
    let mut publishers = publishers(&tables)?;
    let times = Alternation::new(6, rounds, SLICE)
        .before_each_round(|| publish(&mut publishers))
        .run(&mut processes)?;
    let yardsticks = [BARE_PAIR, "ten plain loads"];
    let ratio = |name, what, measured, yardstick: usize, must, aim| Ratio {
        name,
        what,
        // What is divided stands before what it is divided by.
        operation: what.split(" : ").next().unwrap_or(what),
        value: times.ratio(measured, yardstick),
        takes: times.nanoseconds(measured),
        yardstick: yardsticks[yardstick],
        yardstick_takes: times.nanoseconds(yardstick),
        must,
        aim,
        more_is_better: false,
        undisturbed: times.undisturbed,
    };
    Ok(vec![
        ratio(
            "route_finish_e8",
            "route + finish, 8 engines : bare pair",
            2,
            0,
            4.0,
            2.5,
        ),
        ratio(
            "route_finish_e64",
            "route + finish, 64 engines : bare pair",
            3,
            0,
            9.0,
            5.0,
        ),
        ratio(
            "route_finish_e256",
            "route + finish, 256 engines : bare pair",
            4,
            0,
            25.0,
            10.0,
        ),
        ratio(
            "snapshot_read_e8",
            "statistics of 8 engines : 8 plain loads + 2",
            5,
            1,
            3.0,
            1.5,
        ),
    ])
}

/// Measures the ratios of two processes that write the same words.
fn by_two(rounds: usize) -> Result<Vec<Ratio>, MeasureError> {
    let tables = [fresh_table(ENGINES[0])?];
    let line = pair::shared_line()?;
    let locked = LockedTable::<RobustMutex>::new(ENGINES[0])?;
    let mut processes = Processes::start(2, |worker| {
        let workloads = vec![
            bare_pair(&line),
            route_and_finish(tables[0].join()?),
            locked.route_and_finish(worker.index),
        ];
        Ok(Contenders::new(worker, workloads))
    })?;
    let mut publishers = publishers(&tables)?;
    let times = Alternation::new(3, rounds, SLICE)
        .before_each_round(|| publish(&mut publishers))
        .run(&mut processes)?;
    Ok(vec![
        Ratio {
            name: "contended_p2_e8",
            what: "route + finish, 8 engines : bare pair, two processes each",
            operation: "route + finish, 8 engines, two processes",
            value: times.ratio(1, 0),
            takes: times.nanoseconds(1),
            yardstick: BARE_PAIR,
            yardstick_takes: times.nanoseconds(0),
            must: 5.0,
            aim: 3.0,
            more_is_better: false,
            undisturbed: times.undisturbed,
        },
        Ratio {
            name: "vs_robust_mutex",
            what: "the same table behind a robust mutex : this one, two processes each",
            operation: "route + finish, 8 engines, two processes",
            value: times.ratio(2, 1),
            takes: times.nanoseconds(1),
            yardstick: "the table behind a mutex",
            yardstick_takes: times.nanoseconds(2),
            must: 2.0,
            aim: 4.0,
            more_is_better: true,
            undisturbed: times.undisturbed,
        },
    ])
}

fn publishers(tables: &[Table]) -> Result<Vec<(Publisher, usize)>, MeasureError> {
    let mut publishers = Vec::new();
    for table in tables {
        publishers.push((table.publisher()?, table.view().engines.len()));
    }
    Ok(publishers)
}

/// Publishes anew before each round, since policies ignore a snapshot after a second.
fn publish(publishers: &mut [(Publisher, usize)]) -> Result<(), MeasureError> {
    for (publisher, engines) in publishers {
        publisher.publish(&vec![calm(); *engines])?;
    }
    Ok(())
}
