//! A process's membership of a table: its slot, the lock that keeps it, and its lanes.

use crate::algorithm::lifetime::retired::Retire;
use crate::algorithm::lifetime::{HandleCount, LaneUse};
use crate::algorithm::primitive::{AtomicPtr, AtomicU64, Ordering};
use crate::algorithm::queue::Queue;
use crate::error::{Error, Result};
use crate::frontend::choose::LaneMemory;
use crate::frontend::choose::tie_break::LeastRecentlyChosen;
use crate::frontend::lanes::{Lane, LaneGuard, Lanes};
use crate::frontend::waiting::Waiters;
use crate::shm::clock;
use crate::shm::{Awaited, Kept, KeptLock, ProcessToken};
use crate::table::Table;
use std::os::fd::AsFd;
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// The part of a frontend that its clones and permits share.
#[derive(Debug)]
pub(crate) struct Membership {
    handles: HandleCount,
    table: Table,
    slot: usize,
    lanes: Lanes,
    /// Holding this is being alive.
    _lock: KeptLock,
    process: ProcessToken,
    /// Its requests that wait for a place.
    waiters: Arc<Waiters>,
    awaited: Awaited,
    /// When this process last reaped because it found no room.
    last_reap: AtomicU64,
    /// The next in the list of memberships without handles.
    next: AtomicPtr<Membership>,
}

impl Membership {
    /// Takes a slot of the table for this process.
    pub(crate) fn take(table: &Table) -> Result<Self> {
        let failed = |e| table.failed("joining", e);
        let process = ProcessToken::current().map_err(failed)?;
        table.reap()?;
        let registry = table.mapping().registry();
        let (slot, lock) = claim(table)?;
        let record = &registry.slots[slot];
        // Relaxed, both: for people only.
        (record.pid).store(std::process::id().into(), Ordering::Relaxed);
        record.since.store(clock::wall(), Ordering::Relaxed);
        Queue::clear_all(&registry.heads[slot]);
        registry.enter(slot);
        // The first look at the clock makes a system call to find it; a route must not.
        clock::now_coarse();
        let geometry = &table.header().geometry;
        let engines = table.engines().in_use();
        // Another order at ties for each slot and each time that it is joined, one after the other,
        // and for each lane.
        let joined = record
            .word()
            .joins()
            .wrapping_sub(1)
            .wrapping_add(slot as u64);
        let seed = |lane| joined.wrapping_add((lane * geometry.max_frontends) as u64);
        let max_engines = geometry.max_engines;
        let memory = |lane| {
            let tie_break = LeastRecentlyChosen::new(max_engines, engines, seed(lane));
            LaneMemory::new(max_engines, tie_break)
        };
        let lanes =
            (0..geometry.lanes).map(|lane| Lane::new(registry.lane(slot, lane), memory(lane)));
        Ok(Self {
            handles: HandleCount::new(),
            table: table.clone(),
            slot,
            lanes: Lanes::new(lanes),
            _lock: lock,
            process,
            waiters: Arc::default(),
            awaited: table.awaited(),
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

    /// Whether a request waits for a place, of whatever frontend.
    #[inline]
    pub(crate) fn awaited(&self) -> &Awaited {
        &self.awaited
    }

    pub(crate) fn waiters(&self) -> &Arc<Waiters> {
        &self.waiters
    }

    /// A lane for one operation of this thread. `None` in a forked child.
    #[inline]
    pub(crate) fn enter(&self) -> Option<LaneGuard<'_>> {
        (self.process.is_current()).then(|| self.lanes.enter())
    }

    /// Reaps, and wakes those that wait for a place which is free, unless this process did so a moment ago. True if that
    /// freed something.
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
        let has_freed = self.table.reap_unless_busy();
        self.table.wake_those_in_line(self.slot);
        has_freed
    }
}

impl Retire for Membership {
    #[inline]
    fn handles(&self) -> &HandleCount {
        &self.handles
    }

    fn lanes(&self) -> impl Iterator<Item = &LaneUse> + Clone {
        self.lanes.usage()
    }

    fn next(&self) -> &AtomicPtr<Self> {
        &self.next
    }

    fn is_ours(&self) -> bool {
        self.process.is_current()
    }

    // SAFETY: as the trait says; the membership was made by `MembershipRef::new`.
    unsafe fn take_apart(this: NonNull<Self>) {
        // SAFETY: made by `MembershipRef::new`, and the caller says that nothing uses it any more.
        drop(unsafe { Box::from_raw(this.as_ptr()) });
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.waiters.close();
        // No permit is left, and no request that waits, so nothing is counted for this slot. The lock goes next.
        let registry = self.table.mapping().registry();
        registry.vacate(self.slot);
    }
}

/// Takes a slot. A process that is just joining or reaping seems to hold a slot for some microseconds, so a table
/// that seems full is tried again for a little while.
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
