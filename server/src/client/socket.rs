//! A client's connection: the server reads and writes it, and a request in flight sees whether the
//! client has left.

use crate::client::linger::{self, Until};
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

/// What requests know of the connection that they came on.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    connection: Arc<Connection>,
    address: IpAddr,
}

#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    /// The server has all of an answer that ends with the connection.
    ends: AtomicBool,
}

/// The client has left, so no answer can reach it.
#[derive(Debug, Error)]
#[error("the client has left")]
pub(crate) struct ClientLeft;

/// The same connection, for the server that speaks HTTP on it.
#[derive(Debug)]
pub(crate) struct Socket(Arc<Connection>);

impl Client {
    pub(crate) fn new(stream: TcpStream, peer: SocketAddr) -> (Self, Socket) {
        let connection = Arc::new(Connection {
            stream,
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

    /// Ends when the client has shut down its sending side, or the connection is broken.
    ///
    /// The server sees the end of a connection only when it has read what lies before it, and it does
    /// not read on while a request is in flight. The kernel tells of the end at once. Of all that can be
    /// waited for, "priority" is what is not woken by bytes: it stands for urgent data, which is not
    /// watched on this socket, and for the end of the other side.
    pub(crate) async fn leaves(self) -> ClientLeft {
        // Fails when the event loop ends, and the client with it.
        let _ = self.connection.stream.ready(Interest::PRIORITY).await;
        ClientLeft
    }

    /// An answer begins whose end is the end of the connection. If the connection is closed before it is
    /// written whole, it is reset, however that comes: by a limit of time, or by the death of this process. Else
    /// its client would take what it has for the whole.
    pub(crate) fn begins_what_the_close_ends(&self) {
        // Fails for a connection that is broken already.
        let _ = self.connection.stream.set_zero_linger();
    }

    /// Returns when the connection may be closed.
    pub(crate) async fn linger(&self, until: impl Fn() -> Until) {
        linger::linger(&self.connection.stream, until).await;
    }

    /// The server has all of that answer.
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
            match self.0.stream.try_read_buf(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return Poll::Ready(result.map(drop)),
            }
        }
    }
}

/// Not by many pieces at once: the server then keeps what is not written yet as bytes, up to a size, and not
/// as so many pieces, of which it takes few. Of an answer in small pieces that is much more.
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

    /// The server flushes when it has written all that it had.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The kernel delivers what it has, then the end.
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
