//! The lanes of a frontend, and which of this process's threads uses which.
//!
//! The first lanes belong to a thread each, which [claims](crate::algorithm::owner) one at its first use
//! of this frontend and then needs no lock for it. Threads that find none share the lanes that are left,
//! under a flag each.

use crate::algorithm::lane_cell::LaneCell;
use crate::algorithm::lifetime::{HandleCount, LaneUse, PermitCount};
use crate::algorithm::owner::{self, Owner, THREAD_SLOTS, ThreadKey};
use crate::algorithm::primitive::{AtomicU64, Ordering};
use crate::algorithm::word::LaneId;
use crate::frontend::choose::LaneMemory;
use crate::frontend::thread;
use crate::shm::layout::SHARED_LANES;
use crossbeam_utils::{Backoff, CachePadded};
use std::mem;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, compiler_fence};
use std::time::Duration;

/// The lanes of one frontend.
#[derive(Debug)]
pub(crate) struct Lanes {
    lanes: Box<[CachePadded<Lane>]>,
    /// How many of the lanes belong to a thread each.
    owned: usize,
    /// Where the thread in each slot may have its lane; the lane's owner says whether it has.
    lane_of: [AtomicU16; THREAD_SLOTS],
    /// How many threads had ended when living ones were last found to own all lanes.
    all_owned: AtomicU64,
}

/// A lane of this process: which thread uses it now, and what it remembers from choice to choice.
#[derive(Debug)]
pub(crate) struct Lane {
    id: LaneId,
    owner: Owner,
    usage: LaneUse,
    memory: LaneCell<LaneMemory>,
}

/// A lane while one operation runs in it.
#[derive(Debug)]
pub(crate) struct LaneGuard<'a>(&'a Lane);

impl Lane {
    pub(crate) fn new(id: LaneId, memory: LaneMemory) -> Self {
        Self {
            id,
            owner: Owner::new(),
            usage: LaneUse::new(),
            memory: LaneCell::new(memory),
        }
    }
}

impl<'a> LaneGuard<'a> {
    #[inline]
    pub(crate) fn id(&self) -> LaneId {
        self.0.id
    }

    /// Calls `act` with what the lane remembers. `act` begins no operation: it runs no code of the user's.
    #[inline(always)]
    pub(crate) fn with_memory<T>(&mut self, act: impl FnOnce(&mut LaneMemory) -> T) -> T {
        // SAFETY: this guard is that its thread has entered the lane, and is borrowed for the call.
        unsafe { self.0.memory.with(act) }
    }

    /// Counts a permit that was made in the operation.
    #[inline]
    pub(crate) fn add_permit(&self) -> PermitCount {
        self.0.usage.add_permit()
    }

    /// Takes back the count of a permit that ends in the operation. The caller has to
    /// [leave](LaneUse::leave) the lane that this returns, and to give the membership back if its last handle is
    /// gone as well.
    #[inline]
    pub(crate) fn end_permit(self, handles: &HandleCount) -> (NonNull<LaneUse>, bool) {
        let is_closed = self.0.usage.end_permit(handles);
        let usage = NonNull::from(&self.0.usage);
        mem::forget(self);
        (usage, is_closed)
    }
}

impl Drop for LaneGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.usage.leave();
    }
}

impl Lanes {
    /// These lanes, of which threads share the last one and can own the others.
    pub(crate) fn new(lanes: impl Iterator<Item = Lane>) -> Self {
        let lanes: Box<[_]> = lanes.map(CachePadded::new).collect();
        Self {
            owned: lanes.len().saturating_sub(SHARED_LANES),
            lanes,
            lane_of: [const { AtomicU16::new(0) }; THREAD_SLOTS],
            all_owned: AtomicU64::new(u64::MAX),
        }
    }

    /// The use of each lane.
    pub(crate) fn usage(&self) -> impl Iterator<Item = &LaneUse> + Clone {
        self.lanes.iter().map(|lane| &lane.usage)
    }

    /// Begins an operation of the calling thread. Waits if more threads are in one than there are lanes.
    #[inline]
    pub(crate) fn enter(&self) -> LaneGuard<'_> {
        if let Some(lane) = self.own_lane(thread::key())
            && let Some(lane) = enter_own(lane)
        {
            return lane;
        }
        self.enter_other()
    }

    /// The lane of the calling thread, whose key this is.
    #[inline]
    fn own_lane(&self, me: ThreadKey) -> Option<&Lane> {
        // Relaxed: what this thread wrote itself, or else its owner is another.
        let lane = self.lane_of[me.slot()].load(Ordering::Relaxed);
        (self.lanes.get(usize::from(lane)))
            .map(|lane| &**lane)
            .filter(|lane| lane.owner.is(me))
    }

    /// A lane for a thread that has none of its own yet, or that is in an operation in it.
    #[cold]
    fn enter_other(&self) -> LaneGuard<'_> {
        let me = thread::take_key();
        me.and_then(|me| self.claim_lane(me))
            .and_then(enter_own)
            .unwrap_or_else(|| self.enter_shared())
    }

    /// Makes a lane the calling thread's own, if it has none and there is one.
    fn claim_lane(&self, me: ThreadKey) -> Option<&Lane> {
        if self.own_lane(me).is_some() {
            return None;
        }
        let threads = thread::all();
        let ended = threads.ended();
        // Relaxed, here and below: a hint that spares us the look at each. A thread that ends after we
        // have read the number changes it.
        if self.all_owned.load(Ordering::Relaxed) == ended {
            return None;
        }
        let owners = self.lanes[..self.owned].iter().map(|lane| &lane.owner);
        let Some(lane) = owner::claim(owners, me, threads) else {
            self.all_owned.store(ended, Ordering::Relaxed);
            return None;
        };
        // Relaxed: for this thread only.
        self.lane_of[me.slot()].store(lane as u16, Ordering::Relaxed);
        Some(&self.lanes[lane])
    }

    /// The lane that threads share.
    fn enter_shared(&self) -> LaneGuard<'_> {
        let lane = &self.lanes[self.owned];
        let backoff = Backoff::new();
        while !lane.usage.enter_shared() {
            wait_a_little(&backoff);
        }
        LaneGuard(lane)
    }
}

/// Begins an operation in the calling thread's own lane, unless it is in one already.
#[inline]
fn enter_own(lane: &Lane) -> Option<LaneGuard<'_>> {
    if !lane.usage.enter_own() {
        return None;
    }
    // For a signal handler the operation may not begin before that.
    compiler_fence(Ordering::SeqCst);
    Some(LaneGuard(lane))
}

/// Waits for a thread of this process to end its operation. This very thread may have preempted it, so in
/// the end this sleeps.
pub(crate) fn wait_a_little(backoff: &Backoff) {
    match backoff.is_completed() {
        true => std::thread::sleep(Duration::from_micros(50)),
        false => backoff.snooze(),
    }
}
