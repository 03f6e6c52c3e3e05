//! Tasks that wait, and the one thread that waits for all of them.

use super::waiter::{OwnedRequest, Sleeper, Waiter, handed_out};
use super::waiters::{LOOK, Rest, Waiters, check_process};
use crate::algorithm::record::waited::Unserved;
use crate::error::AcquireError;
use crate::frontend::{Batch, Frontend, Permit, Request};
use crate::shm::{clock, futex};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::thread;
use std::time::{Duration, Instant};

/// A request that gets a place; from [`Frontend::acquire_async`].
#[must_use = "a future does nothing until it is polled"]
#[derive(Debug)]
pub struct Acquire(Wait);

/// Requests that get places together; from [`Frontend::acquire_many_async`].
#[must_use = "a future does nothing until it is polled"]
#[derive(Debug)]
pub struct AcquireMany(Wait);

struct Wait {
    frontend: Frontend,
    /// How many requests wait together.
    count: usize,
    deadline: u64,
    progress: Progress,
}

enum Progress {
    New(OwnedRequest),
    Waits(Arc<Waiter>),
    Done,
}

impl fmt::Debug for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let progress = match self.progress {
            Progress::New(_) => "not polled yet",
            Progress::Waits(_) => "waits",
            Progress::Done => "done",
        };
        f.debug_struct("Wait")
            .field("frontend", &self.frontend)
            .field("progress", &progress)
            .finish_non_exhaustive()
    }
}

impl Acquire {
    pub(super) fn new(frontend: &Frontend, request: &Request<'_>, deadline: Instant) -> Self {
        Self(Wait::new(frontend, 1, request, deadline))
    }
}

impl AcquireMany {
    pub(super) fn new(
        frontend: &Frontend,
        count: usize,
        request: &Request<'_>,
        deadline: Instant,
    ) -> Self {
        Self(Wait::new(frontend, count, request, deadline))
    }
}

impl Future for Acquire {
    type Output = Result<Permit, AcquireError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll(context).map_ok(|batch| batch.first)
    }
}

impl Future for AcquireMany {
    type Output = Result<Vec<Permit>, AcquireError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let wait = &mut self.0;
        if let (0, Progress::New(request)) = (wait.count, &wait.progress) {
            let none = request.with(|request| wait.frontend.route_many_with(0, request));
            wait.progress = Progress::Done;
            return Poll::Ready(Ok(none?));
        }
        wait.poll(context).map_ok(Vec::from)
    }
}

impl Wait {
    fn new(frontend: &Frontend, count: usize, request: &Request<'_>, deadline: Instant) -> Self {
        let left = deadline.saturating_duration_since(Instant::now());
        Self {
            frontend: frontend.clone(),
            count,
            deadline: clock::now().saturating_add(clock::in_nanoseconds(left)),
            progress: Progress::New(OwnedRequest::of(request)),
        }
    }

    /// Polls it for the first time. `None`: the request waits.
    fn begin(
        &mut self,
        request: &OwnedRequest,
        context: &Context<'_>,
    ) -> Option<Result<Batch, AcquireError>> {
        let (frontend, count) = (&self.frontend, self.count);
        let is_late = clock::now() >= self.deadline;
        let at_once = request.with(|request| frontend.acquire_at_once(count, request, is_late));
        if at_once.is_some() {
            return at_once;
        }
        let sleeper = Sleeper::Task(Mutex::new(context.waker().clone()));
        let waiter =
            request.with(|request| Waiter::new(frontend, count, request, self.deadline, sleeper));
        let waiter = Arc::new(waiter);
        if let Err(error) = self.frontend.waiters().wait_as_task(&waiter) {
            return Some(Err(error));
        }
        let outcome = waiter.take_outcome();
        if outcome.is_none() {
            self.progress = Progress::Waits(waiter);
        }
        outcome.map(handed_out)
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Batch, AcquireError>> {
        let progress = std::mem::replace(&mut self.progress, Progress::Done);
        let outcome = match progress {
            Progress::New(request) => self.begin(&request, context),
            Progress::Waits(waiter) => {
                if let Err(error) = check_process(self.frontend.membership()) {
                    return Poll::Ready(Err(error.into()));
                }
                // Cloned before the lock is taken, and the former one dropped after it: either may run any code.
                let waker = context.waker();
                let mut changed = (!waiter.will_wake(waker)).then(|| waker.clone());
                // Under the lock, so that an outcome comes either before this look or after the new waker is there.
                let state = self.frontend.waiters().lock();
                let outcome = waiter.take_outcome();
                if outcome.is_none() {
                    changed = changed.map(|waker| waiter.swap_waker(waker));
                }
                drop(state);
                drop(changed);
                if outcome.is_none() {
                    self.progress = Progress::Waits(waiter);
                }
                outcome.map(handed_out)
            }
            Progress::Done => panic!("`Acquire` was polled after it was done"),
        };
        outcome.map_or(Poll::Pending, Poll::Ready)
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        let Progress::Waits(waiter) = &self.progress else {
            return;
        };
        if check_process(self.frontend.membership()).is_err() {
            return;
        }
        let mut state = self.frontend.waiters().lock();
        let is_left = !state.give_up(waiter, Unserved::Cancelled);
        Waiters::release(state);
        if is_left {
            // A place that the task does not take goes to the next request.
            drop(waiter.take_outcome());
        }
    }
}

impl Waiters {
    /// Has a task's request begin to wait.
    fn wait_as_task(self: &Arc<Self>, waiter: &Arc<Waiter>) -> Result<(), AcquireError> {
        let membership = waiter.frontend.membership();
        check_process(membership)?;
        let mut state = self.lock();
        if !state.has_thread {
            let waiters = Arc::clone(self);
            let thread = thread::Builder::new().name("headcount-wait".to_owned());
            let started = thread.spawn(move || waiters.wait_for_tasks());
            started.map_err(|error| AcquireError::NoThread {
                errno: error.raw_os_error().unwrap_or_default(),
            })?;
            state.has_thread = true;
        }
        state.enter(waiter)?;
        let (is_first, is_early) = (state.tasks == 1, waiter.deadline < state.looks_at);
        Self::release(state);
        if is_first {
            self.has_tasks.notify_one();
        }
        if is_early {
            // The thread sleeps longer than that, for this task or for one that has left.
            membership.table().wake_own(membership.slot());
        }
        Ok(())
    }

    /// Looks for places for as long as tasks wait, and sleeps while none does; until the frontend leaves.
    fn wait_for_tasks(self: Arc<Self>) {
        let mut state = self.lock();
        while !state.is_closed {
            let Some(task) = state.a_task().cloned() else {
                let woken = self.has_tasks.wait(state);
                state = woken.unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let membership = task.frontend.membership();
            // Of the frontend only its table is kept while this sleeps, so that it can leave meanwhile.
            let (table, slot) = (membership.table().clone(), membership.slot());
            let Rest { seen, pause } = state.serve(membership, false);
            let now = clock::now();
            let left = Duration::from_nanos(state.first_deadline.saturating_sub(now));
            let pause = if state.tasks == 0 {
                Duration::ZERO
            } else {
                pause.min(left).min(LOOK)
            };
            state.looks_at = now.saturating_add(clock::in_nanoseconds(pause));
            Self::release(state);
            drop(task);
            if !pause.is_zero() {
                futex::sleep(table.queue().heads[slot].wake(), seen, pause);
            }
            state = self.lock();
        }
        state.has_thread = false;
    }
}
