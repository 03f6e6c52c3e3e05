//! A small number for each living thread of this process, used again when the thread has ended.
//!
//! Whatever belongs to a number belongs to one thread at a time, so that thread needs no lock for it.
//! No lock is taken here either: a child that was forked in the middle of anything could not wait
//! for one. In such a child the numbers of its parent's other threads are never given out.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many threads can have a number at once.
const NUMBERS: usize = 1024;

/// A bit for each number that is taken.
static TAKEN: [AtomicU64; NUMBERS / 64] = [const { AtomicU64::new(0) }; NUMBERS / 64];

/// The thread has not asked yet.
const UNKNOWN: usize = usize::MAX;
/// There was none left, or the thread is ending.
const NONE: usize = usize::MAX - 1;

thread_local! {
    static NUMBER: Cell<usize> = const { Cell::new(UNKNOWN) };
    /// Gives the number back when the thread ends.
    static HELD: Held = const { Held };
}

struct Held;

/// The number of this thread. Very large if it has none: then it shares what others share.
#[inline]
pub(crate) fn number() -> usize {
    match NUMBER.get() {
        UNKNOWN => take(),
        number => number,
    }
}

#[cold]
fn take() -> usize {
    // Without a destructor to give it back, as in another thread-local's destructor, none is taken.
    let number = HELD.try_with(|_| first_free()).ok().flatten();
    NUMBER.set(number.unwrap_or(NONE));
    number.unwrap_or(NONE)
}

fn first_free() -> Option<usize> {
    for (at, taken) in TAKEN.iter().enumerate() {
        loop {
            // Relaxed: the change below decides.
            let free = taken.load(Ordering::Relaxed).trailing_ones();
            if free == u64::BITS {
                break;
            }
            // Acquire: pairs with the Release in `drop`, so that we see what belongs to the number
            // as its last thread left it.
            let before = taken.fetch_or(1 << free, Ordering::Acquire);
            if before & (1 << free) == 0 {
                return Some(at * 64 + free as usize);
            }
        }
    }
    None
}

impl Drop for Held {
    fn drop(&mut self) {
        let number = NUMBER.replace(NONE);
        if number < NUMBERS {
            // Release: pairs with the Acquire in `first_free`.
            TAKEN[number / 64].fetch_and(!(1 << (number % 64)), Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::thread;

    #[test]
    fn living_threads_have_different_numbers_and_ended_ones_give_theirs_back() {
        let barrier = Barrier::new(8);
        for _ in 0..200 {
            let mut numbers: Vec<usize> = thread::scope(|scope| {
                let run = || {
                    let number = number();
                    barrier.wait();
                    assert_eq!(number, super::number());
                    number
                };
                let threads: Vec<_> = (0..8).map(|_| scope.spawn(run)).collect();
                threads.into_iter().map(|t| t.join().unwrap()).collect()
            });
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), 8);
            // Other tests' threads have some, too.
            assert!(numbers.iter().all(|number| *number < 600), "{numbers:?}");
        }
    }
}
