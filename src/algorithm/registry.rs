//! The registry of frontends: slots, their lanes, and how these are freed when their frontend dies.
//!
//! A slot belongs to the process that holds its *lock*, and the kernel drops that lock with the
//! process. The lock also says what its holder is: the slot's *frontend*, or a *visitor*: a process that reaps
//! the slot, or has yet to read its word. A joiner takes the lock as a visitor and becomes the
//! frontend while the word still says vacant. So lock and word together leave no doubt:
//!
//! | lock | word | meaning |
//! |---|---|---|
//! | free | vacant | the slot has no frontend, and may be taken |
//! | a visitor's | vacant | a process is about to join, or has just reaped |
//! | a frontend's | vacant | its frontend joins or leaves |
//! | a frontend's | taken | its frontend lives |
//! | a visitor's | taken, reaping or not | its frontend died, and a reaper is at work, or will be when the visitor has looked |
//! | free | taken, reaping or not | its frontend died: to be reaped |
//!
//! Only the holder of the lock changes the word, so a reaper that dies leaves the last line again,
//! and a joiner that dies leaves the first or the last. Nothing else has to be cleaned up: a
//! ledger whose lanes add up to zero is as good as an empty one, and the lanes' operation numbers go
//! on where they were.

use super::counter::Counter;
use super::queue::Queue;
use super::record::heads::HeadsRecord;
use super::record::lane::REASONS;
use super::record::ledger::Ledger;
use super::record::slot::SlotRecord;
use super::word::{Amount, LaneId};

/// The kind of process that holds a slot's lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Holder {
    /// The slot's frontend.
    Frontend,
    /// A process that reaps the slot, or has yet to see whether it is free.
    Visitor,
}

/// The locks that say which frontends live: the kernel's in the table, a model's under loom.
pub(crate) trait Locks {
    /// Why the lock could not be asked for.
    type Error;

    /// Takes the lock of a slot as a visitor, if it is free. Says false if it is not.
    fn try_lock(&self, slot: usize) -> Result<bool, Self::Error>;

    /// Makes the visitor that holds the lock of a slot its frontend, without letting go of it.
    fn become_frontend(&self, slot: usize) -> Result<(), Self::Error>;

    /// The holder of the lock of a slot at this instant, if there is one.
    fn holder(&self, slot: usize) -> Result<Option<Holder>, Self::Error>;

    /// Gives the lock of a slot back.
    fn unlock(&self, slot: usize) -> Result<(), Self::Error>;
}

/// The frontends, requests and tokens that a reap has returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Returned {
    pub(crate) frontends: usize,
    pub(crate) requests: u64,
    pub(crate) tokens: u64,
    /// Requests that waited.
    pub(crate) waiting: u64,
}

/// The slots of a table and the lanes that belong to them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Registry<'a> {
    pub(crate) slots: &'a [SlotRecord],
    /// The lanes of slot s are `s * lanes_per_slot + 1 ..= (s + 1) * lanes_per_slot`.
    pub(crate) lanes_per_slot: usize,
    pub(crate) counter: Counter<'a>,
    /// The heads of each slot's waiting requests.
    pub(crate) heads: &'a [HeadsRecord],
}

impl Registry<'_> {
    /// The lane `index` of `slot`.
    pub(crate) fn lane(&self, slot: usize, index: usize) -> LaneId {
        LaneId((slot * self.lanes_per_slot + index + 1) as u16)
    }

    /// Takes the lock of a vacant slot, which the caller [enters](Self::enter) next. `None`: every slot
    /// has a frontend or a visitor.
    pub(crate) fn lock_vacant<L: Locks>(&self, locks: &L) -> Result<Option<usize>, L::Error> {
        for (index, slot) in self.slots.iter().enumerate() {
            if slot.word().is_taken() || !locks.try_lock(index)? {
                continue;
            }
            // With the lock in hand the word cannot change any more; look again.
            let word = slot.word();
            if !word.is_taken() {
                // Before the word says so: a taken slot that a visitor holds is a dead frontend's.
                if let Err(error) = locks.become_frontend(index) {
                    locks.unlock(index)?;
                    return Err(error);
                }
                return Ok(Some(index));
            }
            locks.unlock(index)?;
        }
        Ok(None)
    }

    /// Marks a slot as taken. The caller holds its lock as its frontend, and from here on the caller's death is a
    /// frontend's.
    pub(crate) fn enter(&self, index: usize) {
        let slot = &self.slots[index];
        slot.set(slot.word().taken());
    }

    /// Gives a slot back that the caller holds and on which nothing is counted any more. The caller
    /// lets go of its lock next.
    pub(crate) fn vacate(&self, index: usize) {
        let slot = &self.slots[index];
        slot.set(slot.word().vacant());
    }

    /// Returns what dead frontends held, and vacates their slots.
    pub(crate) fn reap<L: Locks>(&self, locks: &L) -> Result<Returned, L::Error> {
        let mut returned = Returned::default();
        for (index, slot) in self.slots.iter().enumerate() {
            if !slot.word().is_taken() || !locks.try_lock(index)? {
                continue;
            }
            // With the lock in hand the word cannot change any more; look again.
            let word = slot.word();
            if word.is_taken() {
                slot.set(word.reaping());
                self.empty(index, &mut returned);
                self.vacate(index);
                returned.frontends += 1;
            }
            locks.unlock(index)?;
        }
        Ok(returned)
    }

    /// Reaps, and then waits for other processes that are reaping. When this returns, no frontend that died before
    /// the call holds anything. Calls `pause` before each further look, and gives up when that says false.
    pub(crate) fn reap_to_the_end<L: Locks>(
        &self,
        locks: &L,
        mut pause: impl FnMut() -> bool,
    ) -> Result<(), L::Error> {
        loop {
            self.reap(locks)?;
            if !self.is_unsettled(locks)? || !pause() {
                return Ok(());
            }
        }
    }

    /// Whether a slot has a dead frontend. After a pass of `reap` that is one whose lock the pass
    /// found in a visitor's hands, or one that died since.
    fn is_unsettled<L: Locks>(&self, locks: &L) -> Result<bool, L::Error> {
        for slot in 0..self.slots.len() {
            if self.is_alive(slot, || locks.holder(slot))? == Some(false) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the frontend of a slot lives. `None`: the slot has none.
    pub(crate) fn is_alive<E>(
        &self,
        slot: usize,
        holder: impl Fn() -> Result<Option<Holder>, E>,
    ) -> Result<Option<bool>, E> {
        // Each further look takes a process that joins, leaves or reaps at that very instant.
        const LOOKS: usize = 100;
        let slot = &self.slots[slot];
        for _ in 0..LOOKS {
            let word = slot.word();
            if !word.is_taken() {
                return Ok(None);
            }
            let is_held = holder()? == Some(Holder::Frontend);
            // A word that is the same has been so all the while, for it counts the joins. If it is
            // not, the lock may have been that of the frontend after this one.
            if slot.word() == word {
                return Ok(Some(is_held));
            }
        }
        Ok(None)
    }

    /// Adds up the ledgers of a slot's lanes on a row.
    pub(crate) fn ledger(&self, slot: usize, row: usize) -> Ledger {
        (0..self.lanes_per_slot)
            .map(|lane| self.counter.ledger(self.lane(slot, lane), row))
            .fold(Ledger::default(), Ledger::plus)
    }

    /// Adds up the ledgers of all lanes on a row. Those of a slot that was never joined are empty.
    pub(crate) fn ledger_of_all(&self, row: usize) -> Ledger {
        (self.slots.iter().enumerate())
            .filter(|(_, slot)| slot.word().joins() > 0)
            .map(|(slot, _)| self.ledger(slot, row))
            .fold(Ledger::default(), Ledger::plus)
    }

    /// The calls that frontends of this table were refused, by reason.
    pub(crate) fn refusals(&self) -> [u64; REASONS] {
        let mut sum = [0_u64; REASONS];
        let slots = self.slots.iter().enumerate();
        for (slot, _) in slots.filter(|(_, slot)| slot.word().joins() > 0) {
            for lane in 0..self.lanes_per_slot {
                let refused = self.counter.refusals(self.lane(slot, lane));
                for (sum, refused) in sum.iter_mut().zip(refused) {
                    *sum = sum.wrapping_add(refused);
                }
            }
        }
        sum
    }

    /// Takes everything that a dead slot holds off the rows, *as that slot's first lane*: dying
    /// here is one more death of the same slot, and recovered in the same way.
    ///
    /// The table's own row comes after those of the engines: a request that was being placed keeps its place
    /// reserved until it is off its engine's row. The queue's come last: while a place is being returned, a request that
    /// waits for it is found.
    fn empty(&self, slot: usize, returned: &mut Returned) {
        // A table has heads for each slot; a model of counts has none.
        self.heads.get(slot).into_iter().for_each(Queue::clear_all);
        for lane in 0..self.lanes_per_slot {
            self.counter.recover(self.lane(slot, lane));
        }
        let (total_row, queue_row) = (self.counter.total_row, self.counter.queue_row);
        for row in self.counter.rows() {
            let ledger = self.ledger(slot, row);
            let held = Amount::new(ledger.requests(), ledger.tokens);
            if held == Amount::ZERO {
                continue;
            }
            self.counter.add(self.lane(slot, 0), row, held.negated());
            if row == queue_row {
                returned.waiting += held.requests().max(0) as u64;
            }
            if row < total_row {
                returned.requests += held.requests().max(0) as u64;
                returned.tokens += held.tokens().max(0) as u64;
            }
        }
    }
}
