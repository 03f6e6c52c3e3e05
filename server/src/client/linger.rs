//! The end of a client's connection, so that what was sent gets to the client.
//!
//! A connection that is closed is reset when something more comes on it, and the reset takes with it what the
//! client has not got yet. So the sending side is shut down first, and what comes is read and thrown away for a
//! while (RFC 9112, section 9.6). No place at an engine is held meanwhile.

use rustix::net::{Shutdown, shutdown, sockopt};
use std::future::Future;
use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

/// How long it may take in all.
const IN_ALL: Duration = Duration::from_secs(30);
/// How long there may be neither a byte that comes nor an acknowledgement of one that was sent.
const SILENT: Duration = Duration::from_secs(5);
/// How soon acknowledgements are first looked for, and how often later.
const FIRST_LOOK: Duration = Duration::from_millis(1);
const LOOK: Duration = Duration::from_millis(250);

/// The connections that are being ended, for the end of the process to wait for.
#[derive(Debug)]
pub(crate) struct Lingering(watch::Sender<()>);

impl Lingering {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(()))
    }

    /// Is one of them as long as what this returns is kept.
    pub(crate) fn one(&self) -> watch::Receiver<()> {
        self.0.subscribe()
    }

    /// Returns when there are none.
    pub(crate) fn end(&self) -> impl Future<Output = ()> {
        self.0.closed()
    }
}

/// How much until there is with a client.
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
    // One whose answer was cut and that has to be reset; or one that is broken already.
    if matches!(sockopt::socket_linger(stream), Ok(Some(Duration::ZERO)))
        || shutdown(stream, Shutdown::Write).is_err()
    {
        return;
    }
    let start = Instant::now();
    let (mut progress, mut left, mut pause) = (start, libc::c_int::MAX, FIRST_LOOK);
    loop {
        match stream.try_read(&mut [0; 4096]) {
            Ok(1..) => {
                progress = Instant::now();
                // Others have their turn as well.
                tokio::task::yield_now().await;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // It has closed its side, or the connection is broken.
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
            pause = (pause * 2).min(LOOK);
        }
    }
}

/// How much the other host has not acknowledged, the end of the connection included.
fn unacknowledged(stream: &TcpStream) -> libc::c_int {
    let mut bytes: libc::c_int = 0;
    // SAFETY: writes one number there.
    let got = unsafe { libc::ioctl(stream.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if got == 0 { bytes } else { 0 }
}
