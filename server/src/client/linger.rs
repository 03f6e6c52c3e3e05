//! Ends a client's connection so that the last bytes reach the client.
//!
//! If more bytes come on a connection that was closed, the kernel resets it, and the client loses what it has not
//! read yet. So the worker shuts down its sending side first, and for a while reads and discards what comes
//! (RFC 9112, section 9.6). No request is in flight meanwhile.

use rustix::net::{Shutdown, shutdown, sockopt};
use std::future::Future;
use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

/// How long the end of a connection may take in all.
const IN_ALL: Duration = Duration::from_secs(30);
/// How long neither a byte nor an acknowledgement may come.
const SILENT: Duration = Duration::from_secs(5);
/// How soon to check for acknowledgements first, and how often later.
const FIRST_CHECK: Duration = Duration::from_millis(1);
const CHECK: Duration = Duration::from_millis(250);

/// The connections that are ending, for which the end of the process waits.
#[derive(Debug)]
pub(crate) struct Lingering(watch::Sender<()>);

impl Lingering {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(()))
    }

    /// Adds a connection, until the returned value is dropped.
    pub(crate) fn one(&self) -> watch::Receiver<()> {
        self.0.subscribe()
    }

    /// Returns when there are no such connections.
    pub(crate) fn end(&self) -> impl Future<Output = ()> {
        self.0.closed()
    }
}

/// How long to linger at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Until {
    /// Until it has closed its side.
    Closed,
    /// Until its host has acknowledged all that was sent.
    Received,
    /// Not at all: descriptors are scarce.
    Now,
}

/// Returns when a connection may be closed.
pub(crate) async fn linger(stream: &TcpStream, until: impl Fn() -> Until) {
    // A connection whose answer was cut has to be reset. One that is broken needs no end.
    if matches!(sockopt::socket_linger(stream), Ok(Some(Duration::ZERO)))
        || shutdown(stream, Shutdown::Write).is_err()
    {
        return;
    }
    let start = Instant::now();
    let (mut progress, mut left, mut pause) = (start, libc::c_int::MAX, FIRST_CHECK);
    loop {
        match stream.try_read(&mut [0; 4096]) {
            Ok(1..) => {
                progress = Instant::now();
                // So that a client that sends much does not keep the other tasks waiting.
                tokio::task::yield_now().await;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // The client has closed its side, or the connection is broken.
            _ => return,
        }
        let now = Instant::now();
        let before = std::mem::replace(&mut left, unacknowledged(stream));
        if left < before {
            progress = now;
        }
        let is_enough = match until() {
            Until::Closed => false,
            Until::Received => left == 0,
            Until::Now => true,
        };
        if is_enough || now - start >= IN_ALL || now - progress >= SILENT {
            return;
        }
        if timeout(pause, stream.readable()).await.is_err() {
            pause = (pause * 2).min(CHECK);
        }
    }
}

/// Returns how many bytes the other host has not acknowledged, counting the end of the stream as one.
fn unacknowledged(stream: &TcpStream) -> libc::c_int {
    let mut bytes: libc::c_int = 0;
    // SAFETY: writes one number there.
    let got = unsafe { libc::ioctl(stream.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if got == 0 { bytes } else { 0 }
}
