//! A request that goes to an engine, over a new connection or one that is open already.

use crate::dial;
use crate::upload::Upload;
use crate::worker::Worker;
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper::{Request, Response};
use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// How long a connection is kept when it is not used: less than the 5 s after which uvicorn, which
/// serves many engines, closes its end.
const KEPT_OPEN: Duration = Duration::from_secs(4);

pub(crate) type Connection = SendRequest<Upload>;

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
    /// It broke off, or what it said was no HTTP.
    BrokeOff(hyper::Error),
    /// It took longer than it may.
    TooSlow,
}

/// Sends a request to an engine and waits for the head of its answer.
///
/// If this is dropped before it is done, the connection is closed, by which the engine learns that
/// nobody waits any more.
pub(crate) async fn send(
    engine: &str,
    mut message: Request<Upload>,
    worker: &Worker,
) -> Result<(Response<Incoming>, Connection), Failure> {
    loop {
        let (mut connection, used_before) = match worker.idle.take(engine) {
            Some(connection) => (connection, true),
            None => match worker.dialer.connect(engine).await {
                Ok(connection) => (connection, false),
                Err(dial::Failure::ThisHost(error)) => return Err(Failure::NoConnection(error)),
                Err(dial::Failure::NoAddress(error)) => {
                    return Err(Failure::NoAddress(error, Box::new(message)));
                }
                Err(dial::Failure::Engine(error)) => {
                    return Err(Failure::Unreachable(error, Box::new(message)));
                }
            },
        };
        let answer = connection.try_send_request(message);
        match timeout(worker.options.first_byte_timeout, answer).await {
            Ok(Ok(answer)) => return Ok((answer, connection)),
            Ok(Err(mut error)) => match error.take_message() {
                // The engine had closed it while it was not in use. Another one, or a new one, will do.
                Some(unsent) if used_before => message = unsent,
                _ => return Err(Failure::BrokeOff(error.into_error())),
            },
            Err(_) => return Err(Failure::TooSlow),
        }
    }
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

    /// Closes those that nobody has used for a while, and forgets engines that are gone.
    pub(crate) fn close_old(&self) {
        self.lock().retain(|_, connections| {
            connections.retain(|(connection, since)| {
                since.elapsed() < KEPT_OPEN && !connection.is_closed()
            });
            !connections.is_empty()
        });
    }

    fn take(&self, engine: &str) -> Option<Connection> {
        let mut engines = self.lock();
        let connections = engines.get_mut(engine)?;
        while let Some((connection, since)) = connections.pop() {
            // One that is not ready is closed, or still has a request to send that was answered early.
            if connection.is_ready() && since.elapsed() < KEPT_OPEN {
                return Some(connection);
            }
        }
        None
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Vec<(Connection, Instant)>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
