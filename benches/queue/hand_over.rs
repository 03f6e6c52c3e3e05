//! A place that goes to and fro between two processes, beside a futex that does.
//!
//! One process has the place, and the other one sleeps. The first finishes its request, and notes when it began to; the
//! other one notes when its `acquire` has returned. Then they change roles. The yardstick is the same with a word that is
//! stored, and a futex call that wakes.

use headcount::{Engine, Request, Table};
use headcount_yardstick::{MeasureError, Processes, Shared};
use rustix::thread::futex::{self, Flags};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Both, and how many times as long the place takes.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct HandOver {
    pub(crate) ours: Taken,
    pub(crate) bare: Taken,
    /// The median of the ratios of the rounds' medians.
    pub(crate) ratio: f64,
}

/// Nanoseconds from one process to the other.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Taken {
    pub(crate) median: f64,
    pub(crate) p99: f64,
}

/// How often the place or the word changes hands in a round.
const TIMES: u64 = 300;
/// For how long each process keeps it, so that the other one sleeps by then.
const HELD: u64 = 60_000;
const LONG: Duration = Duration::from_secs(20);

pub(crate) fn measure(rounds: usize) -> Result<HandOver, MeasureError> {
    let engine = Engine::named("a").max_in_flight(1);
    let table = Table::options().engine(engine).max_waiting(2).memfd()?;
    let sent_at = Shared::new(1, |_| AtomicU64::new(0))?;
    let word = Shared::new(1, |_| AtomicU32::new(0))?;
    let mut processes = Processes::start(2, |worker| {
        let (sent_at, word) = (&sent_at[0], &word[0]);
        let frontend = table.join()?;
        Ok(move |asked: &[u64]| {
            let is_first = worker.index == 0;
            let is_ours = asked == [1];
            let mut taken = Vec::with_capacity(TIMES as usize);
            let mut permit = None;
            if is_ours && is_first {
                permit = Some(frontend.route()?);
            }
            worker.gate.wait(worker.count)?;
            for turn in 0..TIMES {
                let has_it = turn.is_multiple_of(2) == is_first;
                match (is_ours, has_it) {
                    (true, true) => {
                        keep();
                        sent_at.store(now(), Ordering::Relaxed);
                        drop(permit.take());
                    }
                    (true, false) => {
                        let acquired = frontend.acquire(&Request::new(), LONG);
                        let at = now();
                        permit = Some(acquired.map_err(|error| MeasureError(error.to_string()))?);
                        taken.push(at - sent_at.load(Ordering::Relaxed));
                    }
                    (false, true) => {
                        keep();
                        sent_at.store(now(), Ordering::Relaxed);
                        // Release: pairs with the Acquire below, for the time that was noted.
                        word.fetch_add(1, Ordering::Release);
                        let _ = futex::wake(word, Flags::empty(), 1);
                    }
                    (false, false) => {
                        let before = turn as u32;
                        while word.load(Ordering::Acquire) == before {
                            let _ = futex::wait(word, Flags::empty(), before, None);
                        }
                        taken.push(now() - sent_at.load(Ordering::Relaxed));
                    }
                }
            }
            drop(permit);
            worker.gate.wait(worker.count)?;
            // Relaxed: both have passed the gate.
            word.store(0, Ordering::Relaxed);
            worker.gate.wait(worker.count)?;
            Ok(taken)
        })
    })?;
    let mut rounds_of = [Vec::new(), Vec::new()];
    let mut all = [Vec::new(), Vec::new()];
    for round in 0..rounds + 1 {
        for which in [0, 1] {
            let taken = processes.ask(&[which as u64])?.concat();
            if round > 0 {
                rounds_of[which].push(quantile(&mut taken.clone(), 0.5));
                all[which].extend(taken);
            }
        }
    }
    let [bare, ours] = all.map(|mut taken| Taken {
        median: quantile(&mut taken, 0.5),
        p99: quantile(&mut taken, 0.99),
    });
    let [bare_rounds, our_rounds] = rounds_of;
    let mut ratios: Vec<_> = (our_rounds.iter().zip(&bare_rounds))
        .map(|(ours, bare)| ours / bare)
        .collect();
    ratios.sort_by(f64::total_cmp);
    Ok(HandOver {
        ours,
        bare,
        ratio: ratios[ratios.len() / 2],
    })
}

/// Keeps the core busy while the other process falls asleep, so that this one does not.
fn keep() {
    let end = now() + HELD;
    while now() < end {
        std::hint::spin_loop();
    }
}

fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn quantile(taken: &mut [u64], share: f64) -> f64 {
    taken.sort_unstable();
    let at = ((taken.len() - 1) as f64 * share) as usize;
    taken[at] as f64
}
