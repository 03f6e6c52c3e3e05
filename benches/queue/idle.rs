//! Route and finish while none waits, in tables with a queue and without one.

use headcount::Table;
use headcount_yardstick::{
    Alternation, Contenders, MeasureError, Processes, SLICE, route_and_finish,
};
use serde::Serialize;

/// Nanoseconds for a request.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Idle {
    pub(crate) engines: usize,
    pub(crate) without: f64,
    pub(crate) with: f64,
    /// The median of the ratios of the rounds.
    pub(crate) ratio: f64,
}

pub(crate) fn measure(rounds: usize) -> Result<Vec<Idle>, MeasureError> {
    [8, 64]
        .into_iter()
        .map(|engines| one(engines, rounds))
        .collect()
}

fn one(engines: usize, rounds: usize) -> Result<Idle, MeasureError> {
    let without = Table::options().engines(engines).memfd()?;
    let with = Table::options()
        .engines(engines)
        .max_waiting(1000)
        .memfd()?;
    let mut processes = Processes::start(1, |worker| {
        let workloads = vec![
            route_and_finish(without.join()?),
            route_and_finish(with.join()?),
        ];
        Ok(Contenders::new(worker, workloads))
    })?;
    let times = Alternation::new(2, rounds, SLICE).run(&mut processes)?;
    Ok(Idle {
        engines,
        without: times.nanoseconds(0),
        with: times.nanoseconds(1),
        ratio: times.ratio(1, 0),
    })
}
