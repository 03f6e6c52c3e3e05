//! One look for places, by a frontend whose requests wait: the steps between which no wake-up may be lost.

use super::Queue;
use crate::algorithm::primitive::Ordering;

/// How long after a look for dead frontends none that waits has to look again, in nanoseconds.
const REAP_PAUSE: u64 = 20_000_000;

/// A frontend whose requests wait.
pub(crate) trait Looks {
    /// Gives one of its requests its outcome, and takes it out of the queue. False: there is none for any.
    fn serve_one(&mut self) -> bool;

    /// Wakes the frontend of [the next](Queue::next_after) that a place is free for. True, and nothing done, if that is
    /// this one.
    fn wake_next(&mut self) -> bool;
}

impl Queue<'_> {
    /// Looks for places for all requests of the frontend in `slot`, whose heads are published. `has_left`: a head of it
    /// was taken away before. Returns the word to sleep on: only while it has not changed.
    pub(crate) fn serve(&self, slot: usize, mut has_left: bool, frontend: &mut impl Looks) -> u64 {
        loop {
            // Before the look: a wake-up that comes after this keeps the frontend from sleeping.
            let seen = self.wake_word(slot);
            self.look_anew(slot);
            if frontend.serve_one() {
                has_left = true;
                continue;
            }
            // Each that leaves looks for the next. If that is one of ours, a place has just become free; or, if none
            // has left, another process is in our way, which wakes us when it is not any more.
            let left = core::mem::take(&mut has_left);
            let looks_for_next = left || self.was_in_the_way();
            let is_for_us = looks_for_next && frontend.wake_next();
            if !(is_for_us && left) {
                return seen;
            }
        }
    }

    /// Whether the caller may have kept a request from its place which waits now, while it was itself placed or refused.
    /// It has to [wake the next](Self::next_after) then.
    ///
    /// Under a cap of the table that is so: a request which is being placed counts on the table's row too, so there is
    /// more room once it is placed.
    #[inline]
    pub(crate) fn was_in_the_way(&self) -> bool {
        self.rows.hints().has_total_cap() && self.is_awaited_after()
    }

    /// Whether a frontend that waits, and has found no place, has to look for those that are dead or do not answer. They may
    /// be many, and who of them comes first does not matter: of all that wait one looks, and the pause is that of all.
    pub(crate) fn has_to_reap(&self, now: u64) -> bool {
        let word = &self.record.reaped_at;
        // Relaxed, all: a time, by which no other word is read.
        let last = word.load(Ordering::Relaxed);
        // A time that is yet to come is of the clock before a restart of the machine.
        now.wrapping_sub(last) >= REAP_PAUSE
            && (word.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed)).is_ok()
    }
}
