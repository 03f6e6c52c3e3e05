//! One process that sends requests when they are due.

use crate::pace::wait_until;
use hdrhistogram::Histogram;
use headcount::Frontend;
use headcount_yardstick::{MeasureError, Worker};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How many of its requests are in flight at a time.
const IN_FLIGHT: usize = 32;
const SECOND: u64 = 1_000_000_000;

pub(crate) struct Sender {
    frontend: Frontend,
    worker: Worker,
    own_core: bool,
}

/// Up to a minute, to three digits.
pub(crate) fn histogram() -> Result<Histogram<u64>, MeasureError> {
    Histogram::new_with_bounds(1, 60 * SECOND, 3)
        .map_err(|error| MeasureError(format!("no histogram: {error}")))
}

impl Sender {
    pub(crate) fn new(frontend: Frontend, worker: Worker) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        // A process that is pinned sees one.
        let own_core = cores == 1;
        Self {
            frontend,
            worker,
            own_core,
        }
    }

    /// Returns what to ask a sender for; no rate means flat out. Without `routes` it does nothing when a request is
    /// due, which shows the delays of the machine.
    pub(crate) fn question(rate: Option<u64>, milliseconds: u64, routes: bool) -> [u64; 3] {
        [rate.unwrap_or(0), milliseconds, routes.into()]
    }

    /// Sends requests, and answers how often each latency was seen: pairs of nanoseconds and a count.
    pub(crate) fn send(&self, asked: &[u64]) -> Result<Vec<u64>, MeasureError> {
        let &[rate, milliseconds, routes] = asked else {
            return Err(MeasureError(format!("not a question: {asked:?}")));
        };
        let mut seen = histogram()?;
        let length = Duration::from_millis(milliseconds);
        self.worker.gate.wait(self.worker.count)?;
        let mut in_flight = VecDeque::with_capacity(IN_FLIGHT + 1);
        let send = |due: Instant| -> Result<(), MeasureError> {
            let permit = match routes {
                0 => None,
                _ => Some(self.frontend.route()?),
            };
            seen.saturating_record((due.elapsed().as_nanos() as u64).max(1));
            in_flight.extend(permit);
            if in_flight.len() > IN_FLIGHT {
                in_flight.pop_front(); // which finishes it
            }
            Ok(())
        };
        match rate {
            0 => flat_out(length, send)?,
            rate => self.by_the_clock(rate, length, send)?,
        }
        let values = seen.iter_recorded();
        let pairs = values.flat_map(|v| [v.value_iterated_to(), v.count_at_value()]);
        Ok(pairs.collect())
    }

    fn by_the_clock(
        &self,
        rate: u64,
        length: Duration,
        mut send: impl FnMut(Instant) -> Result<(), MeasureError>,
    ) -> Result<(), MeasureError> {
        let start = Instant::now();
        // The requests of all processes are due at even distances; this process sends every `count`-th of them.
        let (index, count) = (self.worker.index as u64, self.worker.count as u64);
        for request in (index..).step_by(count as usize) {
            let due = Duration::from_nanos((request + count) * SECOND / rate);
            if due > length {
                break;
            }
            let due = start + due;
            wait_until(due, self.own_core);
            send(due)?;
        }
        Ok(())
    }
}

fn flat_out(
    length: Duration,
    mut send: impl FnMut(Instant) -> Result<(), MeasureError>,
) -> Result<(), MeasureError> {
    let start = Instant::now();
    loop {
        let now = Instant::now();
        if now - start > length {
            return Ok(());
        }
        send(now)?;
    }
}
