//! Waking frontends whose requests wait for what has just become free.

use crate::algorithm::queue::Queue;
use crate::shm::{Awaited, clock, futex};
use crate::table::Table;

impl Table {
    #[inline]
    pub(crate) fn queue(&self) -> Queue<'_> {
        self.mapping().queue()
    }

    pub(crate) fn awaited(&self) -> Awaited {
        Awaited::new(&self.file)
    }

    /// Wakes the frontend of the request that comes first on an engine which has just got room, if a request waits.
    #[cold]
    pub(crate) fn wake_for(&self, engine: usize) {
        let now = clock::now_coarse();
        if let Some(slot) = self.queue().next_for(engine, now) {
            self.wake_at(slot, now);
        }
    }

    /// Wakes the frontend of the first request that a place is free for, if there is one: a head was cleared, or places
    /// were returned. `but`: the slot of the caller's own frontend, which is told so in the place of being woken.
    pub(crate) fn wake_next(&self, but: Option<usize>) -> bool {
        let now = clock::now_coarse();
        let next = self.queue().next_after(now);
        let is_own = next.is_some() && next == but;
        if let Some(slot) = next.filter(|_| !is_own) {
            self.wake_at(slot, now);
        }
        is_own
    }

    /// Whether a place is free for a request of another frontend than that of slot `but`, which answers.
    pub(crate) fn has_place_for_others(&self, but: usize) -> bool {
        let next = self.queue().next_after(clock::now_coarse());
        next.is_some_and(|slot| slot != but)
    }

    /// Wakes all frontends that wait, but that of slot `but`, if a place is free for one of them that answers. The first one
    /// has been woken then, or is the next after one that was and has not answered. So all that do not answer are
    /// passed over together.
    pub(crate) fn wake_those_in_line(&self, but: usize) {
        if self.has_place_for_others(but) {
            self.wake_all(clock::now_coarse(), but);
        }
    }

    /// Wakes the next request after another one was placed, or refused, which did not wait.
    #[inline]
    pub(crate) fn wake_after_placing(&self) {
        if self.queue().was_in_the_way() {
            self.wake_next(None);
        }
    }

    /// Wakes all frontends that have waiting requests: engines have come, changed or gone.
    pub(crate) fn wake_waiting(&self) {
        if !self.queue().is_awaited_after() {
            return;
        }
        self.wake_all(clock::now_coarse(), usize::MAX);
    }

    fn wake_all(&self, now: u64, but: usize) {
        let mut last = but;
        for (key, _) in self.queue().all_heads() {
            if key.slot != last && key.slot != but {
                self.wake_at(key.slot, now);
            }
            last = key.slot;
        }
    }

    /// Wakes the threads of a frontend of this process, whatever others do.
    pub(crate) fn wake_own(&self, slot: usize) {
        let queue = self.queue();
        queue.ring(slot);
        futex::wake(queue.heads[slot].wake());
    }

    fn wake_at(&self, slot: usize, now: u64) {
        let queue = self.queue();
        if queue.note_wake(slot, now) {
            futex::wake(queue.heads[slot].wake());
        }
    }
}
