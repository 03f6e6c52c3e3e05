//! Threads that wait, each for its own request.
//!
//! One of them, the *leader*, sleeps on the word in the table by which other processes wake it; the others sleep on
//! words of their own until the leader, or another thread that looks, has an outcome for them. When the leader leaves,
//! the thread of the request that comes next takes its place. The thread of the tasks sleeps on the word in the table, too,
//! so a wake-up wakes both: the one of them may be about to leave, and not look.

use super::waiter::{Sleeper, Waiter, handed_out};
use super::waiters::{LOOK, State, Waiters, check_process};
use crate::algorithm::record::waited::Unserved;
use crate::error::AcquireError;
use crate::frontend::Batch;
use crate::shm::{clock, futex};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

impl Waiters {
    /// Waits until the request has an outcome, its time is over, or `go_on` says no.
    pub(super) fn wait(
        &self,
        waiter: Waiter,
        mut go_on: impl FnMut() -> bool,
    ) -> Result<Batch, AcquireError> {
        let membership = waiter.frontend.membership();
        check_process(membership)?;
        let (table, slot) = (membership.table().clone(), membership.slot());
        let waiter = Arc::new(waiter);
        let mut state = self.lock();
        state.enter(&waiter)?;
        let waits = Waits {
            waiters: self,
            waiter: &waiter,
        };
        let mut has_slept = false;
        loop {
            if let Some(outcome) = waiter.take_outcome() {
                Self::release(state);
                return handed_out(outcome);
            }
            let now = clock::now();
            if waiter.is_late(now) {
                state.give_up(&waiter, Unserved::TimedOut);
                Self::release(state);
                let waited = waiter.waited(now);
                return Err(AcquireError::WaitedTooLong { waited });
            }
            let left = Duration::from_nanos(waiter.deadline - now);
            let goes_on = if *state.leader.get_or_insert(waiter.number) == waiter.number {
                let rest = state.serve(waiter.frontend.membership(), false);
                if waiter.has_outcome() {
                    continue;
                }
                state.leader_sleeps = true;
                Self::release(state);
                // After the look, so that an answer that takes long keeps no place idle that is free.
                let goes_on = !has_slept || go_on();
                if goes_on && (!has_slept || self.lock().still_leads(waiter.number)) {
                    let word = table.queue().heads[slot].wake();
                    futex::sleep(word, rest.seen, rest.pause.min(left));
                }
                goes_on
            } else {
                state = waiter.sleep(state, LOOK.min(left));
                state.depose_the_busy();
                if waiter.has_outcome() || state.leader.is_none() {
                    continue;
                }
                Self::release(state);
                go_on()
            };
            has_slept = true;
            if !goes_on {
                // Leaves the queue, or hands on the place that it has got meanwhile.
                drop(waits);
                return Err(AcquireError::Cancelled);
            }
            state = self.lock();
            if state.leader == Some(waiter.number) {
                state.leader_sleeps = false;
            }
        }
    }
}

impl Waiter {
    /// Sleeps until the request has an outcome, or its thread is to be the leader.
    fn sleep<'a>(&self, state: MutexGuard<'a, State>, time: Duration) -> MutexGuard<'a, State> {
        match &self.sleeper {
            Sleeper::Thread(condvar) => {
                let woken = condvar.wait_timeout(state, time);
                woken.unwrap_or_else(PoisonError::into_inner).0
            }
            Sleeper::Task(_) => state,
        }
    }
}

/// A thread in `wait`. However it leaves, nothing of its request stays in the queue, and another thread leads.
struct Waits<'a> {
    waiters: &'a Waiters,
    waiter: &'a Arc<Waiter>,
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        let mut state = self.waiters.lock();
        let is_left = !state.give_up(self.waiter, Unserved::Cancelled);
        state.hand_on(self.waiter.number);
        Waiters::release(state);
        if is_left {
            // A place that the caller does not take goes to the next request.
            drop(self.waiter.take_outcome());
        }
    }
}
