//! Route and finish, beside other ways to choose the least loaded engine and count there.

use crate::report::Comparison;
use headcount_benches::alternatives::{Slots, SpinLock};
use headcount_yardstick::{
    Alternation, Contest, Failed, LockedTable, Processes, RobustMutex, TURN, bare_pair, calm,
    fresh_table, route_and_finish, shared_line,
};

const NAMES: [&str; 5] = [
    "bare pair",
    "headcount",
    "robust mutex",
    "spin lock",
    "summed slots",
];

/// All of them, by so many processes at once.
pub(crate) fn measure(
    engines: usize,
    processes: usize,
    rounds: usize,
) -> Result<Comparison, Failed> {
    let line = shared_line()?;
    let table = fresh_table(engines)?;
    let mutex = LockedTable::<RobustMutex>::new(engines)?;
    let spin = LockedTable::<SpinLock>::new(engines)?;
    let slots = Slots::new(engines, processes)?;
    let mut workers = Processes::start(processes, |place| {
        let operations = vec![
            bare_pair(&line),
            route_and_finish(table.join()?),
            mutex.route_and_finish(place.index),
            spin.route_and_finish(place.index),
            slots.route_and_finish(place.index),
        ];
        Ok(Contest::new(place, operations))
    })?;
    let mut publisher = table.publisher()?;
    let times = Alternation::new(NAMES.len(), rounds, TURN)
        .before_each_round(move || Ok(publisher.publish(&vec![calm(); engines])?))
        .run(&mut workers)?;
    Ok(Comparison {
        engines,
        processes,
        undisturbed: times.undisturbed,
        nanoseconds: (NAMES.into_iter().enumerate())
            .map(|(number, name)| (name, times.nanoseconds(number)))
            .collect(),
    })
}
