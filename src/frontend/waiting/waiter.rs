//! One request that waits.

use crate::algorithm::queue::order::{EngineSet, Tag};
use crate::error::AcquireError;
use crate::frontend::{Batch, Frontend, Request};
use crate::shm::clock;
use crate::table::engine_id::EngineId;
use std::mem;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::task::Waker;
use std::thread;
use std::time::Duration;

/// One request that waits, for its caller and for all threads of its process that look for places.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) frontend: Frontend,
    request: OwnedRequest,
    /// How many such requests wait together, to be placed together.
    pub(super) count: usize,
    /// The engines that it may go to, as others see them.
    pub(super) engines: EngineSet,
    /// Its place in the order of this process, among equal tags.
    pub(super) number: u64,
    /// Nanoseconds of the monotonic clock, as the next.
    pub(super) since: u64,
    pub(super) deadline: u64,
    pub(super) sleeper: Sleeper,
    tag: AtomicU64,
    outcome: Mutex<Option<Outcome>>,
}

/// What has become of a request. `Err`: its custom policy has panicked, in the thread that looked for a place.
pub(super) type Outcome = thread::Result<Result<Batch, AcquireError>>;

/// Returns an outcome to the caller whose request it is, or goes on with the panic of the caller's own policy. The
/// lock of the waiters is free.
pub(super) fn handed_out(outcome: Outcome) -> Result<Batch, AcquireError> {
    outcome.unwrap_or_else(|panic| resume_unwind(panic))
}

/// A request that borrows nothing.
#[derive(Debug)]
pub(super) struct OwnedRequest {
    request: Request<'static>,
    excluded: Vec<EngineId>,
}

impl OwnedRequest {
    pub(super) fn of(request: &Request<'_>) -> Self {
        Self {
            request: Request {
                excluded: &[],
                ..*request
            },
            excluded: request.excluded.to_vec(),
        }
    }

    pub(super) fn with<T>(&self, act: impl FnOnce(&Request<'_>) -> T) -> T {
        act(&Request {
            excluded: &self.excluded,
            ..self.request
        })
    }
}

/// What sleeps until the request has its outcome.
#[derive(Debug)]
pub(super) enum Sleeper {
    /// A thread.
    Thread(Condvar),
    /// A task, which is polled.
    Task(Mutex<Waker>),
}

impl Sleeper {
    pub(super) fn thread() -> Self {
        Self::Thread(Condvar::new())
    }

    pub(super) fn is_task(&self) -> bool {
        matches!(self, Self::Task(_))
    }
}

impl Waiter {
    pub(super) fn new(
        frontend: &Frontend,
        count: usize,
        request: &Request<'_>,
        deadline: u64,
        sleeper: Sleeper,
    ) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self {
            frontend: frontend.clone(),
            engines: request.engine_set(frontend.table()),
            request: OwnedRequest::of(request),
            count,
            // Relaxed: only has to be another number each time.
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            since: clock::now(),
            deadline,
            sleeper,
            tag: AtomicU64::new(0),
            outcome: Mutex::new(None),
        }
    }

    pub(super) fn class(&self) -> usize {
        self.request.request.class.into()
    }

    pub(super) fn tokens(&self) -> u32 {
        self.request.request.tokens
    }

    pub(super) fn with_request<T>(&self, act: impl FnOnce(&Request<'_>) -> T) -> T {
        self.request.with(act)
    }

    /// Draws its tag.
    pub(super) fn draw(&self) {
        let Request { tenant, share, .. } = self.request.request;
        let queue = self.frontend.table().queue();
        // Requests that wait together cost their tenant as much as one by one.
        let weight = share as f32 / self.count as f32;
        let tag = queue.draw(self.class(), tenant, self.tokens(), weight);
        // Relaxed, and below: written and read under the lock of its process's waiters.
        (self.tag).store(bytemuck::cast(tag), Ordering::Relaxed);
    }

    pub(super) fn tag(&self) -> Tag {
        bytemuck::cast(self.tag.load(Ordering::Relaxed))
    }

    pub(super) fn is_late(&self, now: u64) -> bool {
        now >= self.deadline
    }

    /// For how long it has waited.
    pub(super) fn waited(&self, now: u64) -> Duration {
        Duration::from_nanos(now.saturating_sub(self.since))
    }

    pub(super) fn set_outcome(&self, outcome: Outcome) {
        *self.outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
    }

    pub(super) fn has_outcome(&self) -> bool {
        let outcome = self.outcome.lock();
        outcome.unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Whether the outcome wakes this waker's task.
    pub(super) fn will_wake(&self, waker: &Waker) -> bool {
        match &self.sleeper {
            Sleeper::Task(own) => {
                (own.lock().unwrap_or_else(PoisonError::into_inner)).will_wake(waker)
            }
            Sleeper::Thread(_) => false,
        }
    }

    /// Has the outcome wake this waker from now on, if a task waits. Returns the one before, to be dropped when no
    /// lock is held: that may run any code.
    pub(super) fn swap_waker(&self, waker: Waker) -> Waker {
        match &self.sleeper {
            Sleeper::Task(own) => mem::replace(
                &mut own.lock().unwrap_or_else(PoisonError::into_inner),
                waker,
            ),
            Sleeper::Thread(_) => waker,
        }
    }

    /// Takes the outcome, if there is one. It is taken once.
    pub(super) fn take_outcome(&self) -> Option<Outcome> {
        (self.outcome.lock().unwrap_or_else(PoisonError::into_inner)).take()
    }
}
