//! A client's connection. The HTTP server reads and writes it, and a request in flight sees when the client
//! leaves.

use crate::client::linger::{self, Until};
use hyper::header::HeaderValue;
use rustix::net::{Shutdown, sockopt};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed}; // one thread has it
use std::task::{Context, Poll, ready};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

/// The connection that a request came on, as the request sees it.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    connection: Arc<Connection>,
    address: IpAddr,
}

#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    /// The address, as engines are told of it.
    address: HeaderValue,
    /// Whether the server has the whole of an answer that ends with the connection.
    ends: AtomicBool,
}

/// The client has left, so that no answer can reach it.
#[derive(Debug, Error)]
#[error("the client has left")]
pub(crate) struct ClientLeft;

/// The same connection, as the HTTP server sees it.
#[derive(Debug)]
pub(crate) struct Socket(Arc<Connection>);

impl Connection {
    /// Waits for the kernel to report more before the next read: the last one got less than it could take, so there
    /// is no more. That spares a system call with each request. The event loop runs on this thread, so it has not
    /// noted yet what came since that read, and will.
    fn is_drained(&self) {
        let nothing = || Err::<(), _>(io::ErrorKind::WouldBlock.into());
        // Fails as it is told to.
        let _ = self.stream.try_io(Interest::READABLE, nothing);
    }
}

impl Client {
    pub(crate) fn new(stream: TcpStream, peer: SocketAddr) -> (Self, Socket) {
        let address = peer.ip().to_canonical().to_string();
        let connection = Arc::new(Connection {
            stream,
            address: HeaderValue::try_from(address).unwrap_or(HeaderValue::from_static("unknown")),
            ends: AtomicBool::new(false),
        });
        let client = Self {
            connection: Arc::clone(&connection),
            address: peer.ip(),
        };
        (client, Socket(connection))
    }

    pub(crate) fn address(&self) -> IpAddr {
        self.address
    }

    /// Returns the address for a field of a head.
    pub(crate) fn address_in_head(&self) -> &HeaderValue {
        &self.connection.address
    }

    /// Returns when the client has shut down its sending side, or the connection is broken.
    ///
    /// The server sees the end of a connection only after it has read the bytes before it, and it does not
    /// read on while a request is in flight. The kernel reports the end at once. "Priority" is the only
    /// readiness that bytes do not trigger: it stands for urgent data, which this socket does not watch,
    /// and for the end of the other side.
    pub(crate) async fn leaves(self) -> ClientLeft {
        // Fails only when the event loop ends.
        let _ = self.connection.stream.ready(Interest::PRIORITY).await;
        ClientLeft
    }

    /// Begins an answer whose end is the end of the connection. If the connection is closed before the
    /// whole answer is written, for any reason (a timeout, the death of this process), it is reset.
    /// Otherwise the client would take a part of the answer for the whole.
    pub(crate) fn begins_what_the_close_ends(&self) {
        // Fails for a connection that is broken already.
        let _ = self.connection.stream.set_zero_linger();
    }

    /// Returns when the connection may be closed.
    pub(crate) async fn linger(&self, until: impl Fn() -> Until) {
        linger::linger(&self.connection.stream, until).await;
    }

    /// Notes that the server has the whole of that answer.
    pub(crate) fn has_what_the_close_ends(&self) {
        self.connection.ends.store(true, Relaxed);
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.0.stream.poll_read_ready(cx))?;
            let room = buffer.remaining();
            match self.0.stream.try_read_buf(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(read) => {
                    if (1..room).contains(&read) {
                        self.0.is_drained();
                    }
                    return Poll::Ready(Ok(()));
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

/// Does not offer vectored writes: so the server buffers what is not written yet by size. Otherwise it
/// would buffer a small number of pieces, which is much less of an answer in small pieces.
impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.0.stream.poll_write_ready(cx))?;
            match self.0.stream.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return Poll::Ready(result),
            }
        }
    }

    /// The server flushes when it has written all it had.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // From now on a close delivers what the kernel has, and then the end.
        if self.0.ends.load(Relaxed) {
            self.0.ends.store(false, Relaxed);
            sockopt::set_socket_linger(&self.0.stream, None)?;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(rustix::net::shutdown(&self.0.stream, Shutdown::Write).map_err(io::Error::from))
    }
}
