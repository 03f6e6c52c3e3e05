//! When requests are due.

use std::time::{Duration, Instant};

/// Waits until `due`, and returns a time that is not before it.
///
/// A process with a core of its own watches the clock at the end; any other yields the core.
pub(crate) fn wait_until(due: Instant, own_core: bool) {
    /// More than a sleep may be late.
    const SLACK: Duration = Duration::from_micros(150);
    loop {
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        if left > SLACK {
            std::thread::sleep(left - SLACK);
        } else if own_core {
            std::hint::spin_loop();
        } else {
            std::thread::yield_now();
        }
    }
}

/// Returns what it takes to read the clock once, in nanoseconds. Each figure contains about one read.
pub(crate) fn cost_of_the_clock() -> f64 {
    const READS: u32 = 100_000;
    let start = Instant::now();
    for _ in 0..READS {
        std::hint::black_box(Instant::now());
    }
    start.elapsed().as_nanos() as f64 / f64::from(READS)
}
