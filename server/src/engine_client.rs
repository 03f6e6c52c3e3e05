//! A request that goes to an engine, over a new connection or one that is open already.

use crate::dial::{self, Connection};
use crate::idle_timeout::Waited;
use crate::upload::Upload;
use crate::worker::Worker;
use hyper::body::Incoming;
use hyper::{Request, Response};
use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// How long a connection is kept when it is not used: less than the 5 s after which uvicorn, which
/// serves many engines, closes its end.
const KEPT_OPEN: Duration = Duration::from_secs(4);

/// Connections that are open and not in use, by engine, the last one used at the end.
#[derive(Debug, Default)]
pub(crate) struct Idle(Mutex<HashMap<String, Vec<(Connection, Instant)>>>);

/// Why an engine has not begun an answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It cannot be reached. It got nothing of the request, which is returned.
    Unreachable(io::Error, Box<Request<Upload>>),
    /// Its name has no address that is known here. It got nothing of the request, which is returned.
    NoAddress(io::Error, Box<Request<Upload>>),
    /// This host cannot open a connection, whatever the engine.
    NoConnection(io::Error),
    /// It broke off, or what it said was no HTTP. The request is returned if it may be sent to another one.
    BrokeOff(hyper::Error, Option<Box<Request<Upload>>>),
    /// It took longer than it may.
    TooSlow,
}

/// Sends a request to an engine and waits for the head of its answer.
///
/// An engine may close a connection just when it is used again. What has not been sent by then goes out
/// on another one, and what has, if it may be repeated, once more on a new one.
///
/// If this is dropped before it is done, the connection is closed, by which the engine learns that
/// its answer is not waited for.
pub(crate) async fn send(
    engine: &str,
    mut message: Request<Upload>,
    may_repeat: bool,
    worker: &Worker,
) -> Result<(Response<Incoming>, Connection), Failure> {
    let mut idle = worker.idle.take(engine);
    loop {
        let used_before = idle.is_some();
        let mut connection = match idle {
            Some(connection) => connection,
            None => match worker.connect(engine).await {
                Ok(connection) => connection,
                Err(dial::Failure::ThisHost(error)) => return Err(Failure::NoConnection(error)),
                Err(dial::Failure::NoAddress(error)) => {
                    return Err(Failure::NoAddress(error, Box::new(message)));
                }
                Err(dial::Failure::Engine(error)) => {
                    return Err(Failure::Unreachable(error, Box::new(message)));
                }
            },
        };
        let copy = may_repeat.then(|| copy(&message)).flatten();
        let waited = message.body().waited();
        connection.heard.begins();
        let answer = connection.sender.try_send_request(message);
        let limit = worker.options.first_byte_timeout;
        let Some(answer) = within(limit, waited, answer).await else {
            return Err(Failure::TooSlow);
        };
        connection.heard.ends();
        let mut error = match answer {
            Ok(answer) => return Ok((answer, connection)),
            Err(error) => error,
        };
        let is_unsent = error.message().is_some();
        match error.take_message().or(copy) {
            Some(again) if used_before => {
                message = again;
                idle = match is_unsent {
                    true => worker.idle.take(engine),
                    false => None,
                };
            }
            again => return Err(Failure::BrokeOff(error.into_error(), again.map(Box::new))),
        }
    }
}

/// What an engine says within a time, in which it does not count how long it waited for the client.
async fn within<T>(
    limit: Duration,
    waited: Option<Waited>,
    answer: impl Future<Output = T>,
) -> Option<T> {
    let start = Instant::now();
    let end = || start + limit + waited.as_ref().map_or(Duration::ZERO, Waited::so_far);
    let mut answer = pin!(answer);
    loop {
        match timeout_at(end(), &mut answer).await {
            Ok(answer) => return Some(answer),
            Err(_) if end() <= Instant::now() => return None,
            Err(_) => {}
        }
    }
}

/// The same request once more, if all of it is there.
fn copy(message: &Request<Upload>) -> Option<Request<Upload>> {
    let mut copy = Request::new(message.body().copy()?);
    *copy.method_mut() = message.method().clone();
    *copy.uri_mut() = message.uri().clone();
    *copy.headers_mut() = message.headers().clone();
    Some(copy)
}

impl Idle {
    /// Keeps a connection for the next request to the engine.
    pub(crate) fn keep(&self, engine: String, connection: Connection) {
        let mut engines = self.lock();
        engines
            .entry(engine)
            .or_default()
            .push((connection, Instant::now()));
    }

    /// Closes one, so that its descriptor is free.
    pub(crate) fn close_one(&self) {
        let mut engines = self.lock();
        if let Some(connections) = engines.values_mut().find(|kept| !kept.is_empty()) {
            drop(connections.remove(0));
        }
    }

    /// Closes those that no request has used for a while, and forgets engines that are gone.
    pub(crate) fn close_old(&self) {
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
            // One that is not ready is closed, or still has a request to send that was answered early.
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
