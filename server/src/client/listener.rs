//! The listening socket: the parent makes it, and all workers inherit it.
//!
//! One socket has one queue of connections that are not accepted yet. The queue lives as long as any
//! process has the socket, so a worker that is killed takes no connection along. With a socket for each
//! worker (`SO_REUSEPORT`), the kernel would reset those in the dead worker's queue. The price: a
//! connection wakes all idle workers, and one of them gets it.

use crate::error::Error;
use crate::keepalive::Keepalive;
use rustix::io::{FdFlags, fcntl_setfd};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use tokio::net::TcpSocket;

/// How many connections may wait to be accepted; the kernel caps this at net.core.somaxconn.
const QUEUE: u32 = 4096;

/// Listens on an address, with a socket that all processes started from now on inherit.
pub(crate) fn bind(address: SocketAddr, keepalive: Keepalive) -> Result<TcpListener, Error> {
    let bind = || -> io::Result<TcpListener> {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        // So that a new deployment can take the port while old connections are still closing.
        socket.set_reuseaddr(true)?;
        // Connections inherit these settings from the socket: tokens go out one by one, and a client whose host is
        // gone is noticed.
        socket.set_nodelay(true)?;
        keepalive.apply(&socket);
        socket.bind(address)?;
        let listener = socket.listen(QUEUE)?.into_std()?;
        fcntl_setfd(&listener, FdFlags::empty())?;
        Ok(listener)
    };
    bind().map_err(|source| Error::Listen { address, source })
}

/// Returns the argument by which a worker finds the socket.
pub(crate) fn number(listener: &TcpListener) -> String {
    listener.as_raw_fd().to_string()
}

/// Takes the socket in a worker, by the number that the parent passed.
pub(crate) fn inherited(descriptor: RawFd) -> Result<tokio::net::TcpListener, Error> {
    let failed = |source| Error::system("use the inherited socket", source);
    if descriptor < 3 {
        return Err(failed(io::ErrorKind::InvalidInput.into()));
    }
    // SAFETY: the parent left this descriptor open for us alone to take; nothing in this process has
    // opened or closed one of that number, since this is the first thing that it does.
    let socket = unsafe { OwnedFd::from_raw_fd(descriptor) };
    let listener = TcpListener::from(socket);
    // Not for what this process starts.
    fcntl_setfd(&listener, FdFlags::CLOEXEC).map_err(|e| failed(e.into()))?;
    tokio::net::TcpListener::from_std(listener).map_err(failed)
}
