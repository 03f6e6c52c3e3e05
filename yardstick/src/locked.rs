//! The same table with a lock: counts, caps, weights, states, statistics, and the choice of the least loaded engine
//! and, among equals, of the one that was chosen longest ago. All of it happens under the lock.

use super::{MeasureError, Shared, Workload};
use std::cell::UnsafeCell;
use std::hint::black_box;
use std::io;
use std::time::{Duration, Instant};

/// A lock in memory that processes share.
pub trait Lock {
    /// Returns a lock that is free once it is [prepared](Self::prepare).
    fn new() -> Self;

    /// Prepares the lock where it lies, before another process uses it.
    ///
    /// # Errors
    ///
    /// What the system says, if it refuses.
    fn prepare(&self) -> io::Result<()>;

    /// Takes the lock. Returns whether its last holder died with it.
    ///
    /// # Errors
    ///
    /// What the system says, if the lock cannot be taken.
    fn lock(&self) -> io::Result<bool>;

    /// Releases the lock.
    fn unlock(&self);
}

const ENGINES: usize = 256;
const PROCESSES: usize = 8;
const STALE_AFTER: Duration = Duration::from_secs(1);

/// An engine.
#[derive(Clone, Copy, Debug)]
struct Row {
    in_flight: u32,
    max_in_flight: u32,
    active: bool,
    per_weight: f64,
    waiting: u32,
    pressure: f64,
    last_chosen: u64,
}

/// The data that the lock guards.
#[derive(Debug)]
struct Rows {
    engines: usize,
    /// Since when there are statistics that matter to the load.
    under_pressure: Option<Instant>,
    /// How many choices there were.
    choices: u64,
    rows: [Row; ENGINES],
    /// What each process holds, so that the requests of a killed process can be taken off.
    held: [[u32; ENGINES]; PROCESSES],
}

impl Rows {
    fn route(&mut self, process: usize) -> Option<usize> {
        let engine = match self.under_pressure {
            Some(since) if since.elapsed() < STALE_AFTER => self.least(|row| {
                let waiting = row.waiting.min(row.in_flight);
                f64::from(row.in_flight) * row.per_weight + f64::from(waiting) * row.pressure
            }),
            _ => self.least(|row| f64::from(row.in_flight) * row.per_weight),
        }?;
        self.choices += 1;
        self.rows[engine].last_chosen = self.choices;
        self.rows[engine].in_flight += 1;
        self.held[process][engine] += 1;
        Some(engine)
    }

    #[inline]
    fn least(&self, load: impl Fn(&Row) -> f64) -> Option<usize> {
        let (mut best, mut least, mut longest_ago) = (None, f64::INFINITY, u64::MAX);
        for (engine, row) in self.rows[..self.engines].iter().enumerate() {
            if !row.active || row.in_flight >= row.max_in_flight {
                continue;
            }
            let load = load(row);
            if load < least || (load == least && row.last_chosen < longest_ago) {
                (best, least, longest_ago) = (Some(engine), load, row.last_chosen);
            }
        }
        best
    }

    fn finish(&mut self, process: usize, engine: usize) {
        self.rows[engine].in_flight -= 1;
        self.held[process][engine] -= 1;
    }

    /// Makes the counts right after a holder died between two of its steps.
    #[cold]
    fn recount(&mut self) {
        for (engine, row) in self.rows.iter_mut().enumerate() {
            row.in_flight = self.held.iter().map(|held| held[engine]).sum();
        }
    }
}

/// The lock, and what it guards on the lines behind it.
#[derive(Debug)]
#[repr(C)]
struct Memory<L> {
    lock: L,
    rows: UnsafeCell<Rows>,
}

// SAFETY: the rows are touched by the lock's holder only.
unsafe impl<L> Sync for Memory<L> {}

/// A table behind a lock.
#[derive(Debug)]
pub struct LockedTable<L> {
    memory: Shared<Memory<L>>,
}

impl<L: Lock> LockedTable<L> {
    /// Creates a table of up to 256 engines of weight 1 without caps, for up to eight processes.
    ///
    /// # Errors
    ///
    /// A sentence, if the system refuses memory or the lock.
    pub fn new(engines: usize) -> Result<Self, MeasureError> {
        let row = Row {
            in_flight: 0,
            max_in_flight: u32::MAX,
            active: true,
            per_weight: 1.0,
            waiting: 0,
            pressure: 0.0,
            last_chosen: 0,
        };
        let memory = Shared::new(1, |_| Memory {
            lock: L::new(),
            rows: UnsafeCell::new(Rows {
                engines: engines.min(ENGINES),
                under_pressure: None,
                choices: 0,
                rows: [row; ENGINES],
                held: [[0; ENGINES]; PROCESSES],
            }),
        })?;
        memory[0].lock.prepare()?;
        Ok(Self { memory })
    }

    /// Returns a workload that routes and finishes one request after the other.
    pub fn route_and_finish(&self, process: usize) -> Workload<'_> {
        Box::new(move |times| {
            for _ in 0..times {
                let engine = self.under_lock(|rows| rows.route(process))?;
                let engine =
                    black_box(engine).ok_or_else(|| MeasureError("no engine".to_owned()))?;
                self.under_lock(|rows| rows.finish(process, engine))?;
            }
            Ok(())
        })
    }

    #[inline]
    fn under_lock<T>(&self, act: impl FnOnce(&mut Rows) -> T) -> io::Result<T> {
        let memory = &self.memory[0];
        let orphaned = memory.lock.lock()?;
        // SAFETY: we hold the lock, so there is no other reference to the rows.
        let rows = unsafe { &mut *memory.rows.get() };
        if orphaned {
            rows.recount();
        }
        let result = act(rows);
        memory.lock.unlock();
        Ok(result)
    }
}

#[cfg(test)]
mod tests {
    use super::super::RobustMutex;
    use super::*;

    fn in_flight(table: &LockedTable<RobustMutex>) -> Vec<u32> {
        let rows = table.under_lock(|rows| rows.rows.map(|row| row.in_flight));
        rows.unwrap()[..4].to_vec()
    }

    #[test]
    fn chooses_the_least_loaded_by_turns_and_keeps_caps() {
        let table = LockedTable::<RobustMutex>::new(4).unwrap();
        let route = || table.under_lock(|rows| rows.route(0)).unwrap();
        let first: Vec<_> = (0..8).map(|_| route().unwrap()).collect();
        assert_eq!(first, [0, 1, 2, 3, 0, 1, 2, 3]);
        table.under_lock(|rows| rows.finish(0, 2)).unwrap();
        assert_eq!(route(), Some(2));
        let cap = |rows: &mut Rows| rows.rows.iter_mut().for_each(|row| row.max_in_flight = 2);
        table.under_lock(cap).unwrap();
        assert_eq!(route(), None);
        assert_eq!(in_flight(&table), [2; 4]);
    }

    #[test]
    fn counts_are_right_again_after_a_holder_died_between_two_steps() {
        let table = LockedTable::<RobustMutex>::new(4).unwrap();
        let torn = std::thread::scope(|scope| {
            let died = scope.spawn(|| {
                table.memory[0].lock.lock().unwrap();
                // SAFETY: this thread holds the lock, and ends with it.
                let rows = unsafe { &mut *table.memory[0].rows.get() };
                rows.rows[1].in_flight += 1; // and not what it holds
            });
            died.join()
        });
        torn.unwrap();
        assert_eq!(in_flight(&table), [0; 4]);
    }
}
