//! A request that goes to an engine, over a new connection or one that is open already.

use crate::options::Options;
use crate::upload::Upload;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustix::io::Errno;
use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
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
    idle: &Idle,
    options: &Options,
) -> Result<(Response<Incoming>, Connection), Failure> {
    loop {
        let (mut connection, used_before) = match idle.take(engine) {
            Some(connection) => (connection, true),
            None => match timeout(options.connect_timeout, connect(engine)).await {
                Ok(Ok(connection)) => (connection, false),
                Ok(Err(error)) if is_of_this_host(&error) => {
                    return Err(Failure::NoConnection(error));
                }
                Ok(Err(error)) => return Err(Failure::Unreachable(error, Box::new(message))),
                Err(_) => {
                    let error = io::ErrorKind::TimedOut.into();
                    return Err(Failure::Unreachable(error, Box::new(message)));
                }
            },
        };
        let answer = connection.try_send_request(message);
        match timeout(options.first_byte_timeout, answer).await {
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

/// The part of an engine's name that is its host and port.
pub(crate) fn authority(engine: &str) -> &str {
    engine.trim_start_matches("http://")
}

/// A stream to an engine.
pub(crate) async fn reach(engine: &str) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(authority(engine)).await?;
    // A socket that looks for a port of this host on which nobody listens can be given just that
    // port for its own, and then talks to itself.
    if stream.local_addr()? == stream.peer_addr()? {
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    stream.set_nodelay(true)?;
    Ok(stream)
}

async fn connect(engine: &str) -> io::Result<Connection> {
    let stream = reach(engine).await?;
    let handshake = http1::handshake(TokioIo::new(stream)).await;
    let (sender, connection) = handshake.map_err(io::Error::other)?;
    // Its errors are those of the requests that it carries.
    tokio::spawn(async move { drop(connection.await) });
    Ok(sender)
}

/// Whether a connection failed for want of something on this side: no reason to shun the engine.
fn is_of_this_host(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM | Errno::ADDRNOTAVAIL)
    )
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
