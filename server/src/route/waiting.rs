//! Takes the permits of a request, and waits for them in the queue if there is one.

use crate::message::error_response::ErrorResponse;
use crate::message::idle_timeout::WaitedTime;
use crate::options::Options;
use crate::route::Router;
use crate::route::permits::{NoRoom, Permits, RoutingHints};
use crate::route::room::{self, Room};
use crate::route::standing::Standings;
use headcount::{AcquireError, EngineId, Request, RouteError, View};
use hyper::HeaderMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// How often a batch that waits at one engine looks whether another one has room for it.
const ELSEWHERE: Duration = Duration::from_millis(100);

/// The settings of the queue.
#[derive(Debug)]
pub(crate) struct Queue {
    /// How long a request may wait, at all engines together.
    timeout: Duration,
    pub(crate) standings: Standings,
}

impl Queue {
    /// Returns the settings, if there is a queue.
    pub(crate) fn new(options: &Options) -> Option<Self> {
        options.queue?;
        Some(Self {
            timeout: options.queue_timeout,
            standings: Standings::new(options),
        })
    }
}

impl Queue {
    /// Fails if a request with this head could not wait now.
    pub(super) fn check(&self, view: &View, headers: &HeaderMap) -> Result<(), ErrorResponse> {
        let class = self.standings.read(headers)?.class;
        let seen = view.queue.as_ref().ok_or(ErrorResponse::Saturated)?;
        let full = |class| ErrorResponse::QueueFull {
            class,
            retry_after: None,
        };
        let waiting: u32 = seen.classes.iter().map(|class| class.waiting).sum();
        if waiting >= seen.max_waiting {
            return Err(full(None));
        }
        let own = &seen.classes[usize::from(class)];
        match own.max_waiting {
            Some(most) if own.waiting >= most => Err(full(Some(class))),
            _ => Ok(()),
        }
    }
}

impl RoutingHints {
    /// Chooses an engine and takes all permits there, or none. If there is no room and the deployment has a queue, waits
    /// for room. `waited` has the time of all waits of the request.
    pub(crate) async fn take_in_turn(
        &self,
        router: &Router,
        tried: &[EngineId],
        waited: Option<&WaitedTime>,
    ) -> Result<Permits, ErrorResponse> {
        let (Some(queue), Some(waited)) = (&router.queue, waited) else {
            return self.take(router, tried);
        };
        let start = Instant::now();
        let wait = Wait {
            router,
            tried,
            waited,
            start,
            deadline: start + queue.timeout.saturating_sub(waited.so_far()),
        };
        let mut placed = wait.to_take(self, self.tokens).await;
        if let Err(NoRoom::Full { passes: false }) = placed {
            placed = match self.most_tokens(router) {
                Ok(tokens) => wait.to_take(self, tokens).await,
                Err(error) => Err(NoRoom::Other(error)),
            };
        }
        waited.end();
        placed.map_err(NoRoom::into_response)
    }
}

/// The wait of a request.
struct Wait<'a> {
    router: &'a Router,
    tried: &'a [EngineId],
    waited: &'a WaitedTime,
    start: Instant,
    deadline: Instant,
}

impl Wait<'_> {
    /// Takes the permits of a request with so many tokens as soon as it may have them.
    async fn to_take(&self, hints: &RoutingHints, tokens: u32) -> Result<Permits, NoRoom> {
        match hints.requests {
            1 => self.to_take_one(hints, tokens).await,
            several => self.to_take_all(hints, several, tokens).await,
        }
    }

    async fn to_take_one(&self, hints: &RoutingHints, tokens: u32) -> Result<Permits, NoRoom> {
        let request = Request::new().tokens(tokens).exclude(self.tried);
        let mut request = hints.standing.of(request);
        if let Some((engine, slack)) = hints.prefer {
            request = request.prefer(engine, slack);
        }
        let frontend = &self.router.frontend;
        let acquired = self.watch(frontend.acquire_async(&request, self.deadline.into_std()));
        let permit = acquired.await.map_err(refused)?;
        Ok(Permits::new(permit, Vec::new()))
    }

    /// The permits of several sequences, all of one engine, which is chosen before the wait.
    async fn to_take_all(
        &self,
        hints: &RoutingHints,
        requests: u32,
        tokens: u32,
    ) -> Result<Permits, NoRoom> {
        let of_each = tokens / requests;
        let of_first = tokens - of_each * (requests - 1);
        let frontend = &self.router.frontend;
        loop {
            if let Some(permits) = self.take_where_is_room(hints) {
                return Ok(permits);
            }
            let engine = room::engine_to_wait_at(self.router, requests, tokens, self.tried)?;
            let request = Request::new().tokens(of_each).pin(engine);
            let request = hints.standing.of(request);
            let mut acquire =
                frontend.acquire_many_async(requests as usize, &request, self.deadline.into_std());
            let acquired = loop {
                match timeout(ELSEWHERE, self.watch(&mut acquire)).await {
                    Ok(acquired) => break acquired,
                    Err(_) => {
                        if let Some(permits) = self.take_where_is_room(hints) {
                            return Ok(permits);
                        }
                    }
                }
            };
            match acquired {
                Ok(mut permits) => {
                    let first = permits.pop();
                    let mut first = first.ok_or(NoRoom::Full { passes: true })?;
                    // The remainder, if there is room for it.
                    let _ = first.set_tokens(of_first);
                    return Ok(Permits::new(first, permits));
                }
                // The engine does not take requests any more. Another one may.
                Err(AcquireError::Route(
                    RouteError::Unavailable(_) | RouteError::NoSuchEngine { .. },
                )) => {}
                Err(error) => return Err(refused(error)),
            }
        }
    }

    /// Takes the permits at the least loaded engine that has room for all now, where no other request comes first.
    fn take_where_is_room(&self, hints: &RoutingHints) -> Option<Permits> {
        let (router, tried) = (self.router, self.tried);
        match Room::find(router, hints.requests, hints.tokens, tried) {
            Room::But(_) => hints.take(router, tried).ok(),
            Room::Nowhere(_) | Room::NoEngine => None,
        }
    }

    /// Waits, and notes since when. Dropping this leaves the queue.
    async fn watch<T>(&self, mut acquire: impl Future<Output = T> + Unpin) -> T {
        poll_fn(|cx| {
            let acquired = Pin::new(&mut acquire).poll(cx);
            if acquired.is_pending() {
                self.waited.begin(self.start);
            }
            acquired
        })
        .await
    }
}

fn refused(error: AcquireError) -> NoRoom {
    NoRoom::Other(match error {
        AcquireError::Route(RouteError::Saturated { passes, .. }) => {
            return NoRoom::Full { passes };
        }
        AcquireError::Route(RouteError::Unavailable(_)) => ErrorResponse::NoEngine,
        AcquireError::Route(error) => ErrorResponse::Table(error.into()),
        AcquireError::QueueFull { class, retry_after } => {
            ErrorResponse::QueueFull { class, retry_after }
        }
        AcquireError::WaitedTooLong { waited } => ErrorResponse::QueueTimeout { waited },
        // An operator has taken the queue from the table, or the kernel starts no thread: as without a queue.
        _ => ErrorResponse::Saturated,
    })
}
