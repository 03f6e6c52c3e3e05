//! A client's connection: the server reads and writes it, and a request in flight sees whether the
//! client has left.

use rustix::net::Shutdown;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

/// What requests know of the connection that they came on.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    stream: Arc<TcpStream>,
    address: IpAddr,
}

/// The client has left, so no answer can reach it.
#[derive(Debug, Error)]
#[error("the client has left")]
pub(crate) struct Left;

/// The same connection, for the server that speaks HTTP on it.
#[derive(Debug)]
pub(crate) struct Socket(Arc<TcpStream>);

impl Client {
    pub(crate) fn new(stream: TcpStream, peer: SocketAddr) -> (Self, Socket) {
        let stream = Arc::new(stream);
        let client = Self {
            stream: Arc::clone(&stream),
            address: peer.ip(),
        };
        (client, Socket(stream))
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
    pub(crate) async fn leaves(self) -> Left {
        // Fails when the event loop ends, and the client with it.
        let _ = self.stream.ready(Interest::PRIORITY).await;
        Left
    }

    /// Lets the connection be reset when it is closed. Without it, a client that finds the end of an
    /// answer by the end of the connection takes an answer that was cut for a whole one.
    pub(crate) fn reset_at_close(&self) {
        // Fails for a connection that is broken already.
        let _ = self.stream.set_zero_linger();
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.0.poll_read_ready(cx))?;
            match self.0.try_read_buf(buffer) {
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
            ready!(self.0.poll_write_ready(cx))?;
            match self.0.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return Poll::Ready(result),
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(rustix::net::shutdown(&self.0, Shutdown::Write).map_err(io::Error::from))
    }
}
