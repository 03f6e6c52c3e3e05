//! Which thread a lane belongs to, so that its owner enters it without a locked instruction.
//!
//! A thread takes a *key* at its first use of any table and gives it back when it ends. The key is the
//! number of a thread slot and the slot's generation, so no two threads ever have the same. A thread
//! claims a lane of a frontend by writing its key into the lane's owner word; it does so at its first use of that
//! frontend, whatever other frontends, other tables or the parent of a fork have given to threads.
//!
//! A thread that ends does not visit its lanes: their frontends may be gone by then. It only moves its
//! slot's generation on, and a thread that needs a lane takes one whose owner's generation has passed. What
//! the old owner wrote with plain stores is handed over by that generation: Release when the thread
//! ends, Acquire when another finds that it has.

use crate::algorithm::primitive::{AtomicU64, Ordering};

const SLOT_BITS: u32 = 12;

/// How many threads can have a key at once: as many as a table can have lanes, and one.
pub(crate) const THREAD_SLOTS: usize = 1 << SLOT_BITS;

/// A living thread: generation 52, odd | slot 12.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ThreadKey(u64);

impl ThreadKey {
    /// Of a thread that has not asked yet.
    pub(crate) const UNKNOWN: Self = Self(u64::MAX);
    /// Of a thread that has no slot: there was none left, or it is ending. It owns no lane.
    pub(crate) const NONE: Self = Self(u64::MAX - THREAD_SLOTS as u64);

    fn new(slot: usize, generation: u64) -> Self {
        Self((generation << SLOT_BITS) | slot as u64)
    }

    /// The thread's slot; some slot for a thread that has none.
    #[inline]
    pub(crate) fn slot(self) -> usize {
        (self.0 % THREAD_SLOTS as u64) as usize
    }

    fn generation(self) -> u64 {
        self.0 >> SLOT_BITS
    }
}

/// A slot for a thread: its generation, odd while a living thread has the slot.
#[derive(Debug)]
pub(crate) struct ThreadSlot(pub(crate) AtomicU64);

/// The threads of this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Threads<'a> {
    pub(crate) slots: &'a [ThreadSlot],
    /// How many threads with a key have ended.
    pub(crate) ended: &'a AtomicU64,
}

impl Threads<'_> {
    /// A key for a thread that has none. `None`: all slots are taken.
    pub(crate) fn begin(&self) -> Option<ThreadKey> {
        self.slots.iter().enumerate().find_map(|(slot, threads)| {
            // Relaxed, both: the exchange decides whose the slot is. It hands nothing over; `claim`
            // acquires what belongs to a lane.
            let generation = threads.0.load(Ordering::Relaxed);
            let is_taken = generation % 2 == 1
                || (threads.0)
                    .compare_exchange(
                        generation,
                        generation + 1,
                        Ordering::Relaxed,
                        Ordering::Relaxed,
                    )
                    .is_err();
            (!is_taken).then(|| ThreadKey::new(slot, generation + 1))
        })
    }

    /// The calling thread, whose key this is, ends: it will not use the key again.
    pub(crate) fn end(&self, key: ThreadKey) {
        if key == ThreadKey::UNKNOWN || key == ThreadKey::NONE {
            return;
        }
        // Release: pairs with the Acquire in `has_ended`; who finds it moved on sees what this thread
        // did in its lanes.
        self.slots[key.slot()].0.fetch_add(1, Ordering::Release);
        // Release: pairs with the Acquire in `ended`; who sees this number sees the generation.
        self.ended.fetch_add(1, Ordering::Release);
    }

    /// How many threads have ended. Those that the number counts, [`claim`] finds to have ended.
    pub(crate) fn ended(&self) -> u64 {
        // Acquire: pairs with the Release in `end`.
        self.ended.load(Ordering::Acquire)
    }

    fn has_ended(&self, key: ThreadKey) -> bool {
        // Acquire: pairs with the Release in `end`. A generation before the key's is an old look at the
        // slot, from before that thread began.
        self.slots[key.slot()].0.load(Ordering::Acquire) > key.generation()
    }
}

/// Whose a lane is.
#[derive(Debug)]
pub(crate) struct Owner(AtomicU64);

/// No key: generation 0 is even.
const NO_THREAD: u64 = 0;

impl Owner {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(NO_THREAD))
    }

    /// Whether it is the calling thread's, whose key this is.
    #[inline]
    pub(crate) fn is(&self, me: ThreadKey) -> bool {
        // Relaxed: only this thread ever writes its key.
        self.0.load(Ordering::Relaxed) == me.0
    }

    /// Takes the lane for the calling thread, if it has no owner or one that has ended.
    fn claim(&self, me: ThreadKey, threads: Threads<'_>) -> bool {
        // Relaxed: `has_ended` orders us after the owner that we find here. If the lane has had
        // none, then it is as it was made.
        let before = self.0.load(Ordering::Relaxed);
        if before != NO_THREAD && !threads.has_ended(ThreadKey(before)) {
            return false;
        }
        // Relaxed, both: of two that claim it one finds the other's key. No key comes twice.
        self.0
            .compare_exchange(before, me.0, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }
}

/// Takes one of these lanes for the calling thread, which owns none of them. `None`: living threads
/// own them all.
pub(crate) fn claim<'a>(
    owners: impl IntoIterator<Item = &'a Owner>,
    me: ThreadKey,
    threads: Threads<'_>,
) -> Option<usize> {
    owners
        .into_iter()
        .position(|owner| owner.claim(me, threads))
}
