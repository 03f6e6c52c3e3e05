//! A process that has joined a table: where requests are routed and finished.

use crate::algorithm::place::Refusal;
use crate::algorithm::word::{Amount, LaneId};
use crate::choose::Chooser;
use crate::clock;
use crate::error::{Error, Result};
use crate::file::{Birth, LockFile};
use crate::permit::Permit;
use crate::policy::Policy;
use crate::request::Request;
use crate::table::Table;
use crate::turns::Turns;
use crossbeam_utils::{Backoff, CachePadded};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::time::Duration;

/// This process's place in a table, with the policy by which it routes.
///
/// Clones share the place and may be used from any thread at once; up to
/// [`lanes`](crate::Options::lanes) of them do not wait for each other, and more do for as long as an
/// operation takes, its preemption included. The place is given back when
/// the last clone and the last [`Permit`] are gone, or when the process dies, whatever it dies of.
///
/// A child that was forked with such a handle cannot use it: its calls answer [`Error::Forked`], and
/// dropping its copies of handles and permits changes nothing. [`Table::join`] in the child.
#[derive(Clone, Debug)]
pub struct Frontend {
    seat: Arc<Seat>,
    policy: Policy,
}

impl Table {
    /// Takes a place in the table for this process, after returning what dead frontends held.
    ///
    /// A few system calls; one more for each place that is taken.
    ///
    /// # Errors
    /// [`Error::FrontendsFull`], [`Error::ReadOnly`], [`Error::Io`], also if /proc is not mounted.
    pub fn join(&self) -> Result<Frontend> {
        Ok(Frontend {
            seat: Arc::new(Seat::take(self)?),
            policy: Policy::default(),
        })
    }
}

impl Frontend {
    /// The same place, routing by another policy.
    pub fn with_policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Places a request without tokens on the least loaded engine and counts it there, in one
    /// atomic step.
    ///
    /// No system call, no allocation, no wait for any other process. Two compare-and-swaps if nobody
    /// interferes (one of them private), and one look at each engine. Only if it finds everything at
    /// its cap, and at most a hundred times a second, does it look for dead frontends by system calls.
    ///
    /// Not for signal handlers: one that interrupts an operation on the frontend's last free lane would
    /// wait for what it has interrupted. The same goes for dropping a [`Permit`].
    ///
    /// # Errors
    /// [`Error::Saturated`], [`Error::Unavailable`], [`Error::Forked`].
    #[inline]
    pub fn route(&self) -> Result<Permit> {
        self.route_with(&Request::new())
    }

    /// Places a request that has a cost or a say in where it goes.
    ///
    /// # Errors
    /// As [`route`](Self::route), and [`Error::NoSuchEngine`] for one that is pinned.
    #[inline]
    pub fn route_with(&self, request: &Request<'_>) -> Result<Permit> {
        match self.place(request) {
            Err(Error::Saturated) if self.seat.reap_if_due() => self.place(request),
            result => result,
        }
    }

    /// Places `count` requests as that many calls of [`route`](Self::route) would, or none.
    ///
    /// If it turns out half-way that there is no room for the rest, those that were placed are
    /// finished; until then others may be told that the table is full.
    ///
    /// # Errors
    /// As [`route`](Self::route).
    pub fn route_many(&self, count: usize) -> Result<Vec<Permit>> {
        self.route_many_with(count, &Request::new())
    }

    /// Places `count` requests that are alike, or none.
    ///
    /// # Errors
    /// As [`route_with`](Self::route_with).
    pub fn route_many_with(&self, count: usize, request: &Request<'_>) -> Result<Vec<Permit>> {
        match self.place_all(count, request) {
            Err(Error::Saturated) if self.seat.reap_if_due() => self.place_all(count, request),
            result => result,
        }
    }

    /// The table that this is a place in.
    pub fn table(&self) -> &Table {
        &self.seat.table
    }

    /// Which of the table's places for frontends this is.
    pub fn slot(&self) -> usize {
        self.seat.slot
    }

    #[inline]
    fn place(&self, request: &Request<'_>) -> Result<Permit> {
        let lane = self.seat.lane()?;
        let engine = lane.place(&self.policy, request)?;
        Ok(Permit::new(Arc::clone(&self.seat), engine, request.tokens))
    }

    fn place_all(&self, count: usize, request: &Request<'_>) -> Result<Vec<Permit>> {
        if count == 0 {
            return self.seat.lane().map(|_| Vec::new());
        }
        // What cannot fit should not be tried, for trying takes places from others. What fits here
        // and not below was overtaken, and goes back as the permits are dropped.
        self.seat.lane()?.has_room(&self.policy, request, count)?;
        (0..count).map(|_| self.place(request)).collect()
    }
}

/// What the clones of a frontend and its permits share.
#[derive(Debug)]
pub(crate) struct Seat {
    table: Table,
    slot: usize,
    lanes: Box<[CachePadded<Lane>]>,
    /// Holding this is being alive.
    lock: LockFile,
    birth: Birth,
    /// When this process last reaped because it found no room.
    last_reap: AtomicU64,
}

/// A lane of this process: who uses it now, and whose turn it is.
#[derive(Debug)]
struct Lane {
    id: LaneId,
    busy: AtomicBool,
    turns: Turns,
}

impl Seat {
    fn take(table: &Table) -> Result<Self> {
        table.writable()?;
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
        let lanes = (0..geometry.lanes)
            .map(|lane| {
                CachePadded::new(Lane {
                    id: registry.lane(slot, lane),
                    busy: AtomicBool::new(false),
                    turns: Turns::new(geometry.max_engines, engines, number(lane)),
                })
            })
            .collect();
        Ok(Self {
            table: table.clone(),
            slot,
            lanes,
            lock,
            birth,
            last_reap: AtomicU64::new(0),
        })
    }

    /// Whether this process is the one that joined.
    pub(crate) fn is_ours(&self) -> bool {
        self.birth.is_here()
    }

    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    /// A lane for one operation of this thread.
    #[inline]
    pub(crate) fn lane(&self) -> Result<Operation<'_>> {
        if !self.birth.is_here() {
            return Err(Error::Forked);
        }
        let (behind, home) = self.lanes.split_at(home(self.lanes.len()));
        let backoff = Backoff::new();
        loop {
            for lane in home.iter().chain(behind) {
                // Acquire: pairs with the Release when an operation ends, so that we see the lane
                // as the thread before us left it.
                let free =
                    lane.busy
                        .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
                if free.is_ok() {
                    return Ok(Operation { seat: self, lane });
                }
            }
            // More threads of this process are in an operation than it has lanes. One of those may
            // have been preempted by this very thread, so in the end this sleeps.
            match backoff.is_completed() {
                true => std::thread::sleep(Duration::from_micros(50)),
                false => backoff.snooze(),
            }
        }
    }

    /// Reaps, unless this process did so a moment ago. True if that freed something.
    #[cold]
    fn reap_if_due(&self) -> bool {
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
        if self.is_ours() {
            // No permit is left, so nothing is counted for this slot. If the lock cannot be given
            // back here, closing its file does.
            let registry = self.table.mapping().registry();
            let _ = registry.leave(self.slot, &self.lock);
        }
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

/// The lane, of so many, that this thread tries first: another one for each thread, as far as there
/// are.
#[inline]
fn home(lanes: usize) -> usize {
    static THREADS: AtomicU16 = AtomicU16::new(0);
    thread_local! {
        static PLACE: Cell<Option<u16>> = const { Cell::new(None) };
    }
    let place = PLACE.with(|place| {
        place.get().unwrap_or_else(|| {
            // Relaxed: numbers need only differ. The multiplier is 2^16 over the golden ratio, so
            // numbers that follow each other are spread evenly over the range.
            let thread = THREADS.fetch_add(1, Ordering::Relaxed);
            let spread = thread.wrapping_mul(40_503);
            place.set(Some(spread));
            spread
        })
    });
    (usize::from(place) * lanes) >> 16
}

/// A lane while one operation runs in it.
#[derive(Debug)]
pub(crate) struct Operation<'a> {
    seat: &'a Seat,
    lane: &'a Lane,
}

impl Operation<'_> {
    /// Chooses an engine and counts a request on it.
    #[inline]
    fn place(&self, policy: &Policy, request: &Request<'_>) -> Result<usize> {
        let table = &self.seat.table;
        let chooser = Chooser::new(table, policy, request, &self.lane.turns);
        let placed = table.mapping().counter().place(
            self.lane.id,
            Amount::request(request.tokens),
            table.total(),
            || chooser.choose(),
        );
        match placed {
            Ok(engine) => {
                if chooser.was_tied() {
                    self.lane.turns.choose(engine);
                }
                Ok(engine)
            }
            Err(Refusal::AtTheTotal) => Err(Error::Saturated),
            Err(Refusal::Unchosen(no_choice)) => Err(chooser.explain(no_choice)),
        }
    }

    /// Takes a request off its engine.
    #[inline]
    pub(crate) fn finish(&self, engine: usize, tokens: u32) {
        let table = &self.seat.table;
        let counter = table.mapping().counter();
        counter.finish(self.lane.id, engine, Amount::request(tokens), table.total());
    }

    /// Fails if there is no room for `count` requests like this one, as of now.
    fn has_room(&self, policy: &Policy, request: &Request<'_>, count: usize) -> Result<()> {
        let table = &self.seat.table;
        let chooser = Chooser::new(table, policy, request, &self.lane.turns);
        let change = Amount::request(request.tokens);
        let counter = table.mapping().counter();
        let total = table.total().map(|total| total.room(counter, change));
        if chooser.room().min(total.unwrap_or(u64::MAX)) >= count as u64 {
            return Ok(());
        }
        // If even one has no place, it is the reason for that which counts.
        match chooser.choose() {
            Ok(_) => Err(Error::Saturated),
            Err(no_choice) => Err(chooser.explain(no_choice)),
        }
    }
}

impl Drop for Operation<'_> {
    #[inline]
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `Seat::lane`.
        self.lane.busy.store(false, Ordering::Release);
    }
}
