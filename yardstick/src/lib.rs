//! How fast a table is on this machine, as ratios to what nobody can beat.
//!
//! The benchmarks and `headcount bench` measure by it. It is a package of its own, so it sees no more of the
//! library than users do.
//!
//! Every ratio is taken between two things that the same processes do by turns, half a millisecond
//! each, many times. What the machine does to one, it does to the other.
mod alternation;
mod failed;
mod locked;
mod ours;
mod pair;
mod processes;
mod robust_mutex;
mod shared;
mod turn;

pub use alternation::{Alternation, Times, median};
pub use failed::Failed;
pub use locked::{Lock, LockedTable};
pub use ours::{calm, fresh_table, pressed, read_statistics, route_and_finish};
pub use pair::{bare_pair, plain_loads, shared_line, shared_words};
pub use processes::{Gate, Place, Processes};
pub use robust_mutex::RobustMutex;
pub use shared::Shared;
pub use turn::{Contest, Operation};

use headcount::{Publisher, Table};
use std::time::Duration;

/// A ratio, and what it should be.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Ratio {
    /// Its name.
    pub name: &'static str,
    /// What is divided by what.
    pub what: &'static str,
    /// The median over all rounds.
    pub value: f64,
    /// The table's operation.
    pub operation: &'static str,
    /// What that takes, in nanoseconds.
    pub takes: f64,
    /// What it is compared with.
    pub yardstick: &'static str,
    /// What that takes, in nanoseconds.
    pub yardstick_takes: f64,
    /// What has to be reached.
    pub must: f64,
    /// What would be better.
    pub aim: f64,
    /// Whether more is better.
    pub more_is_better: bool,
    /// In how many rounds nothing else took a core.
    pub undisturbed: usize,
}

impl Ratio {
    /// Whether the ratio is at least as good as `limit`.
    pub fn reaches(&self, limit: f64) -> bool {
        match self.more_is_better {
            true => self.value >= limit,
            false => self.value <= limit,
        }
    }
}

/// How long each thing runs before it is another one's turn.
pub const TURN: Duration = Duration::from_micros(500);

const ENGINES: [usize; 3] = [8, 64, 256];

const BARE_PAIR: &str = "fetch_add + fetch_sub";

/// Measures them all; a few seconds. Starts processes by forking, so no thread may run yet.
pub fn measure(rounds: usize) -> Result<Vec<Ratio>, Failed> {
    let mut ratios = alone(rounds)?;
    ratios.extend(by_two(rounds)?);
    Ok(ratios)
}

/// One process.
fn alone(rounds: usize) -> Result<Vec<Ratio>, Failed> {
    let mut tables = Vec::new();
    for engines in ENGINES {
        tables.push(fresh_table(engines)?);
    }
    let line = pair::shared_line()?;
    let words = pair::shared_words()?;
    let mut processes = Processes::start(1, |place| {
        let mut operations = vec![bare_pair(&line), plain_loads(&words)];
        for table in &tables {
            operations.push(route_and_finish(table.join()?));
        }
        operations.push(read_statistics(&tables[0], ENGINES[0]));
        Ok(Contest::new(place, operations))
    })?;
    let mut publishers = publishers(&tables)?;
    let times = Alternation::new(6, rounds, TURN)
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

/// Two processes that meet in the same words.
fn by_two(rounds: usize) -> Result<Vec<Ratio>, Failed> {
    let tables = [fresh_table(ENGINES[0])?];
    let line = pair::shared_line()?;
    let locked = LockedTable::<RobustMutex>::new(ENGINES[0])?;
    let mut processes = Processes::start(2, |place| {
        let operations = vec![
            bare_pair(&line),
            route_and_finish(tables[0].join()?),
            locked.route_and_finish(place.index),
        ];
        Ok(Contest::new(place, operations))
    })?;
    let mut publishers = publishers(&tables)?;
    let times = Alternation::new(3, rounds, TURN)
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

fn publishers(tables: &[Table]) -> Result<Vec<(Publisher, usize)>, Failed> {
    let mut publishers = Vec::new();
    for table in tables {
        publishers.push((table.publisher()?, table.view().engines.len()));
    }
    Ok(publishers)
}

/// A snapshot counts for a second, so each round gets a new one.
fn publish(publishers: &mut [(Publisher, usize)]) -> Result<(), Failed> {
    for (publisher, engines) in publishers {
        publisher.publish(&vec![calm(); *engines])?;
    }
    Ok(())
}
