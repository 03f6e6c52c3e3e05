//! Sends a request to an engine, over a new connection or one that is open already.

use crate::engine::dial::{Connection, DialError, Dialer};
use crate::engine::names::EngineNames;
use crate::message::idle_timeout::WaitedTime;
use crate::message::upload::Upload;
use crate::options::Options;
use hyper::body::Incoming;
use hyper::{Request, Response};
use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// How long an unused connection stays open: less than the 5 s after which uvicorn, which serves many engines,
/// closes its end.
const KEPT_OPEN: Duration = Duration::from_secs(4);

/// A worker's connections to all engines.
#[derive(Debug)]
pub(crate) struct EngineClient {
    dialer: Dialer,
    idle: Arc<IdleConnections>,
    names: EngineNames,
    /// How many connections the descriptors suffice for.
    most_open: usize,
    first_byte_timeout: Duration,
}

/// Why an engine has not begun an answer.
#[derive(Debug)]
pub(crate) enum SendError {
    /// The engine cannot be reached. It got nothing of the request, which is returned.
    Unreachable(io::Error, Box<Request<Upload>>),
    /// No address of the engine's name is known here. It got nothing of the request, which is returned.
    NoAddress(io::Error, Box<Request<Upload>>),
    /// This host cannot open a connection to any engine.
    NoConnection(io::Error),
    /// The engine broke off, or sent something other than HTTP. The request is returned if it may go to another
    /// engine.
    BrokeOff(hyper::Error, Option<Box<Request<Upload>>>),
    /// The engine took longer than it may.
    TooSlow,
}

impl EngineClient {
    pub(crate) fn new(options: &Options, most_open: usize) -> Self {
        Self {
            dialer: Dialer::new(options),
            idle: Arc::default(),
            names: EngineNames::default(),
            most_open,
            first_byte_timeout: options.first_byte_timeout,
        }
    }

    /// Returns the names of engines that requests have met.
    pub(crate) fn names(&self) -> &EngineNames {
        &self.names
    }

    /// Returns where connections are kept that are open and not in use.
    pub(crate) fn idle(&self) -> Arc<IdleConnections> {
        Arc::clone(&self.idle)
    }

    /// Closes connections that no request has used for a while.
    pub(crate) fn close_old(&self) {
        self.idle.close_old();
    }

    /// Sends a request to an engine and waits for the head of its answer.
    ///
    /// An engine may close an idle connection at the moment it is used again. A request of which nothing was
    /// sent by then goes out on another connection. One that was sent, and may be repeated, goes out once more
    /// on a new one.
    ///
    /// If the caller drops this future before it is done, the connection is closed, by which the engine learns
    /// that its answer is no longer wanted.
    pub(crate) async fn send(
        &self,
        engine: &str,
        mut message: Request<Upload>,
        may_repeat: bool,
    ) -> Result<(Response<Incoming>, Connection), SendError> {
        let mut idle = self.idle.take(engine);
        loop {
            let used_before = idle.is_some();
            let mut connection = match idle {
                Some(connection) => connection,
                None => match self.connect(engine).await {
                    Ok(connection) => connection,
                    Err(DialError::ThisHost(error)) => return Err(SendError::NoConnection(error)),
                    Err(DialError::NoAddress(error)) => {
                        return Err(SendError::NoAddress(error, Box::new(message)));
                    }
                    Err(DialError::Engine(error)) => {
                        return Err(SendError::Unreachable(error, Box::new(message)));
                    }
                },
            };
            let copy = may_repeat.then(|| copy(&message)).flatten();
            let waited = message.body().waited();
            connection.interim.begins();
            let answer = pin!(connection.sender.try_send_request(message));
            let limit = self.first_byte_timeout;
            let timer = &mut connection.first_byte;
            let Some(answer) = within(timer, limit, waited, answer).await else {
                return Err(SendError::TooSlow);
            };
            connection.interim.ends();
            let mut error = match answer {
                Ok(answer) => return Ok((answer, connection)),
                Err(error) => error,
            };
            let is_unsent = error.message().is_some();
            match error.take_message().or(copy) {
                Some(again) if used_before => {
                    message = again;
                    idle = if is_unsent {
                        self.idle.take(engine)
                    } else {
                        None
                    };
                }
                again => {
                    return Err(SendError::BrokeOff(error.into_error(), again.map(Box::new)));
                }
            }
        }
    }

    async fn connect(&self, engine: &str) -> Result<Connection, DialError> {
        if self.dialer.open() >= self.most_open {
            self.idle.close_one();
        }
        self.dialer.connect(engine).await
    }
}

/// Returns the answer, or `None` if it takes longer than the limit. Time in which the engine waited for the
/// client does not count.
///
/// The timer belongs to the connection. One that fires too early, for an earlier request, is set again then, which is
/// cheaper than to set it with each request.
async fn within<T>(
    timer: &mut Pin<Box<Sleep>>,
    limit: Duration,
    waited: Option<WaitedTime>,
    mut answer: Pin<&mut impl Future<Output = T>>,
) -> Option<T> {
    let start = Instant::now();
    let end = || start + limit + waited.as_ref().map_or(Duration::ZERO, WaitedTime::so_far);
    poll_fn(|cx| {
        if let Poll::Ready(answer) = answer.as_mut().poll(cx) {
            return Poll::Ready(Some(answer));
        }
        if timer.deadline() > end() {
            timer.as_mut().reset(end());
        }
        while timer.as_mut().poll(cx).is_ready() {
            if Instant::now() >= end() {
                return Poll::Ready(None);
            }
            timer.as_mut().reset(end());
        }
        Poll::Pending
    })
    .await
}

/// Copies a request, if its whole body is held.
fn copy(message: &Request<Upload>) -> Option<Request<Upload>> {
    let mut copy = Request::new(message.body().copy()?);
    *copy.method_mut() = message.method().clone();
    *copy.uri_mut() = message.uri().clone();
    *copy.headers_mut() = message.headers().clone();
    Some(copy)
}

/// Connections that are open and not in use, by engine, the last one used at the end.
#[derive(Debug, Default)]
pub(crate) struct IdleConnections(Mutex<HashMap<String, Vec<(Connection, Instant)>>>);

impl IdleConnections {
    /// Keeps a connection for the next request to the engine.
    pub(crate) fn keep(&self, engine: &str, connection: Connection) {
        let mut engines = self.lock();
        let kept = (connection, Instant::now());
        match engines.get_mut(engine) {
            Some(connections) => connections.push(kept),
            None => _ = engines.insert(engine.to_owned(), vec![kept]),
        }
    }

    /// Closes one connection, to free its descriptor.
    fn close_one(&self) {
        let mut engines = self.lock();
        if let Some(connections) = engines.values_mut().find(|kept| !kept.is_empty()) {
            drop(connections.remove(0));
        }
    }

    /// Closes connections that no request has used for a while, and forgets engines without any.
    fn close_old(&self) {
        self.lock().retain(|_, connections| {
            connections.retain(|(connection, since)| {
                since.elapsed() < KEPT_OPEN && !connection.sender.is_closed()
            });
            !connections.is_empty()
        });
    }

    fn take(&self, engine: &str) -> Option<Connection> {
        let mut engines = self.lock();
        let connections = engines.get_mut(engine)?;
        while let Some((connection, since)) = connections.pop() {
            // One that is not ready is closed, or still has to send a request that was answered early.
            if connection.sender.is_ready() && since.elapsed() < KEPT_OPEN {
                return Some(connection);
            }
        }
        None
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Vec<(Connection, Instant)>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
