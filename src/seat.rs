//! A process's place in a table: its slot, its lanes, and which of its threads uses which.
//!
//! The first lanes belong to a thread each, the one of the same [number](thread::number), which needs
//! no lock for its own. Threads beyond these share the lanes that are left, under a flag each.

use crate::algorithm::hold::{Handles, LaneHold, is_unheld};
use crate::algorithm::word::LaneId;
use crate::clock;
use crate::error::{Error, Result};
use crate::file::{Birth, LockFile};
use crate::handle;
use crate::operation::Operation;
use crate::table::Table;
use crate::thread;
use crate::turns::Turns;
use crossbeam_utils::{Backoff, CachePadded};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering, compiler_fence};
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
    /// Holding this is being alive.
    lock: LockFile,
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
        let lock = table.lock_file()?;
        let registry = table.mapping().registry();
        let slot = claim(table, &lock)?;
        let record = &registry.slots[slot];
        // Relaxed, both: for people only.
        (record.pid).store(std::process::id().into(), Ordering::Relaxed);
        record.since.store(clock::wall(), Ordering::Relaxed);
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
                    hold: LaneHold::new(),
                    turns: Turns::new(geometry.max_engines, engines, number(lane)),
                })
            })
            .collect();
        Ok(Self {
            handles: Handles::new(),
            table: table.clone(),
            slot,
            lanes,
            owned: geometry.lanes - geometry.lanes.div_ceil(4),
            lock,
            birth,
            last_reap: AtomicU64::new(0),
            next: AtomicPtr::new(ptr::null_mut()),
        })
    }

    /// Whether this process is the one that joined.
    pub(crate) fn is_ours(&self) -> bool {
        self.birth.is_here()
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
        let thread = thread::number();
        if thread < self.owned {
            let lane = &self.lanes[thread];
            if lane.hold.enter_own() {
                // For a signal handler the operation may not begin before that.
                compiler_fence(Ordering::SeqCst);
                return Some(Operation::new(self, lane));
            }
        }
        Some(self.enter_shared(thread))
    }

    /// One of the lanes that threads share.
    #[cold]
    fn enter_shared(&self, thread: usize) -> Operation<'_> {
        let shared = &self.lanes[self.owned..];
        // Another one first for each thread, as far as there are.
        let (behind, home) = shared.split_at(thread % shared.len());
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

    #[inline]
    pub(crate) fn handles(&self) -> &Handles {
        &self.handles
    }

    /// The last handle is gone: whoever ends a permit from here on looks whether it was the last.
    pub(crate) fn close(&self) {
        self.handles.close();
        // Whoever is ending one now may not have seen that.
        for lane in self.lanes.iter().filter(|_| self.is_ours()) {
            let backoff = Backoff::new();
            while lane.hold.is_busy() {
                wait_a_little(&backoff);
            }
        }
    }

    /// Whether nobody holds it any more, and whether this process is the one that joined.
    pub(crate) fn is_unheld(&self) -> (bool, bool) {
        let holds = self.lanes.iter().map(|lane| &lane.hold);
        (is_unheld(holds), self.is_ours())
    }

    /// The next in the list of seats without handles.
    pub(crate) fn next(&self) -> *mut Self {
        // Relaxed, here and below: only whoever has the seat in hand follows or sets it.
        self.next.load(Ordering::Relaxed)
    }

    pub(crate) fn set_next(&self, next: *mut Self) {
        self.next.store(next, Ordering::Relaxed);
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
        self.table.reap().is_ok_and(|reaped| reaped.frontends > 0)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        // No permit is left, so nothing is counted for this slot. If the lock cannot be given back
        // here, closing its file does.
        let registry = self.table.mapping().registry();
        let _ = registry.leave(self.slot, &self.lock);
    }
}

/// Waits for a thread of this process to end its operation. This very thread may have preempted it, so in
/// the end this sleeps.
fn wait_a_little(backoff: &Backoff) {
    match backoff.is_completed() {
        true => std::thread::sleep(Duration::from_micros(50)),
        false => backoff.snooze(),
    }
}

/// Takes a slot. Somebody who is just joining or reaping looks like its holder for some
/// microseconds, so a table that seems full is looked at again for a little while.
fn claim(table: &Table, lock: &LockFile) -> Result<usize> {
    const LOOKS: u32 = 20;
    for look in 0..LOOKS {
        if look > 0 {
            std::thread::sleep(std::time::Duration::from_millis(1));
            table.reap()?;
        }
        let slot =
            (table.mapping().registry().join(lock)).map_err(|e| table.failed("joining", e))?;
        if let Some(slot) = slot {
            return Ok(slot);
        }
    }
    Err(Error::FrontendsFull {
        max_frontends: table.header().geometry.max_frontends,
    })
}
