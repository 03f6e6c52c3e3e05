//! New connections to engines.

use crate::engine::address::{Address, Host};
use crate::engine::resolve::Resolver;
use crate::engine::wire::{InterimBudget, Wire};
use crate::keepalive::Keepalive;
use crate::message::upload::Upload;
use crate::options::Options;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustix::io::Errno;
use std::borrow::Cow;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed}; // one thread has it
use std::time::Duration;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, Sleep, sleep, timeout};

/// How long to wait for one address before the next one of the same engine is tried as well (RFC 8305).
const HEAD_START: Duration = Duration::from_millis(250);

/// Opens connections to engines.
#[derive(Debug)]
pub(crate) struct Dialer {
    /// How long an engine may take to accept a connection.
    limit: Duration,
    keepalive: Keepalive,
    names: Resolver,
    first_byte_timeout: Duration,
    /// How many connections for requests are open, in use or not.
    open: Arc<AtomicUsize>,
}

/// A connection for requests. Dropping it closes it at once, even with bytes still to be sent.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) sender: SendRequest<Upload>,
    pub(crate) interim: InterimBudget,
    /// The limit of the wait for an answer.
    pub(crate) first_byte: Pin<Box<Sleep>>,
    task: AbortHandle,
}

impl Drop for Connection {
    fn drop(&mut self) {
        // By itself the task would go on sending to an engine that does not read.
        self.task.abort();
    }
}

/// Counts an open connection, until it is dropped.
struct Open(Arc<AtomicUsize>);

impl Open {
    fn count(open: &Arc<AtomicUsize>) -> Self {
        open.fetch_add(1, Relaxed);
        Self(Arc::clone(open))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// Why there is no connection.
#[derive(Debug, Error)]
pub(crate) enum DialError {
    /// The engine does not accept a connection.
    #[error(transparent)]
    Engine(io::Error),
    /// The engine's name has no known address. The resolver is to blame and not the engine, so the engine
    /// stays up. Other engines may have addresses.
    #[error(transparent)]
    NoAddress(io::Error),
    /// This host cannot open a connection to any engine. The engine stays up.
    #[error(transparent)]
    ThisHost(io::Error),
}

impl Dialer {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            limit: options.connect_timeout,
            keepalive: Keepalive::of_engines(options),
            names: Resolver::new(options.resolve_every),
            first_byte_timeout: options.first_byte_timeout,
            open: Arc::default(),
        }
    }

    /// Opens a connection for requests.
    pub(crate) async fn connect(&self, engine: &str) -> Result<Connection, DialError> {
        let stream = self.reach(engine).await?;
        let interim = InterimBudget::new();
        let wire = Wire::new(stream, self.keepalive, interim.clone());
        let handshake = http1::handshake(TokioIo::new(wire)).await;
        let (sender, connection) =
            handshake.map_err(|error| DialError::Engine(io::Error::other(error)))?;
        let open = Open::count(&self.open);
        let task = tokio::spawn(async move {
            // The request on the connection gets its errors.
            let _ = connection.await;
            drop(open);
        });
        let task = task.abort_handle();
        Ok(Connection {
            sender,
            interim,
            first_byte: Box::pin(sleep(self.first_byte_timeout)),
            task,
        })
    }

    /// Returns how many connections for requests are open.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Relaxed)
    }

    /// Opens a TCP connection to an engine.
    pub(crate) async fn reach(&self, engine: &str) -> Result<TcpStream, DialError> {
        // Another process has added this row of the table. The engine stays down until it is removed.
        let address: Address =
            (engine.parse()).map_err(|why: String| DialError::Engine(io::Error::other(why)))?;
        let stream = match address.known() {
            Some(Ok(address)) => self.first(&[address]).await,
            Some(Err(why)) => return Err(DialError::NoAddress(io::Error::other(why))),
            None => self.by_name(&address).await?,
        };
        let stream = stream.map_err(|error| {
            if is_of_this_host(&error) {
                DialError::ThisHost(error)
            } else {
                DialError::Engine(error)
            }
        })?;
        self.keepalive.apply(&stream);
        Ok(stream)
    }

    async fn by_name(&self, address: &Address) -> Result<io::Result<TcpStream>, DialError> {
        let Host::Name(name) = &address.host else {
            return Ok(Err(io::ErrorKind::InvalidInput.into()));
        };
        let with_port = |ips: &[IpAddr]| -> Vec<SocketAddr> {
            (ips.iter().map(|ip| SocketAddr::new(*ip, address.port))).collect()
        };
        let start = Instant::now();
        let ips = self.names.find(name, self.limit).await;
        let ips = ips.map_err(DialError::NoAddress)?;
        let mut stream = self.first(&with_port(&ips)).await;
        if stream.is_err() {
            // The engine may have moved since the look-up.
            let left = self.limit.saturating_sub(start.elapsed());
            if let Some(others) = self.names.find_others(name, &ips, left).await {
                stream = self.first(&with_port(&others)).await;
            }
        }
        if let Ok(stream) = &stream
            && let Ok(peer) = stream.peer_addr()
            && ips.first().is_some_and(|first| *first != peer.ip())
        {
            self.names.prefer(name, peer.ip());
        }
        Ok(stream)
    }

    /// Connects to the first of these addresses that accepts. They are tried in turn: the next one starts when the
    /// last one has failed or had its head start, while earlier attempts go on.
    async fn first(&self, addresses: &[SocketAddr]) -> io::Result<TcpStream> {
        if let [address] = addresses {
            return within(self.limit, open(*address)).await;
        }
        let head_start = HEAD_START.min(self.limit / (addresses.len() as u32).max(1));
        let race = async {
            let mut addresses = addresses.iter().copied();
            let (mut attempts, mut failure) = (JoinSet::new(), None);
            loop {
                match addresses.next() {
                    Some(address) => _ = attempts.spawn(open(address)),
                    None if attempts.is_empty() => {
                        let none = || io::ErrorKind::AddrNotAvailable.into();
                        return Err(failure.unwrap_or_else(none));
                    }
                    None => {}
                }
                let alone = sleep(head_start);
                tokio::select! {
                    Some(Ok(opened)) = attempts.join_next() => match opened {
                        Ok(stream) => return Ok(stream),
                        // The engine's error tells more than a fault of this host with another address (no
                        // network of that kind, say).
                        Err(error) if failure.as_ref().is_none_or(is_of_this_host) => {
                            failure = Some(error);
                        }
                        Err(_) => {}
                    },
                    () = alone, if addresses.len() > 0 => {}
                }
            }
        };
        within(self.limit, race).await
    }
}

async fn within<T>(limit: Duration, attempt: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    (timeout(limit, attempt).await).unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Returns the value of `Host` for an engine: its host and port.
pub(crate) fn authority(engine: &str) -> Cow<'_, str> {
    let authority = engine.strip_prefix("http://").unwrap_or(engine);
    // The network interface means something on this host only.
    match authority.split_once('%') {
        Some((host, zone)) => match zone.find(']') {
            Some(end) => Cow::Owned(format!("{host}{}", &zone[end..])),
            None => Cow::Borrowed(authority),
        },
        None => Cow::Borrowed(authority),
    }
}

async fn open(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    // The kernel can give a socket the very port that it connects to, if no process listens there. The socket then
    // talks to itself.
    if stream.local_addr()? == stream.peer_addr()? {
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Whether a connection failed because this host lacks something.
fn is_of_this_host(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM | Errno::ADDRNOTAVAIL)
    )
}
