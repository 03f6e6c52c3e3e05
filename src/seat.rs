//! A process's place in a table: its slot, its lanes, and which of its threads uses which.
//!
//! The first lanes belong to a thread each, which [claims](crate::algorithm::owner) one at its first use
//! of this place and then needs no lock for it. Threads that find none share the lanes that are left,
//! under a flag each.

use crate::algorithm::hold::{Handles, LaneHold};
use crate::algorithm::owner::{self, Owner, THREAD_SLOTS, ThreadKey};
use crate::algorithm::retired::Held;
use crate::algorithm::word::LaneId;
use crate::clock;
use crate::error::{Error, Result};
use crate::file::{Birth, Kept, KeptLock};
use crate::handle;
use crate::operation::Operation;
use crate::primitive::{AtomicPtr, AtomicU64, Ordering};
use crate::table::Table;
use crate::thread;
use crate::turns::Turns;
use crossbeam_utils::{Backoff, CachePadded};
use std::os::fd::AsFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU16, compiler_fence};
use std::time::Duration;

/// What the clones of a frontend and its permits share.
#[derive(Debug)]
pub(crate) struct Seat {
    handles: Handles,
    table: Table,
    slot: usize,
    lanes: Box<[CachePadded<Lane>]>,
    /// How many of the lanes belong to a thread each.
    owned: usize,
    /// Where the thread in each slot may have its lane; the lane's owner says whether it has.
    lane_of: Box<[AtomicU16; THREAD_SLOTS]>,
    /// How many threads had ended when living ones were last found to own all lanes.
    all_owned: AtomicU64,
    /// Whose turn it is when a load is computed by the user's own code, outside of any lane. Threads that
    /// use it at once may miss each other's turns: that costs an engine a tie, now and then.
    turns: Turns,
    /// Holding this is being alive.
    _lock: KeptLock,
    birth: Birth,
    /// When this process last reaped because it found no room.
    last_reap: AtomicU64,
    /// The next in the list of seats without handles.
    next: AtomicPtr<Seat>,
}

/// A lane of this process: who uses it now, and whose turn it is.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) id: LaneId,
    owner: Owner,
    pub(crate) hold: LaneHold,
    pub(crate) turns: Turns,
}

impl Seat {
    pub(crate) fn take(table: &Table) -> Result<Self> {
        table.writable()?;
        handle::give_back();
        let failed = |e| table.failed("joining", e);
        let birth = Birth::here().map_err(failed)?;
        table.reap()?;
        let registry = table.mapping().registry();
        let (slot, lock) = claim(table)?;
        let record = &registry.slots[slot];
        // Relaxed, both: for people only.
        (record.pid).store(std::process::id().into(), Ordering::Relaxed);
        record.since.store(clock::wall(), Ordering::Relaxed);
        registry.enter(slot);
        // The first look at the clock makes a system call to find it; a route must not.
        clock::now_coarse();
        let geometry = &table.header().geometry;
        let engines = table.engines().in_use();
        // Another order of turns for each slot and each time that it is joined, one after the other,
        // and for each lane.
        let joined = record
            .word()
            .joins()
            .wrapping_sub(1)
            .wrapping_add(slot as u64);
        let number = |lane| joined.wrapping_add((lane * geometry.max_frontends) as u64);
        let lanes: Box<[_]> = (0..geometry.lanes)
            .map(|lane| {
                CachePadded::new(Lane {
                    id: registry.lane(slot, lane),
                    owner: Owner::new(),
                    hold: LaneHold::new(),
                    turns: Turns::new(geometry.max_engines, engines, number(lane)),
                })
            })
            .collect();
        let turns = Turns::new(geometry.max_engines, engines, number(geometry.lanes));
        Ok(Self {
            handles: Handles::new(),
            table: table.clone(),
            slot,
            lanes,
            owned: geometry.lanes - geometry.lanes.div_ceil(4),
            lane_of: Box::new([const { AtomicU16::new(0) }; THREAD_SLOTS]),
            all_owned: AtomicU64::new(u64::MAX),
            turns,
            _lock: lock,
            birth,
            last_reap: AtomicU64::new(0),
            next: AtomicPtr::new(ptr::null_mut()),
        })
    }

    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    pub(crate) fn slot(&self) -> usize {
        self.slot
    }

    /// A lane for one operation of this thread. `None` in a forked child.
    #[inline]
    pub(crate) fn enter(&self) -> Option<Operation<'_>> {
        if !self.birth.is_here() {
            return None;
        }
        if let Some(lane) = self.own_lane(thread::key())
            && let Some(operation) = self.enter_own(lane)
        {
            return Some(operation);
        }
        Some(self.enter_other())
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

    #[inline]
    fn enter_own<'a>(&'a self, lane: &'a Lane) -> Option<Operation<'a>> {
        if !lane.hold.enter_own() {
            return None;
        }
        // For a signal handler the operation may not begin before that.
        compiler_fence(Ordering::SeqCst);
        Some(Operation::new(self, lane))
    }

    /// A lane for a thread that has none of its own yet, or that is in an operation in it.
    #[cold]
    fn enter_other(&self) -> Operation<'_> {
        let me = thread::take_key();
        me.and_then(|me| self.claim_lane(me))
            .and_then(|lane| self.enter_own(lane))
            .unwrap_or_else(|| self.enter_shared(me.map_or(0, ThreadKey::slot)))
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

    /// One of the lanes that threads share.
    fn enter_shared(&self, first: usize) -> Operation<'_> {
        let shared = &self.lanes[self.owned..];
        // Another one first for each thread, as far as there are.
        let (behind, home) = shared.split_at(first % shared.len());
        let backoff = Backoff::new();
        loop {
            for lane in home.iter().chain(behind) {
                if lane.hold.enter_shared() {
                    return Operation::new(self, lane);
                }
            }
            // More threads of this process are in an operation than it has lanes.
            wait_a_little(&backoff);
        }
    }

    /// Whose turn it is when a load is computed by the user's own code.
    pub(crate) fn turns(&self) -> &Turns {
        &self.turns
    }

    /// Reaps, unless this process did so a moment ago. True if that freed something.
    #[cold]
    pub(crate) fn reap_if_due(&self) -> bool {
        const PAUSE: u64 = 10_000_000; // nanoseconds
        let now = clock::now_coarse();
        // Relaxed, both: two threads that reap at once do no harm.
        let last = self.last_reap.load(Ordering::Relaxed);
        if now.saturating_sub(last) < PAUSE {
            return false;
        }
        self.last_reap.store(now, Ordering::Relaxed);
        self.table.reap_unless_busy()
    }
}

impl Held for Seat {
    #[inline]
    fn handles(&self) -> &Handles {
        &self.handles
    }

    fn holds(&self) -> impl Iterator<Item = &LaneHold> + Clone {
        self.lanes.iter().map(|lane| &lane.hold)
    }

    fn next(&self) -> &AtomicPtr<Self> {
        &self.next
    }

    fn is_ours(&self) -> bool {
        self.birth.is_here()
    }

    unsafe fn take_apart(this: NonNull<Self>) {
        // SAFETY: made by `Handle::new`, and the caller says that nothing uses it any more.
        drop(unsafe { Box::from_raw(this.as_ptr()) });
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        // No permit is left, so nothing is counted for this slot. The lock goes next.
        let registry = self.table.mapping().registry();
        registry.vacate(self.slot);
    }
}

/// Waits for a thread of this process to end its operation. This very thread may have preempted it, so in
/// the end this sleeps.
pub(crate) fn wait_a_little(backoff: &Backoff) {
    match backoff.is_completed() {
        true => std::thread::sleep(Duration::from_micros(50)),
        false => backoff.snooze(),
    }
}

/// Takes a slot. Somebody who is just joining or reaping looks like its holder for some
/// microseconds, so a table that seems full is looked at again for a little while.
fn claim(table: &Table) -> Result<(usize, KeptLock)> {
    const LOOKS: u32 = 20;
    let registry = table.mapping().registry();
    for look in 0..LOOKS {
        if look > 0 {
            std::thread::sleep(std::time::Duration::from_millis(1));
            table.reap()?;
        }
        let kept = KeptLock::take(table.as_fd(), |lock| registry.lock_vacant(lock))
            .map_err(|e| table.failed("joining", e))?;
        // A child that was forked meanwhile may keep that slot locked. It stays vacant then, and no
        // process takes the child for its frontend.
        if let Some(Kept {
            what: slot,
            lock,
            is_shared: false,
        }) = kept
        {
            return Ok((slot, lock));
        }
    }
    Err(Error::FrontendsFull {
        max_frontends: table.header().geometry.max_frontends,
    })
}
