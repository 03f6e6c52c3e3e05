//! The last broadcast as it came, with the own in-flight count as a floor under it.

use super::{Choose, Seat, least_loaded};
use crate::error::Error;
use crate::wire::{Request, Stats};

#[derive(Debug)]
pub(super) struct Floor {
    snapshot: Vec<Stats>,
    in_flight: Vec<u32>,
}

impl Floor {
    pub(super) fn new(seat: Seat) -> Self {
        Self {
            snapshot: vec![Stats::default(); seat.engines],
            in_flight: vec![0; seat.engines],
        }
    }
}

impl Choose for Floor {
    fn choose(&mut self, _: &Request) -> Result<Option<usize>, Error> {
        let engine = least_loaded(self.snapshot.len(), 0, |engine| {
            let Stats {
                waiting, running, ..
            } = self.snapshot[engine];
            f64::from(self.in_flight[engine].max(running + waiting) + 3 * waiting)
        });
        self.in_flight[engine] += 1;
        Ok(Some(engine))
    }

    fn finished(&mut self, _: u64, engine: usize) {
        self.in_flight[engine] -= 1;
    }

    fn broadcast(&mut self, stats: &[Stats]) -> Result<(), Error> {
        self.snapshot.copy_from_slice(stats);
        Ok(())
    }
}
