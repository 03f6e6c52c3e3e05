//! Counters with one writer each: every process has a row of its own, and readers add them up.
//!
//! Cheap to write, and nothing is lost when a process dies: its row can be cleared. But between the
//! sum and one's own addition others add as well, so caps are overrun and bursts split unevenly.

use headcount_yardstick::{MeasureError, Shared, Workload};
use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering};

/// Engines of a row that share a line.
const LINE: usize = 64 / size_of::<AtomicU32>();

/// The rows of all processes, each on lines of its own.
#[derive(Debug)]
pub struct Slots {
    rows: Shared<AtomicU32>,
    processes: usize,
    engines: usize,
}

impl Slots {
    /// Rows for so many processes.
    pub fn new(engines: usize, processes: usize) -> Result<Self, MeasureError> {
        let words = engines.next_multiple_of(LINE) * processes;
        Ok(Self {
            rows: Shared::new(words, |_| AtomicU32::new(0))?,
            processes,
            engines,
        })
    }

    /// One request after the other.
    pub fn route_and_finish(&self, process: usize) -> Workload<'_> {
        let mut last_chosen = vec![0_u64; self.engines];
        let mut choices = 0;
        let own = self.row(process);
        let mut sums = vec![0; self.engines];
        Box::new(move |times| {
            for _ in 0..times {
                self.add_up(&mut sums);
                let engine = least(&sums, &last_chosen);
                choices += 1;
                last_chosen[engine] = choices;
                let count = &own[engine];
                // Relaxed, all: the row has one writer, and nothing is read by it.
                count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                black_box(engine);
                count.store(count.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
            }
            Ok(())
        })
    }

    /// Row by row, so that memory is read in its order.
    fn add_up(&self, sums: &mut [u32]) {
        sums.fill(0);
        for process in 0..self.processes {
            for (sum, count) in sums.iter_mut().zip(self.row(process)) {
                *sum += count.load(Ordering::Relaxed);
            }
        }
    }

    fn row(&self, process: usize) -> &[AtomicU32] {
        let stride = self.engines.next_multiple_of(LINE);
        &self.rows[process * stride..][..self.engines]
    }
}

/// The least loaded, of equals the one that was chosen least recently.
fn least(loads: &[u32], last_chosen: &[u64]) -> usize {
    let candidates = loads.iter().zip(last_chosen).enumerate();
    candidates
        .min_by_key(|(_, of)| *of)
        .map_or(0, |(engine, _)| engine)
}
