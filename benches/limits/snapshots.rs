//! A consistent read of eight engines' statistics, beside other crates for that.

use crate::report::Comparison;
use headcount_benches::alternatives::{ArcSwapped, MmapSynced, SeqLocked};
use headcount_yardstick::{
    Alternation, Contenders, MeasureError, Processes, SLICE, fresh_table, plain_loads,
    read_statistics, shared_words,
};

const ENGINES: usize = 8;
const NAMES: [&str; 5] = [
    "plain loads",
    "headcount",
    "mmap-sync",
    "seqlock, one process",
    "arc-swap, one process",
];

/// Measures all of them, while no process publishes.
pub(crate) fn measure(rounds: usize) -> Result<Comparison, MeasureError> {
    let words = shared_words()?;
    let table = fresh_table(ENGINES)?;
    let directory = tempfile::tempdir_in("/dev/shm")?;
    let path = directory.path().join("statistics");
    let (seq_locked, arc_swapped) = (SeqLocked::default(), ArcSwapped::default());
    let mut processes = Processes::start(1, |worker| {
        let workloads = vec![
            plain_loads(&words),
            read_statistics(&table, ENGINES),
            MmapSynced::create(&path)?.read(),
            seq_locked.read(),
            arc_swapped.read(),
        ];
        Ok(Contenders::new(worker, workloads))
    })?;
    let times = Alternation::new(NAMES.len(), rounds, SLICE).run(&mut processes)?;
    Ok(Comparison {
        engines: ENGINES,
        processes: 1,
        undisturbed: times.undisturbed,
        nanoseconds: (NAMES.into_iter().enumerate())
            .map(|(number, name)| (name, times.nanoseconds(number)))
            .collect(),
    })
}
