//! How far the end of a worker has come, for everything in it that acts on that.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed}; // one thread has it
use tokio::sync::watch;

/// The state of a worker's end: none, announced, or so close that requests are cut.
#[derive(Debug)]
pub(crate) struct Ending {
    is_draining: AtomicBool,
    /// Whether requests in flight are cut.
    cuts: watch::Sender<bool>,
}

impl Ending {
    pub(crate) fn new() -> Self {
        Self {
            is_draining: AtomicBool::new(false),
            cuts: watch::Sender::new(false),
        }
    }

    /// Announces the end: clients and balancers send their next requests elsewhere.
    pub(crate) fn drain(&self) {
        self.is_draining.store(true, Relaxed);
    }

    /// Whether the end is announced or has begun.
    pub(crate) fn is_draining(&self) -> bool {
        self.is_draining.load(Relaxed)
    }

    /// Cuts all requests in flight.
    pub(crate) fn cut(&self) {
        self.cuts.send_replace(true);
    }

    /// Whether requests in flight are cut.
    pub(crate) fn is_cutting(&self) -> bool {
        *self.cuts.borrow()
    }

    /// Returns when requests in flight are to be cut.
    pub(crate) fn cuts(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut cuts = self.cuts.subscribe();
        async move { _ = cuts.wait_for(|cuts| *cuts).await }
    }
}
