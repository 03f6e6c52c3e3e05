//! Limits how long a client's connection may be silent: between two requests, and within the head of a request.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed}; // one task has it
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, sleep};

/// What a connection is doing, with a count of the changes.
#[derive(Debug)]
pub(crate) struct Phase(AtomicU32);

/// No byte of the next request has come yet.
const IDLE: u32 = 0;
/// A part of the head of a request has come.
const HEAD: u32 = 1;
/// A request is being answered.
const BUSY: u32 = 2;
/// The server has the whole answer, and has not written all of it yet.
const SENDING: u32 = 3;
const PHASES: u32 = 4;

impl Phase {
    /// Returns the phase of a new connection: clients connect in order to send a request.
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(HEAD))
    }

    /// Notes that a request has come.
    pub(crate) fn becomes_busy(&self) {
        self.becomes(BUSY);
    }

    /// Notes that the server has the whole answer.
    pub(crate) fn is_answered(&self) {
        self.becomes(SENDING);
    }

    fn becomes(&self, phase: u32) {
        let changes = self.0.load(Relaxed) / PHASES + 1;
        self.0.store(changes.wrapping_mul(PHASES) | phase, Relaxed);
    }
}

/// A connection that updates its phase when bytes are read, and when all are written.
#[derive(Debug)]
pub(crate) struct Watched<S> {
    pub(crate) stream: S,
    pub(crate) phase: Arc<Phase>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before && self.phase.0.load(Relaxed) % PHASES == IDLE {
            self.phase.becomes(HEAD);
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// The server flushes when it has written all it had.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.phase.0.load(Relaxed) % PHASES == SENDING {
            self.phase.becomes(IDLE);
        }
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// How long a connection may be silent in each phase. Other timeouts apply while an answer is made or written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SilenceLimits {
    pub(crate) idle: Duration,
    pub(crate) head: Duration,
}

/// Serves a connection until it ends or has been silent for too long.
pub(crate) async fn serve(connection: impl Future, phase: Arc<Phase>, limits: SilenceLimits) {
    let mut connection = pin!(connection);
    let mut end = pin!(sleep(limits.head));
    let (mut deadline, mut seen) = (end.deadline(), phase.0.load(Relaxed));
    poll_fn(|cx| {
        if connection.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        // Polling the connection is what changes the phase.
        let now = phase.0.load(Relaxed);
        let limit = match now % PHASES {
            BUSY | SENDING => return Poll::Pending,
            IDLE => limits.idle,
            _ => limits.head,
        };
        if now != seen {
            seen = now;
            deadline = Instant::now() + limit;
            // A timer that fires too early is set again then, which is cheaper than to set it with each request.
            if deadline < end.deadline() {
                end.as_mut().reset(deadline);
            }
        }
        while end.as_mut().poll(cx).is_ready() {
            if Instant::now() >= deadline {
                return Poll::Ready(());
            }
            end.as_mut().reset(deadline);
        }
        Poll::Pending
    })
    .await;
}
