//! The queue at one moment, for people and metrics.

use crate::algorithm::queue::order::CLASSES;
use crate::algorithm::record::waited::{BOUNDS, RANGES, Waited};
use crate::shm::clock;
use crate::table::Table;
use std::time::Duration;

/// The queue of a table; in a [`View`](crate::View).
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct QueueView {
    /// The most requests that wait, of all classes together.
    pub max_waiting: u32,
    /// Whether tenants share tokens, and not requests.
    pub share_tokens: bool,
    /// Each class, from the one that is served first.
    pub classes: [ClassView; CLASSES],
    /// How long the requests have waited that were served since the table was created.
    pub waited: WaitedView,
    /// How many requests were refused because the queue was full.
    pub refused_total: u64,
    /// How many gave up because their time was over.
    pub timed_out_total: u64,
    /// How many were given up by their callers, or found no engine any more.
    pub cancelled_total: u64,
}

/// A class of waiting requests; in a [`QueueView`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ClassView {
    /// How many wait.
    pub waiting: u32,
    /// The most that wait. `None`: no bound of its own.
    pub max_waiting: Option<u32>,
    /// For how long the oldest of those has waited that come first in their frontends, to the millisecond. `None`: none
    /// waits.
    pub oldest: Option<Duration>,
}

/// How long requests have waited that were served; in a [`QueueView`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct WaitedView {
    /// How many were served, by the ranges of [`BOUNDS`](Self::BOUNDS), and those above the last of these.
    pub by_range: [u64; RANGES],
    /// How long they have waited, added up.
    pub sum: Duration,
}

impl WaitedView {
    /// The upper bound of each range but the last, in milliseconds.
    pub const BOUNDS: [f64; RANGES - 1] = BOUNDS;

    /// Returns how many were served.
    pub fn count(&self) -> u64 {
        (self.by_range.iter()).fold(0, |sum, count| sum.wrapping_add(*count))
    }

    /// Returns the upper bound of the range that has the given share of them below or in it: 0.5 for the median. `None`:
    /// none was served, or it lies above the last bound.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let wanted = (self.count() as f64 * share).ceil().max(1.0);
        let mut below = 0.0;
        let range = self.by_range.iter().position(|count| {
            below += *count as f64;
            below >= wanted
        })?;
        BOUNDS
            .get(range)
            .map(|bound| Duration::from_secs_f64(bound / 1e3))
    }
}

impl Table {
    /// The queue as it is. `None`: the table has none, and no request waits.
    pub(super) fn queue_view(&self) -> Option<QueueView> {
        let queue = self.queue();
        let bounds = queue.bounds();
        if bounds.all == 0 && !queue.is_awaited() {
            return None;
        }
        let now = clock::now_coarse();
        let mut classes = [ClassView::default(); CLASSES];
        for (class, view) in classes.iter_mut().enumerate() {
            view.waiting = queue.waiting(class);
            view.max_waiting = Some(bounds.of_class[class]).filter(|bound| *bound > 0);
        }
        for (key, head) in queue.all_heads() {
            let oldest = &mut classes[key.tag.class()].oldest;
            let age = Duration::from_millis(head.size.age(now).into());
            *oldest = Some(oldest.map_or(age, |oldest| oldest.max(age)));
        }
        let waited = (self.mapping().waited().iter())
            .map(|slot| slot.totals())
            .fold(Waited::default(), |sum, slot| sum.plus(&slot));
        Some(QueueView {
            max_waiting: bounds.all,
            share_tokens: bounds.by_tokens,
            classes,
            waited: WaitedView {
                by_range: waited.served,
                sum: Duration::from_nanos(waited.waited),
            },
            refused_total: waited.refused,
            timed_out_total: waited.timed_out,
            cancelled_total: waited.cancelled,
        })
    }
}
