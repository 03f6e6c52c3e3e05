//! A private copy of the statistics, which every broadcast replaces.

use super::{Choose, Seat, least_loaded};
use crate::error::Error;
use crate::wire::{Request, Stats};

#[derive(Debug)]
pub(super) struct Overwrite {
    copy: Vec<Stats>,
    scan_start: usize,
    /// What a request sent adds to `waiting`, as if every frontend had sent one.
    bump: u32,
}

impl Overwrite {
    pub(super) fn new(seat: Seat) -> Self {
        Self {
            copy: vec![Stats::default(); seat.engines],
            scan_start: seat.scan_start(),
            bump: seat.frontends,
        }
    }
}

impl Choose for Overwrite {
    fn choose(&mut self, _: &Request) -> Result<Option<usize>, Error> {
        let engine = least_loaded(self.copy.len(), self.scan_start, |engine| {
            let Stats {
                waiting, running, ..
            } = self.copy[engine];
            f64::from(4 * waiting + running)
        });
        self.copy[engine].waiting += self.bump;
        Ok(Some(engine))
    }

    /// The next broadcast will know.
    fn finished(&mut self, _: u64, _: usize) {}

    /// The bumps for requests that no engine has reported yet are lost here.
    fn broadcast(&mut self, stats: &[Stats]) -> Result<(), Error> {
        self.copy.copy_from_slice(stats);
        Ok(())
    }
}
