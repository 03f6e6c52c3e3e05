//! Route and finish, beside other ways to choose the least loaded engine and count there.

use crate::report::Comparison;
use headcount_benches::alternatives::{Slots, SpinLock};
use headcount_yardstick::{
    Alternation, BareChoice, Contenders, LockedTable, MeasureError, Processes, RobustMutex, SLICE,
    bare_pair, calm, fresh_table, route_and_finish, shared_line,
};

const NAMES: [&str; 6] = [
    "bare pair",
    "bare choice",
    "headcount",
    "robust mutex",
    "spin lock",
    "summed slots",
];

/// Measures all of them, by `count` processes at once.
pub(crate) fn measure(
    engines: usize,
    count: usize,
    rounds: usize,
) -> Result<Comparison, MeasureError> {
    let line = shared_line()?;
    let choice = BareChoice::new(engines)?;
    let table = fresh_table(engines)?;
    let mutex = LockedTable::<RobustMutex>::new(engines)?;
    let spin = LockedTable::<SpinLock>::new(engines)?;
    let slots = Slots::new(engines, count)?;
    let mut processes = Processes::start(count, |worker| {
        let workloads = vec![
            bare_pair(&line),
            choice.choose_and_finish(),
            route_and_finish(table.join()?),
            mutex.route_and_finish(worker.index),
            spin.route_and_finish(worker.index),
            slots.route_and_finish(worker.index),
        ];
        Ok(Contenders::new(worker, workloads))
    })?;
    let mut publisher = table.publisher()?;
    let times = Alternation::new(NAMES.len(), rounds, SLICE)
        .before_each_round(move || Ok(publisher.publish(&vec![calm(); engines])?))
        .run(&mut processes)?;
    Ok(Comparison {
        engines,
        processes: count,
        undisturbed: times.undisturbed,
        nanoseconds: (NAMES.into_iter().enumerate())
            .map(|(number, name)| (name, times.nanoseconds(number)))
            .collect(),
    })
}
