//! The listening socket: made by the parent, inherited by all workers.
//!
//! One socket for all has one queue of connections that are not accepted yet. It lives as long as
//! any process has it, so a worker that is killed takes none of them along; with a socket for each
//! worker (`SO_REUSEPORT`), the kernel resets those in the dead worker's queue. The price is that
//! workers which are idle all wake up for a connection, and one of them gets it.

use crate::error::Error;
use crate::keepalive::Keepalive;
use rustix::io::{FdFlags, fcntl_setfd};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use tokio::net::TcpSocket;

/// Connections that may wait to be accepted; the kernel caps it at net.core.somaxconn.
const QUEUE: u32 = 4096;

/// Listens at an address, on a socket that the processes started from now on inherit.
pub(crate) fn bind(address: SocketAddr, keepalive: Keepalive) -> Result<TcpListener, Error> {
    let bind = || -> io::Result<TcpListener> {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        // A port whose former connections are still closing may be taken at once.
        socket.set_reuseaddr(true)?;
        // Connections have this from the socket that accepts them: tokens go out one by one, and clients
        // whose host is gone are noticed.
        socket.set_nodelay(true)?;
        keepalive.apply(&socket);
        socket.bind(address)?;
        let listener = socket.listen(QUEUE)?.into_std()?;
        fcntl_setfd(&listener, FdFlags::empty())?;
        Ok(listener)
    };
    bind().map_err(|source| Error::Listen { address, source })
}

/// What a worker is told to find the socket by.
pub(crate) fn number(listener: &TcpListener) -> String {
    listener.as_raw_fd().to_string()
}

/// The socket in a worker, by the number that its parent told it.
pub(crate) fn inherited(descriptor: RawFd) -> Result<tokio::net::TcpListener, Error> {
    let failed = |source| Error::system("use the inherited socket", source);
    if descriptor < 3 {
        return Err(failed(io::ErrorKind::InvalidInput.into()));
    }
    // SAFETY: the parent left this descriptor open for us alone to take; nothing in this process has
    // opened or closed one of that number, since this is the first thing that it does.
    let socket = unsafe { OwnedFd::from_raw_fd(descriptor) };
    let listener = TcpListener::from(socket);
    // Not one to pass on.
    fcntl_setfd(&listener, FdFlags::CLOEXEC).map_err(|e| failed(e.into()))?;
    tokio::net::TcpListener::from_std(listener).map_err(failed)
}
