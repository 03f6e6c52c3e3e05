//! How long to wait for the next piece of a body.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};

/// A limit on each wait, of which only time spent waiting counts.
#[derive(Debug)]
pub(crate) struct Patience {
    limit: Duration,
    end: Pin<Box<Sleep>>,
    waiting: bool,
}

impl Patience {
    pub(crate) fn new(limit: Duration) -> Self {
        Self {
            limit,
            end: Box::pin(sleep(limit)),
            waiting: false,
        }
    }

    pub(crate) fn limit(&self) -> Duration {
        self.limit
    }

    /// Passes on what was found; `Ready(None)` if there was nothing for too long.
    pub(crate) fn watch<T>(&mut self, found: Poll<T>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        if let Poll::Ready(found) = found {
            self.waiting = false;
            return Poll::Ready(Some(found));
        }
        if !self.waiting {
            self.waiting = true;
            self.end.as_mut().reset(Instant::now() + self.limit);
        }
        self.end.as_mut().poll(cx).map(|()| None)
    }
}
