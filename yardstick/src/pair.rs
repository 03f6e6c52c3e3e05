//! The yardsticks: the least that an exact shared count costs, and the least that a read of statistics costs.

use super::{MeasureError, Shared, Workload};
use crossbeam_utils::CachePadded;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

/// Creates a counter that has a cache line for itself.
///
/// # Errors
///
/// A sentence, if the system refuses memory.
pub fn shared_line() -> Result<Shared<CachePadded<AtomicU64>>, MeasureError> {
    Ok(Shared::new(1, |_| CachePadded::new(AtomicU64::new(0)))?)
}

/// Creates ten words: one for each of eight engines, and two that say whether they belong together.
///
/// # Errors
///
/// A sentence, if the system refuses memory.
pub fn shared_words() -> Result<Shared<[AtomicU64; 10]>, MeasureError> {
    Ok(Shared::new(1, |_| [const { AtomicU64::new(7) }; 10])?)
}

/// Returns a workload that adds one and subtracts one: the cheapest count that several processes can share.
pub fn bare_pair(line: &Shared<CachePadded<AtomicU64>>) -> Workload<'_> {
    let count: &AtomicU64 = &line[0];
    Box::new(move |times| {
        for _ in 0..times {
            // Relaxed: on x86-64 the order makes no difference, elsewhere this is the least.
            black_box(count).fetch_add(1, Ordering::Relaxed);
            black_box(count).fetch_sub(1, Ordering::Relaxed);
        }
        Ok(())
    })
}

/// Returns a workload of eight loads into memory of its own, and two more.
pub fn plain_loads(words: &Shared<[AtomicU64; 10]>) -> Workload<'_> {
    let words = &words[0];
    Box::new(move |times| {
        let mut seen = [0; 8];
        for _ in 0..times {
            // Relaxed: these are the plain loads.
            let before = black_box(words)[8].load(Ordering::Relaxed);
            for (to, word) in seen.iter_mut().zip(words) {
                *to = word.load(Ordering::Relaxed);
            }
            let after = words[9].load(Ordering::Relaxed);
            black_box((&mut seen, before == after));
        }
        Ok(())
    })
}
