//! When requests are due.

use std::time::{Duration, Instant};

/// Waits until `due`, and returns a time that is not before it.
///
/// Who has a core for himself watches the clock at the end; others give the core away.
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

/// What one look at the clock takes, in nanoseconds; each figure contains about one.
pub(crate) fn cost_of_the_clock() -> f64 {
    const LOOKS: u32 = 100_000;
    let start = Instant::now();
    for _ in 0..LOOKS {
        std::hint::black_box(Instant::now());
    }
    start.elapsed().as_nanos() as f64 / f64::from(LOOKS)
}
