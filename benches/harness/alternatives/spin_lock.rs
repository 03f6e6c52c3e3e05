//! A spin lock in shared memory. A process that dies with it blocks all others for ever.

use crossbeam_utils::Backoff;
use headcount_yardstick::Lock;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// Free or taken. Waiters read it before they try to take it, so that they do not pull the line to and fro.
#[derive(Debug)]
pub struct SpinLock(AtomicBool);

impl Lock for SpinLock {
    fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    fn prepare(&self) -> io::Result<()> {
        Ok(())
    }

    #[inline]
    fn lock(&self) -> io::Result<bool> {
        let backoff = Backoff::new();
        // Acquire: pairs with the Release in `unlock`.
        while self.0.swap(true, Ordering::Acquire) {
            // Relaxed: only a hint; the exchange orders what follows.
            while self.0.load(Ordering::Relaxed) {
                // Gives the core away in the end: the holder may have lost its own.
                backoff.snooze();
            }
        }
        Ok(false)
    }

    #[inline]
    fn unlock(&self) {
        // Release: pairs with the Acquire in `lock`.
        self.0.store(false, Ordering::Release);
    }
}
