//! The requests that the engines had in flight, from their own logs.

use std::collections::HashMap;
use std::time::Duration;

use crate::wire::{Change, Entry};

/// All changes, in the order of time.
#[derive(Debug)]
pub(crate) struct History {
    engines: usize,
    changes: Vec<(Duration, usize, i64)>,
}

impl History {
    /// A request of a frontend that was killed ends with it. Its engine learns of that when it ends a step; here
    /// whatever the engine noted of it later happened at the kill.
    pub(crate) fn new(logs: Vec<Vec<Entry>>, kills: &[Duration]) -> Self {
        let engines = logs.len();
        let mut changes = Vec::new();
        for (engine, log) in logs.into_iter().enumerate() {
            let deaths: HashMap<_, _> = log
                .iter()
                .filter(|entry| entry.change == Change::HungUp)
                .filter_map(|entry| {
                    let kill = kills.iter().rev().find(|kill| **kill <= entry.at)?;
                    Some((entry.from, *kill))
                })
                .collect();
            changes.extend(log.iter().filter_map(|entry| {
                let death = deaths.get(&entry.from).copied();
                let at = death.map_or(entry.at, |death| death.min(entry.at));
                match entry.change {
                    Change::Received => Some((at, engine, 1)),
                    Change::Finished | Change::Aborted => Some((at, engine, -1)),
                    Change::HungUp => None,
                }
            }));
        }
        changes.sort_by_key(|(at, ..)| *at);
        Self { engines, changes }
    }

    /// What all engines had after each change.
    pub(crate) fn sums(&self) -> impl Iterator<Item = (Duration, i64)> {
        self.changes.iter().scan(0, |sum, &(at, _, change)| {
            *sum += change;
            Some((at, *sum))
        })
    }

    pub(crate) fn most_on_an_engine(&self) -> i64 {
        let mut loads = vec![0; self.engines];
        let mut most = 0;
        for &(_, engine, change) in &self.changes {
            loads[engine] += change;
            most = most.max(loads[engine]);
        }
        most
    }

    /// The most that all engines had at once in this time.
    pub(crate) fn most_from(&self, start: Duration, end: Duration) -> i64 {
        let at_start = self.sums().take_while(|(at, _)| *at <= start).last();
        let during = self.sums().filter(|(at, _)| (start..=end).contains(at));
        let sums = at_start.into_iter().chain(during);
        sums.map(|(_, sum)| sum).max().unwrap_or(0)
    }
}

/// The corners of a line that steps to each value at its time, by seconds since `start`.
pub(crate) fn corners(
    steps: impl Iterator<Item = (Duration, i64)>,
    start: Duration,
    end: Duration,
) -> Vec<(f64, f64)> {
    let mut corners = vec![(0.0, 0.0)];
    let mut last = 0.0;
    for (at, value) in steps.take_while(|(at, _)| *at <= end) {
        let seconds = at.saturating_sub(start).as_secs_f64();
        corners.extend([(seconds, last), (seconds, value as f64)]);
        last = value as f64;
    }
    corners.push(((end - start).as_secs_f64(), last));
    corners
}
