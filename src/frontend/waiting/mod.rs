//! Requests that wait for a place: [`Frontend::acquire`] and [`Frontend::acquire_async`].

mod blocking;
mod group;
mod task;
mod waiter;
mod waiters;

pub use task::{Acquire, AcquireMany};
pub(crate) use waiters::Waiters;

use crate::error::{AcquireError, RouteError};
use crate::frontend::{Batch, Frontend, Permit, Request};
use crate::shm::clock;
use std::time::{Duration, Instant};
use waiter::{Sleeper, Waiter};

impl Frontend {
    /// Places a request as [`route_with`](Self::route_with) does, and if there is no place for it, waits for one, for
    /// at most `timeout`. Blocks the thread.
    ///
    /// ```
    /// # fn main() -> Result<(), headcount::Error> {
    /// use headcount::{AcquireError, Engine, Request, Table};
    /// use std::time::Duration;
    /// let engine = Engine::named("a").max_in_flight(1);
    /// let table = Table::options().engine(engine).max_waiting(100).memfd()?;
    /// let frontend = table.join()?;
    /// let first = frontend.acquire(&Request::new(), Duration::from_secs(1)).unwrap();
    /// let second = frontend.acquire(&Request::new(), Duration::from_millis(10));
    /// assert!(matches!(second, Err(AcquireError::WaitedTooLong { .. })));
    /// drop(first);
    /// frontend.acquire(&Request::new(), Duration::from_secs(1)).unwrap();
    /// # Ok(()) }
    /// ```
    ///
    /// All processes of the table have one queue. Of the requests that may use a place, that of the smallest
    /// [class](Request::class) gets it, and within a class the one that began to wait first, or that of the
    /// [tenant](Request::tenant) whose turn it is. While a request waits, a later one gets no place that it could take. At
    /// most [`max_waiting`](crate::Options::max_waiting) requests wait.
    ///
    /// A timeout of zero tries once, and does not wait: it is [`AcquireError::WaitedTooLong`] without a place, whether the
    /// queue is full or there is none. The call may return some milliseconds after its time, and does not return before
    /// it without a place. If the engine that a request is pinned to is removed while it waits, or none of its engines takes
    /// requests any more (all are down, draining or removed), the call ends with that error at once.
    ///
    /// Costs as much as `route_with` if there is a place and no request waits. Otherwise a sleep of the thread, some
    /// microseconds of work at each end of it, and a look every 50 ms (10 ms for the second in line). A process that is
    /// stopped while it comes first is passed over after 10 ms and keeps its turn.
    ///
    /// A [custom policy](crate::Policy::custom) is called while other threads of this process that wait are held up, and
    /// by any of them. Its code must not call `acquire` itself. If it panics, the panic ends the call that has this policy.
    ///
    /// # Errors
    /// [`AcquireError`].
    pub fn acquire(
        &self,
        request: &Request<'_>,
        timeout: Duration,
    ) -> Result<Permit, AcquireError> {
        self.acquire_while(request, timeout, || true)
    }

    /// Does the same, for as long as `go_on` says so: it is asked when a signal handler has run in this thread, and
    /// every 50 ms, but not when there is a place. While it is asked, this thread gives no request of the frontend its
    /// place.
    ///
    /// # Errors
    /// [`AcquireError`]; [`AcquireError::Cancelled`] if `go_on` has said no.
    pub fn acquire_while(
        &self,
        request: &Request<'_>,
        timeout: Duration,
        go_on: impl FnMut() -> bool,
    ) -> Result<Permit, AcquireError> {
        let batch = self.acquire_batch(1, request, timeout, go_on)?;
        Ok(batch.first)
    }

    /// Places `count` requests that are alike, as [`route_many_with`](Self::route_many_with) does, and if there is no place
    /// for all of them, waits for that.
    ///
    /// ```
    /// # fn main() -> Result<(), headcount::Error> {
    /// use headcount::{Engine, Request, Table};
    /// use std::time::Duration;
    /// let engine = Engine::named("a").max_in_flight(4);
    /// let table = Table::options().engine(engine).max_waiting(100).memfd()?;
    /// let frontend = table.join()?;
    /// let request = Request::new().pin(0); // all on one engine
    /// let permits = frontend.acquire_many(3, &request, Duration::from_secs(1)).unwrap();
    /// assert_eq!(permits.len(), 3);
    /// # Ok(()) }
    /// ```
    ///
    /// They wait as one request, which counts once in the queue, and hold no place before they have all. When they come
    /// first, places that fall free on their engines are kept for them, so that others do not starve them: pin them
    /// to an engine, and the others use the rest meanwhile. To their tenant they cost as much as one by one.
    ///
    /// While places are kept on more engines than one, or more than 128 on one, a request that comes next and could go
    /// elsewhere may be woken up to 50 ms late.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    pub fn acquire_many(
        &self,
        count: usize,
        request: &Request<'_>,
        timeout: Duration,
    ) -> Result<Vec<Permit>, AcquireError> {
        if count == 0 {
            return Ok(self.route_many_with(0, request)?);
        }
        let batch = self.acquire_batch(count, request, timeout, || true)?;
        Ok(batch.into())
    }

    fn acquire_batch(
        &self,
        count: usize,
        request: &Request<'_>,
        timeout: Duration,
        go_on: impl FnMut() -> bool,
    ) -> Result<Batch, AcquireError> {
        if let Some(result) = self.acquire_at_once(count, request, timeout.is_zero()) {
            return result;
        }
        let deadline = clock::now().saturating_add(clock::in_nanoseconds(timeout));
        let waiter = Waiter::new(self, count, request, deadline, Sleeper::thread());
        self.waiters().wait(waiter, go_on)
    }

    /// Places a request as [`acquire`](Self::acquire) does, without blocking the thread: the future waits for a place
    /// until `deadline`.
    ///
    /// ```
    /// use headcount::{AcquireError, Frontend, Permit, Request};
    /// use std::time::{Duration, Instant};
    ///
    /// async fn place(frontend: &Frontend, tokens: u32) -> Result<Permit, AcquireError> {
    ///     let deadline = Instant::now() + Duration::from_secs(30);
    ///     frontend.acquire_async(&Request::new().tokens(tokens), deadline).await
    /// }
    /// ```
    ///
    /// It works on any executor. Dropping the future leaves the queue; if it had got a place by then, that goes to the next
    /// request. The request begins to wait when the future is first polled. A place that the future has got stays
    /// counted until the future is polled again, so poll it when it is woken.
    ///
    /// The first task that waits starts one thread of this process, which waits for all tasks of this frontend.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire), and [`AcquireError::NoThread`].
    pub fn acquire_async(&self, request: &Request<'_>, deadline: Instant) -> Acquire {
        Acquire::new(self, request, deadline)
    }

    /// Places `count` requests that are alike, as [`acquire_many`](Self::acquire_many) does, without blocking the
    /// thread: see [`acquire_async`](Self::acquire_async).
    ///
    /// # Errors
    /// As [`acquire_async`](Self::acquire_async).
    pub fn acquire_many_async(
        &self,
        count: usize,
        request: &Request<'_>,
        deadline: Instant,
    ) -> AcquireMany {
        AcquireMany::new(self, count, request, deadline)
    }

    fn waiters(&self) -> &std::sync::Arc<Waiters> {
        self.membership.waiters()
    }

    /// Places requests if they need not wait, or cannot be placed by waiting. `None`: they have to wait.
    fn acquire_at_once(
        &self,
        count: usize,
        request: &Request<'_>,
        is_late: bool,
    ) -> Option<Result<Batch, AcquireError>> {
        let place = || match count {
            1 => self.place(request).map(Batch::from),
            _ => (request.check()).and_then(|()| self.place_batch(count, request)),
        };
        let mut placed = place();
        if can_wait(&placed) && self.membership.reap_if_due() {
            placed = place();
        }
        match placed {
            Ok(batch) => Some(Ok(batch)),
            Err(_) if can_wait(&placed) => is_late.then_some(Err(AcquireError::WaitedTooLong {
                waited: Duration::ZERO,
            })),
            Err(error) => {
                self.count_refusal(error);
                Some(Err(error.into()))
            }
        }
    }
}

/// Whether a request that was not placed may be placed by waiting.
fn can_wait(placed: &Result<Batch, RouteError>) -> bool {
    matches!(placed, Err(RouteError::Saturated { passes: true, .. }))
}
