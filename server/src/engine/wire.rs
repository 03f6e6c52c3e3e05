//! A connection to an engine, as the HTTP library sees it. It fails if the engine talks without answering,
//! or if its host is gone.

use crate::keepalive::Keepalive;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed}; // one thread has it
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};

/// How many bytes an engine may send before its answer begins. Interim answers (103, say) are skipped as
/// fast as they come, so an engine that sends nothing else would keep its worker busy.
const MOST_BEFORE_ANSWER: usize = 1 << 20;

/// The stream of the connection.
#[derive(Debug)]
pub(crate) struct Wire {
    stream: TcpStream,
    interim: InterimBudget,
    keepalive: Keepalive,
    /// When to check next whether the host is gone.
    next_check: Pin<Box<Sleep>>,
}

/// How many bytes an engine may still send before its answer begins.
#[derive(Clone, Debug)]
pub(crate) struct InterimBudget(Arc<AtomicUsize>);

impl InterimBudget {
    pub(crate) fn new() -> Self {
        Self(Arc::new(AtomicUsize::new(usize::MAX)))
    }

    /// Starts to count: a request was sent.
    pub(crate) fn begins(&self) {
        self.0.store(MOST_BEFORE_ANSWER, Relaxed);
    }

    /// Stops counting: the answer has begun, and may have any length.
    pub(crate) fn ends(&self) {
        self.0.store(usize::MAX, Relaxed);
    }

    fn add(&self, bytes: usize) {
        let left = self.0.load(Relaxed);
        if left < usize::MAX {
            self.0.store(left.saturating_sub(bytes), Relaxed);
        }
    }

    fn check(&self) -> io::Result<()> {
        match self.0.load(Relaxed) {
            0 => Err(io::Error::other(format!(
                "the engine sent {MOST_BEFORE_ANSWER} bytes of interim answers"
            ))),
            _ => Ok(()),
        }
    }
}

impl Wire {
    pub(crate) fn new(stream: TcpStream, keepalive: Keepalive, interim: InterimBudget) -> Self {
        Self {
            stream,
            interim,
            keepalive,
            next_check: Box::pin(sleep(keepalive.check_every())),
        }
    }

    /// Fails if the host is gone, which it checks at intervals.
    fn check_host(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        while self.next_check.as_mut().poll(cx).is_ready() {
            if self.keepalive.is_gone(&self.stream) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let next = Instant::now() + self.keepalive.check_every();
            self.next_check.as_mut().reset(next);
        }
        Ok(())
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.interim.check()?;
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if read.is_pending() {
            self.check_host(cx)?;
        }
        self.interim.add(buffer.filled().len() - before);
        read
    }
}

impl AsyncWrite for Wire {
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
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
