//! When which request arrives. Always the same, so that every strategy faces the same.

use std::time::Duration;

use crate::options::Options;
use crate::roles::engine::STEP;
use crate::wire::Request;

/// A request, and when and where it comes in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival {
    /// From the start of the round.
    pub(crate) at: Duration,
    /// Modulo the frontends that live, the one that gets the connection.
    pub(crate) connection: u64,
    pub(crate) request: Request,
}

/// Prompt of a request of a burst: short enough that a full batch leaves half of the KV cache free,
/// so that bursts are about counts alone.
const BURST_TOKENS: u32 = 256;

/// How much longer than half as long again as the submission a request of a burst lives, so that
/// none finishes before the last has arrived, even on a busy machine.
const MARGIN: Duration = Duration::from_millis(500);

/// One burst: requests of one size, at random times within the window, over connections that are
/// spread over the frontends by chance, as a kernel does it that hashes their addresses.
pub(crate) fn burst(options: &Options, round: u32) -> Vec<Arrival> {
    let window = options.submit_window();
    let steps = (window * 3 / 2 + MARGIN)
        .as_micros()
        .div_ceil(STEP.as_micros()) as u32;
    let mut random = SplitMix(u64::from(round));
    let mut arrivals: Vec<_> = (0..u64::from(options.burst_size()))
        .map(|id| Arrival {
            at: window.mul_f64(random.fraction()),
            connection: random.next(),
            request: Request {
                id,
                tokens: BURST_TOKENS,
                steps,
            },
        })
        .collect();
    arrivals.sort_by_key(|arrival| arrival.at);
    arrivals
}

/// Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators (OOPSLA 2014).
#[derive(Debug)]
pub(crate) struct SplitMix(pub(crate) u64);

impl SplitMix {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to below 1.
    pub(crate) fn fraction(&mut self) -> f64 {
        // The 53 bits that a double holds.
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}
