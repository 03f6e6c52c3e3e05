//! The same copy, above an own in-flight count multiplied by the number of frontends.

use super::{Choose, Seat, least_loaded};
use crate::error::Error;
use crate::wire::{Request, Stats};

#[derive(Debug)]
pub(super) struct Scaled {
    copy: Vec<Stats>,
    in_flight: Vec<u32>,
    scan_start: usize,
    frontends: u32,
}

impl Scaled {
    pub(super) fn new(seat: Seat) -> Self {
        Self {
            copy: vec![Stats::default(); seat.engines],
            in_flight: vec![0; seat.engines],
            scan_start: seat.scan_start(),
            frontends: seat.frontends,
        }
    }

    fn load(&self, engine: usize) -> f64 {
        let Stats {
            waiting,
            running,
            kv_usage,
        } = self.copy[engine];
        let requests = (self.frontends * self.in_flight[engine]).max(waiting + running);
        f64::from(requests) + f64::from(waiting) * 6.0 * f64::from(kv_usage - 0.5).max(0.0)
    }
}

impl Choose for Scaled {
    fn choose(&mut self, _: &Request) -> Result<Option<usize>, Error> {
        let engines = self.copy.len();
        let engine = least_loaded(engines, self.scan_start, |engine| self.load(engine));
        self.scan_start = (self.scan_start + 1) % engines;
        self.copy[engine].waiting += self.frontends;
        self.in_flight[engine] += 1;
        Ok(Some(engine))
    }

    fn finished(&mut self, _: u64, engine: usize) {
        self.in_flight[engine] -= 1;
    }

    fn broadcast(&mut self, stats: &[Stats]) -> Result<(), Error> {
        self.copy.copy_from_slice(stats);
        Ok(())
    }
}
