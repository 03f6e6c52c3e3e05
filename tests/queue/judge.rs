//! The rules, by what the processes have written down.

use crate::PLACES;
use crate::history::{History, Wanted};
use std::fmt;
use std::time::Duration;

/// For how long a place may stay free while a request waits.
const MOST_IDLE: u64 = 100_000_000;
/// How much earlier one has to begin to wait than another, or to be served, so that the order is certain: a note is written
/// a moment before or after what it tells of.
const CERTAIN: u64 = 2_000_000;
/// A process that does not run for so long may be passed over.
const PASSED_OVER: u64 = 8_000_000;
/// How soon after a death its places are returned, of which the reaper looks every 50 ms.
const REAPED: u64 = 60_000_000;
/// How soon a process looks by itself that was passed over and goes on.
const LOOK: u64 = 60_000_000;

/// What was found.
pub(crate) struct Verdict {
    wanted: usize,
    served: usize,
    failed: usize,
    most_holders: i64,
    /// How long places stayed free while a request waited.
    idle: Vec<u64>,
    /// Of those that were too long, how many the waiting process itself was the reason of.
    idle_explained: usize,
    idle_too_long: Vec<String>,
    /// Pairs of requests of which the one was served before the other, and when it was.
    in_order: usize,
    uncertain: usize,
    past_stopped: usize,
    past_late: usize,
    past_unwoken: usize,
    out_of_order: Vec<String>,
}

impl Verdict {
    pub(crate) fn of(history: &History) -> Self {
        let mut verdict = Self {
            wanted: history.requests.len(),
            served: history
                .requests
                .iter()
                .filter(|r| r.holds.is_some())
                .count(),
            failed: history.failed,
            most_holders: 0,
            idle: Vec::new(),
            idle_explained: 0,
            idle_too_long: Vec::new(),
            in_order: 0,
            uncertain: 0,
            past_stopped: 0,
            past_late: 0,
            past_unwoken: 0,
            out_of_order: Vec::new(),
        };
        verdict.judge_places(history);
        verdict.judge_order(history);
        verdict
    }

    pub(crate) fn is_good(&self) -> bool {
        let passed = self.past_late + self.past_unwoken;
        let is_quick = self.idle_quantile(0.5) < CERTAIN;
        self.failed == 0
            && self.most_holders == i64::from(PLACES)
            && self.idle_too_long.is_empty()
            && self.out_of_order.is_empty()
            && passed * 10 < self.in_order
            && is_quick
    }

    fn idle_quantile(&self, share: f64) -> u64 {
        let at = ((self.idle.len() as f64 * share) as usize).min(self.idle.len().max(1) - 1);
        self.idle.get(at).copied().unwrap_or(0)
    }

    /// Goes through time: who holds a place, and who of the living waits.
    fn judge_places(&mut self, history: &History) {
        // When; holders and possible holders more or less; waiting ones more or less.
        let mut changes: Vec<(u64, i64, i64, i64)> = Vec::new();
        for request in &history.requests {
            let process = &history.processes[request.process];
            let until = request.waits_until();
            if let Some(holds) = request.holds {
                let comes_free = request.ends + u64::from(request.is_cut) * REAPED;
                changes.push((holds, 1, 1, 0));
                changes.push((request.ends, -1, 0, 0));
                changes.push((comes_free, 0, -1, 0));
            }
            changes.push((request.begins, 0, 0, 1));
            changes.push((until, 0, 0, -1));
            for &(from, to) in &process.stops {
                if from >= until || to <= request.begins {
                    continue;
                }
                let (from, to) = (from.max(request.begins), to.min(until));
                changes.push((from, 0, 0, -1));
                changes.push((to, 0, 0, 1));
                // It has its place right after it goes on, so it may have got that before it was stopped.
                let soon = to + 20_000_000 + process.lateness(to, until);
                if request.holds.is_some_and(|holds| holds < soon) {
                    changes.push((from, 0, 1, 0));
                    changes.push((until, 0, -1, 0));
                }
            }
        }
        // Ends before begins: at one moment a place goes from hand to hand.
        changes.sort_unstable();
        let (mut holders, mut possible, mut waiting) = (0, 0, 0);
        let mut idle_since = None;
        for (time, held, possibly_held, waits) in changes {
            holders += held;
            possible += possibly_held;
            waiting += waits;
            self.most_holders = self.most_holders.max(holders);
            let is_idle = possible < i64::from(PLACES) && waiting > 0;
            match (is_idle, idle_since) {
                (true, None) => idle_since = Some(time),
                (false, Some(since)) => {
                    idle_since = None;
                    self.note_idle(history, since, time);
                }
                _ => {}
            }
        }
        self.idle.sort_unstable();
    }

    fn note_idle(&mut self, history: &History, since: u64, until: u64) {
        let time = until - since;
        if time == 0 {
            return;
        }
        self.idle.push(time);
        if time <= MOST_IDLE {
            return;
        }
        // The one that frees a place may not run, nor the one that is woken for it.
        let late = history.lateness(since, until);
        match 2 * late + MOST_IDLE < time {
            true => self.idle_too_long.push(format!(
                "{:?}, while no thread did not run for longer than {:?}",
                Duration::from_nanos(time),
                Duration::from_nanos(late),
            )),
            false => self.idle_explained += 1,
        }
    }

    /// Looks at each request that was served while another one waited that comes first.
    fn judge_order(&mut self, history: &History) {
        let requests = &history.requests;
        for (index, first) in requests.iter().enumerate() {
            let waits_until = first.waits_until();
            let later = requests[index + 1..].iter();
            for other in later.take_while(|other| other.begins < waits_until) {
                let Some(holds) = other.holds else { continue };
                if other.class < first.class {
                    continue;
                }
                if holds >= waits_until {
                    self.in_order += 1;
                    continue;
                }
                self.judge_overtaking(history, first, other, holds);
            }
        }
    }

    /// `other` began to wait later, and was served first.
    fn judge_overtaking(&mut self, history: &History, first: &Wanted, other: &Wanted, holds: u64) {
        let process = &history.processes[first.process];
        let (from, to) = (first.begins, holds + CERTAIN);
        let lately = holds.saturating_sub(LOOK);
        // Of two threads of one process either may come to write its note first.
        let slow = process.lateness(from, first.waits_until());
        let certain = CERTAIN + slow;
        if other.begins < first.begins + certain || first.waits_until() < holds + certain {
            self.uncertain += 1;
        } else if process.is_stopped(from.max(lately), to) {
            self.past_stopped += 1;
        } else if process.lateness(lately, to) >= PASSED_OVER {
            self.past_late += 1;
        } else if history.is_any_held_up(lately, to, PASSED_OVER) {
            self.past_unwoken += 1;
        } else {
            let ms = |time: u64| (time as f64 - first.begins as f64) / 1e6;
            self.out_of_order.push(format!(
                "class {} of process {}, which waited for {:.1} ms; class {} of process {} began after {:.1} ms and was \
                 served after {:.1} ms; lateness {:.1} ms",
                first.class,
                first.process,
                ms(first.waits_until()),
                other.class,
                other.process,
                ms(other.begins),
                ms(holds),
                slow as f64 / 1e6,
            ));
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 10;
        let Self {
            wanted,
            served,
            failed,
            ..
        } = self;
        writeln!(
            f,
            "requests: {wanted}, {served} had a place, {failed} failed"
        )?;
        writeln!(f, "holders at one time: {} at most", self.most_holders)?;
        let [median, p99, most] = [0.5, 0.99, 1.0].map(|share| self.idle_quantile(share));
        writeln!(
            f,
            "a place was free while a request waited: {:?} at the median, {:?} in 99 of 100, {:?} at most; longer than \
             {:?}: {} explained, {} not",
            Duration::from_nanos(median),
            Duration::from_nanos(p99),
            Duration::from_nanos(most),
            Duration::from_nanos(MOST_IDLE),
            self.idle_explained,
            self.idle_too_long.len(),
        )?;
        for line in self.idle_too_long.iter().take(SHOWN) {
            writeln!(f, "  {line}")?;
        }
        write!(
            f,
            "order: {} pairs as they began; {} too close to tell, {} past a stopped one, {} past one that did not run, {} \
             past one that another may have noted as woken and not woken, {} for no reason",
            self.in_order,
            self.uncertain,
            self.past_stopped,
            self.past_late,
            self.past_unwoken,
            self.out_of_order.len(),
        )?;
        for line in self.out_of_order.iter().take(SHOWN) {
            write!(f, "\n  {line}")?;
        }
        Ok(())
    }
}
