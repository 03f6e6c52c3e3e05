//! The yardstick of a route: the least that an exact choice among engines costs.

use super::in_flight::InFlight;
use super::{MeasureError, Shared, Workload};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

/// One count for each engine, eight to a cache line.
///
/// A choice takes the least loaded engine, the first of them if there are several, and counts a request there in
/// the same atomic step. It knows no caps, states, weights or tokens, and what a killed process held stays counted.
#[derive(Debug)]
pub struct BareChoice {
    counts: Shared<AtomicU64>,
}

/// How many bits of a key are the engine's number. The others are its count.
const ENGINE_BITS: u32 = 12;

impl BareChoice {
    /// Creates the counts of up to 4,096 engines.
    ///
    /// # Errors
    ///
    /// A sentence, if the system refuses memory.
    pub fn new(engines: usize) -> Result<Self, MeasureError> {
        if engines == 0 || engines > 1 << ENGINE_BITS {
            return Err(MeasureError(format!("a bare choice among {engines}")));
        }
        Ok(Self {
            counts: Shared::new(engines, |_| AtomicU64::new(0))?,
        })
    }

    /// Returns a workload that chooses and finishes one request after the other.
    pub fn choose_and_finish(&self) -> Workload<'_> {
        let counts = &*self.counts;
        Box::new(move |times| {
            for _ in 0..times {
                let engine = choose(counts);
                finish(counts, black_box(engine));
            }
            Ok(())
        })
    }

    /// Returns a workload that keeps so many requests in flight: it chooses for one, and finishes one at random.
    pub fn choose_and_finish_another(&self, in_flight: usize) -> Workload<'_> {
        let counts = &*self.counts;
        let mut requests = InFlight::new((0..in_flight).map(|_| choose(counts)).collect());
        Box::new(move |times| {
            for _ in 0..times {
                let engine = choose(counts);
                finish(counts, requests.replace(black_box(engine)));
            }
            Ok(())
        })
    }
}

/// Chooses an engine and counts a request there.
#[inline(always)]
fn choose(counts: &[AtomicU64]) -> usize {
    loop {
        let least = least(counts);
        let (count, engine) = (least >> ENGINE_BITS, least as usize % (1 << ENGINE_BITS));
        // Relaxed, here and below: on x86-64 the order makes no difference, elsewhere this is the least.
        let (relaxed, word) = (Ordering::Relaxed, &counts[engine]);
        if (word.compare_exchange(count, count + 1, relaxed, relaxed)).is_ok() {
            return engine;
        }
    }
}

/// Finds the least key by the loop that one writes who wants an exact choice and nothing else.
#[inline(always)]
fn least(counts: &[AtomicU64]) -> u64 {
    let key =
        |(place, count): (u64, &AtomicU64)| count.load(Ordering::Relaxed) << ENGINE_BITS | place;
    (0..).zip(counts).map(key).fold(u64::MAX, u64::min)
}

#[inline(always)]
fn finish(counts: &[AtomicU64], engine: usize) {
    let (relaxed, word) = (Ordering::Relaxed, &counts[engine]);
    loop {
        let count = word.load(relaxed);
        if (word.compare_exchange(count, count - 1, relaxed, relaxed)).is_ok() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(choice: &BareChoice) -> Vec<u64> {
        let counts = choice.counts.iter();
        counts.map(|count| count.load(Ordering::Relaxed)).collect()
    }

    #[test]
    fn the_first_of_the_least_loaded_engines_is_chosen_at_every_size() {
        let mut random = fastrand::Rng::with_seed(3);
        for engines in (1..40).chain([64, 255, 256, 1 << ENGINE_BITS]) {
            let choice = BareChoice::new(engines).unwrap();
            for count in &*choice.counts {
                count.store(random.u64(5..9), Ordering::Relaxed);
            }
            for _ in 0..3 {
                let before = counts(&choice);
                let (expected, _) = (before.iter().enumerate())
                    .min_by_key(|(_, count)| **count)
                    .unwrap();
                // Looked at first, since a wrong one is tried for ever.
                let key = before[expected] << ENGINE_BITS | expected as u64;
                assert_eq!(least(&choice.counts), key, "of {before:?}");
                let chosen = choose(&choice.counts);
                assert_eq!(chosen, expected, "of {before:?}");
                let mut after = before;
                after[chosen] += 1;
                assert_eq!(counts(&choice), after);
            }
        }
    }

    #[test]
    fn workloads_leave_as_many_requests_as_they_keep_in_flight() {
        for engines in [8, 64] {
            let choice = BareChoice::new(engines).unwrap();
            choice.choose_and_finish()(100).unwrap();
            assert_eq!(counts(&choice), vec![0; engines]);
            choice.choose_and_finish_another(5 * engines)(1000).unwrap();
            assert_eq!(counts(&choice).iter().sum::<u64>(), 5 * engines as u64);
        }
        assert!(BareChoice::new(0).is_err() && BareChoice::new(4097).is_err());
    }
}
