//! Random numbers. The seed is printed, so that a failure can be repeated.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A splitmix64 generator.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// Starts from `HEADCOUNT_TEST_SEED`, or from the time.
    pub fn seeded() -> Self {
        let seed = std::env::var("HEADCOUNT_TEST_SEED")
            .ok()
            .and_then(|seed| seed.parse().ok())
            .unwrap_or_else(|| {
                let since = SystemTime::now().duration_since(UNIX_EPOCH);
                since.map_or(1, |since| since.as_nanos() as u64)
            });
        println!("HEADCOUNT_TEST_SEED={seed}");
        Self(seed)
    }

    /// Starts from a number.
    pub fn from_seed(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    /// Sleeps for a random time below so many microseconds.
    pub fn pause(&mut self, microseconds: u64) {
        std::thread::sleep(Duration::from_micros(self.below(microseconds)));
    }
}
