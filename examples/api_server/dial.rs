//! New connections to engines.

use crate::options::Options;
use crate::upload::Upload;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustix::io::Errno;
use std::io;
use std::time::Duration;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Opens connections to engines.
#[derive(Debug)]
pub(crate) struct Dialer {
    /// How long an engine may take to accept one.
    limit: Duration,
}

/// Why there is no connection.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// The engine does not accept one.
    #[error(transparent)]
    Engine(io::Error),
    /// This host cannot open one, whatever the engine: no reason to shun it.
    #[error(transparent)]
    ThisHost(io::Error),
}

impl Dialer {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            limit: options.connect_timeout,
        }
    }

    /// A connection for requests.
    pub(crate) async fn connect(&self, engine: &str) -> Result<SendRequest<Upload>, Failure> {
        let stream = self.reach(engine).await?;
        let handshake = http1::handshake(TokioIo::new(stream)).await;
        let (sender, connection) =
            handshake.map_err(|error| Failure::Engine(io::Error::other(error)))?;
        // Its errors are those of the requests that it carries.
        tokio::spawn(async move { drop(connection.await) });
        Ok(sender)
    }

    /// A stream to an engine.
    pub(crate) async fn reach(&self, engine: &str) -> Result<TcpStream, Failure> {
        match timeout(self.limit, reach(engine)).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) if is_of_this_host(&error) => Err(Failure::ThisHost(error)),
            Ok(Err(error)) => Err(Failure::Engine(error)),
            Err(_) => Err(Failure::Engine(io::ErrorKind::TimedOut.into())),
        }
    }
}

/// The part of an engine's name that is its host and port.
pub(crate) fn authority(engine: &str) -> &str {
    engine.trim_start_matches("http://")
}

async fn reach(engine: &str) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(authority(engine)).await?;
    // A socket that looks for a port of this host on which nobody listens can be given just that
    // port for its own, and then talks to itself.
    if stream.local_addr()? == stream.peer_addr()? {
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Whether a connection failed for want of something on this side.
fn is_of_this_host(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM | Errno::ADDRNOTAVAIL)
    )
}
