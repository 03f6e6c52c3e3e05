//! The yardsticks: what an exact shared count, and a look at statistics, cost at the very least.

use super::{Failed, Operation, Shared};
use crossbeam_utils::CachePadded;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

/// A counter that has its line for itself.
pub fn shared_line() -> Result<Shared<CachePadded<AtomicU64>>, Failed> {
    Ok(Shared::new(1, |_| CachePadded::new(AtomicU64::new(0)))?)
}

/// Ten words: one for each of eight engines, and two that say whether they belong together.
pub fn shared_words() -> Result<Shared<[AtomicU64; 10]>, Failed> {
    Ok(Shared::new(1, |_| [const { AtomicU64::new(7) }; 10])?)
}

/// One up, one down: the cheapest count that several processes can share.
pub fn bare_pair(line: &Shared<CachePadded<AtomicU64>>) -> Operation<'_> {
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

/// Eight loads into memory of one's own, and two more.
pub fn plain_loads(words: &Shared<[AtomicU64; 10]>) -> Operation<'_> {
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
