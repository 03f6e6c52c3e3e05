//! When each request came, and when it got its place.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::cap::history::History;

/// Requests that come closer together than this, or get their places so, are not told apart: they go through different
/// processes.
const TOGETHER: Duration = Duration::from_millis(10);

/// A request that has its place within this time has not waited: it was on its way.
const ON_ITS_WAY: Duration = Duration::from_millis(2);

/// Times by the [clock](crate::clock), of each request by its id.
#[derive(Debug, Default)]
pub(super) struct Served {
    came: BTreeMap<u64, Duration>,
    placed: BTreeMap<u64, Duration>,
}

impl Served {
    /// A request has come; that it is sent again does not count.
    pub(super) fn came(&mut self, id: u64, at: Duration) {
        self.came.entry(id).or_insert(at);
    }

    pub(super) fn placed(&mut self, id: u64, at: Duration) {
        self.placed.entry(id).or_insert(at);
    }

    /// When each request came and got its place, in the order in which they came.
    pub(super) fn times(&self) -> Vec<(Duration, Duration)> {
        let both = |(id, came): (&u64, &Duration)| Some((*came, *self.placed.get(id)?));
        let mut times: Vec<_> = self.came.iter().filter_map(both).collect();
        times.sort_unstable();
        times
    }

    fn waits(&self) -> Vec<Duration> {
        let times = self.times().into_iter();
        let mut waits: Vec<_> = times
            .map(|(came, placed)| placed.saturating_sub(came))
            .collect();
        waits.sort_unstable();
        waits
    }

    pub(super) fn median(&self) -> Duration {
        let waits = self.waits();
        waits.get(waits.len() / 2).copied().unwrap_or_default()
    }

    pub(super) fn longest(&self) -> Duration {
        self.waits().last().copied().unwrap_or_default()
    }

    /// How many requests got their places after a request that had come after them.
    pub(super) fn overtaken(&self) -> usize {
        let times = self.times();
        let is_overtaken = |(came, placed): &&(Duration, Duration)| {
            let mut later = times.iter().rev();
            later
                .by_ref()
                .take_while(|(later, _)| *later >= *came + TOGETHER)
                .any(|(_, first)| *first + TOGETHER <= *placed)
        };
        times.iter().filter(is_overtaken).count()
    }

    /// How many requests waited after each change.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (Duration, i64)> {
        let has_waited = |(came, placed): &(Duration, Duration)| *placed >= *came + ON_ITS_WAY;
        let mut changes: Vec<_> = (self.times().into_iter())
            .filter(has_waited)
            .flat_map(|(came, placed)| [(came, 1), (placed.max(came), -1)])
            .collect();
        changes.sort_unstable();
        changes.into_iter().scan(0, |waiting, (at, change)| {
            *waiting += change;
            Some((at, *waiting))
        })
    }

    /// Which share of the places was free, on average over the time in which requests waited.
    pub(super) fn idle(&self, history: &History, places: i64) -> f64 {
        let waiting = self.waiting().map(|(at, waiting)| (at, 0, waiting));
        let in_flight = history.sums().map(|(at, sum)| (at, 1, sum));
        let mut changes: Vec<_> = waiting.chain(in_flight).collect();
        changes.sort_by_key(|(at, ..)| *at);
        let (mut last, mut now) = (Duration::ZERO, [0, 0]);
        let (mut free, mut all) = (0.0, 0.0);
        for (at, which, value) in changes {
            let [waiting, in_flight] = now;
            let seconds = at.saturating_sub(last).as_secs_f64();
            // As many as could have gone to a place.
            if waiting > 0 {
                free += seconds * (places - in_flight).clamp(0, waiting) as f64;
                all += seconds * places as f64;
            }
            now[which] = value;
            last = at;
        }
        if all > 0.0 { free / all } else { 0.0 }
    }
}
