//! Requests that wait for a place: [`Frontend::acquire`] and [`Frontend::acquire_async`].

mod blocking;
mod group;
mod task;
mod waiter;
mod waiters;

pub use task::Acquire;
pub(crate) use waiters::Waiters;

use crate::error::{AcquireError, RouteError};
use crate::frontend::{Frontend, Permit, Request};
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
    /// A timeout of zero tries once, and does not wait. The call may return some milliseconds after its time, and does
    /// not return before it without a place. While a request waits for an engine that is removed, or all its engines go
    /// down, the call ends with that error.
    ///
    /// Costs as much as `route_with` if there is a place and no request waits. Otherwise a sleep of the thread, some
    /// microseconds of work at each end of it, and a look every 50 ms (10 ms for the second in line). A process that is
    /// stopped while it comes first is passed over after 10 ms and keeps its turn.
    ///
    /// A [custom policy](crate::Policy::custom) is called while other threads of this process that wait are held up. Its
    /// code must not call `acquire` itself.
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
    /// every 50 ms.
    ///
    /// # Errors
    /// [`AcquireError`]; [`AcquireError::Cancelled`] if `go_on` has said no.
    pub fn acquire_while(
        &self,
        request: &Request<'_>,
        timeout: Duration,
        go_on: impl FnMut() -> bool,
    ) -> Result<Permit, AcquireError> {
        if let Some(result) = self.acquire_at_once(request, timeout.is_zero()) {
            return result;
        }
        let deadline = clock::now().saturating_add(clock::in_nanoseconds(timeout));
        let waiter = Waiter::new(self, request, deadline, Sleeper::thread());
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

    fn waiters(&self) -> &std::sync::Arc<Waiters> {
        self.membership.waiters()
    }

    /// Places a request if it need not wait, or cannot be placed by waiting. `None`: it has to wait.
    fn acquire_at_once(
        &self,
        request: &Request<'_>,
        is_late: bool,
    ) -> Option<Result<Permit, AcquireError>> {
        let mut placed = self.place(request);
        if can_wait(&placed) && self.membership.reap_if_due() {
            placed = self.place(request);
        }
        match placed {
            Ok(permit) => Some(Ok(permit)),
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
fn can_wait(placed: &Result<Permit, RouteError>) -> bool {
    matches!(placed, Err(RouteError::Saturated { passes: true, .. }))
}
