//! The key of each living thread of this process, given back when the thread ends.
//!
//! See [`owner`](crate::algorithm::owner) for what a key is good for. No lock is taken here: a child
//! that was forked in the middle of anything could not wait for one. In such a child the slots of its
//! parent's other threads stay taken.

use crate::algorithm::owner::{THREAD_SLOTS, ThreadKey, ThreadSlot, Threads};
use crate::algorithm::primitive::AtomicU64;
use std::cell::Cell;

static SLOTS: [ThreadSlot; THREAD_SLOTS] = [const { ThreadSlot(AtomicU64::new(0)) }; THREAD_SLOTS];
static ENDED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static KEY: Cell<ThreadKey> = const { Cell::new(ThreadKey::UNKNOWN) };
    /// Gives the key back when the thread ends.
    static HELD: Held = const { Held };
}

struct Held;

/// The threads of this process.
pub(crate) fn all() -> Threads<'static> {
    Threads {
        slots: &SLOTS,
        ended: &ENDED,
    }
}

/// The key of this thread, as far as it has asked for one.
#[inline]
pub(crate) fn key() -> ThreadKey {
    KEY.get()
}

/// The key of this thread, taken now if it has not asked before. `None` if it has no slot.
#[cold]
pub(crate) fn take_key() -> Option<ThreadKey> {
    if KEY.get() == ThreadKey::UNKNOWN {
        // Without a destructor to give it back, as in another thread-local's destructor, none is taken.
        let key = HELD.try_with(|_| all().begin()).ok().flatten();
        KEY.set(key.unwrap_or(ThreadKey::NONE));
    }
    Some(KEY.get()).filter(|key| *key != ThreadKey::NONE)
}

impl Drop for Held {
    fn drop(&mut self) {
        // Destructors of other thread-locals may still end permits on this thread, without a key.
        all().end(KEY.replace(ThreadKey::NONE));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::primitive::Ordering;
    use std::sync::Barrier;
    use std::thread;

    #[test]
    fn c3_a_thread_that_has_given_its_key_back_has_none() {
        static SEEN: AtomicU64 = AtomicU64::new(0);
        struct Late;
        impl Drop for Late {
            fn drop(&mut self) {
                let has_none = take_key().is_none() && key() == ThreadKey::NONE;
                SEEN.store(1 + u64::from(has_none), Ordering::SeqCst);
            }
        }
        thread_local! {
            static LATE: Late = const { Late };
        }
        let ending = thread::spawn(|| {
            // Its destructor is registered before that of the key, and runs after it.
            LATE.with(|_| ());
            assert!(take_key().is_some());
        });
        ending.join().unwrap();
        assert_eq!(SEEN.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn living_threads_have_different_keys_and_ended_ones_give_their_slots_back() {
        let barrier = Barrier::new(8);
        for _ in 0..1000 {
            let mut keys: Vec<ThreadKey> = thread::scope(|scope| {
                let run = || {
                    let taken = take_key().unwrap();
                    barrier.wait();
                    assert_eq!(taken, key());
                    taken
                };
                let threads: Vec<_> = (0..8).map(|_| scope.spawn(run)).collect();
                threads.into_iter().map(|t| t.join().unwrap()).collect()
            });
            keys.sort_unstable_by_key(|key| key.slot());
            keys.dedup_by_key(|key| key.slot());
            assert_eq!(keys.len(), 8);
            // Other tests' threads have some, too.
            assert!(keys.iter().all(|key| key.slot() < 1000), "{keys:?}");
        }
    }
}
