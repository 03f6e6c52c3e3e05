//! One clock for all processes of the host.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The monotonic clock's time. Unlike an `Instant` it means the same in every process, and can be
/// sent.
pub(crate) fn now() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    // Neither part of this clock is ever negative.
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}
