//! Limits how long to wait for the next piece of a body.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};

/// A limit on each single wait. Only time spent waiting counts.
#[derive(Debug)]
pub(crate) struct IdleTimeout {
    limit: Duration,
    /// `None` before the first wait.
    end: Option<Pin<Box<Sleep>>>,
    waiting: bool,
}

impl IdleTimeout {
    pub(crate) fn new(limit: Duration) -> Self {
        Self {
            limit,
            end: None,
            waiting: false,
        }
    }

    pub(crate) fn limit(&self) -> Duration {
        self.limit
    }

    /// Passes on what was polled. Returns `Ready(None)` if nothing came for too long.
    pub(crate) fn watch<T>(&mut self, found: Poll<T>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.watch_within(self.limit, found, cx)
    }

    fn watch_within<T>(
        &mut self,
        limit: Duration,
        found: Poll<T>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<T>> {
        if let Poll::Ready(found) = found {
            self.waiting = false;
            return Poll::Ready(Some(found));
        }
        let end = (self.end).get_or_insert_with(|| Box::pin(sleep(limit)));
        if !self.waiting {
            self.waiting = true;
            end.as_mut().reset(Instant::now() + limit);
        }
        end.as_mut().poll(cx).map(|()| None)
    }
}

/// A limit on all waits together.
#[derive(Debug)]
pub(crate) struct WaitBudget {
    timeout: IdleTimeout,
    waited: WaitedTime,
}

/// The total time of all waits so far, readable from elsewhere.
#[derive(Clone, Debug, Default)]
pub(crate) struct WaitedTime(Arc<Mutex<(Duration, Option<Instant>)>>);

impl WaitBudget {
    pub(crate) fn new(limit: Duration) -> Self {
        Self {
            timeout: IdleTimeout::new(limit),
            waited: WaitedTime::default(),
        }
    }

    pub(crate) fn limit(&self) -> Duration {
        self.timeout.limit
    }

    pub(crate) fn waited(&self) -> WaitedTime {
        self.waited.clone()
    }

    /// As [`IdleTimeout::watch`].
    pub(crate) fn watch<T>(&mut self, found: Poll<T>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let left = self.limit().saturating_sub(self.waited.so_far());
        self.waited.set(found.is_pending());
        self.timeout.watch_within(left, found, cx)
    }
}

impl WaitedTime {
    pub(crate) fn so_far(&self) -> Duration {
        let (before, since) = *self.lock();
        before + since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    fn set(&self, waits: bool) {
        if waits {
            self.begin(Instant::now());
        } else {
            self.end();
        }
    }

    /// Notes that it has waited since then, unless it waits already.
    pub(crate) fn begin(&self, start: Instant) {
        let (_, since) = &mut *self.lock();
        since.get_or_insert(start);
    }

    /// Notes that it waits no longer.
    pub(crate) fn end(&self) {
        let (before, since) = &mut *self.lock();
        if let Some(start) = since.take() {
            *before += start.elapsed();
        }
    }

    fn lock(&self) -> MutexGuard<'_, (Duration, Option<Instant>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
