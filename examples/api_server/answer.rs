//! The body of an answer, on its way to the client. It owns the permit.

use crate::exchange::{Connection, Idle};
use crate::patience::Patience;
use bytes::Bytes;
use headcount::Permit;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use thiserror::Error;

/// Passes on what comes from the engine, piece by piece and as it comes.
///
/// The server drops it when the last byte has been passed on or the client has left, and with it the
/// permit. A connection whose answer was not read to its end is closed then, by which the engine
/// learns that nobody waits any more.
#[derive(Debug)]
pub(crate) struct Answer {
    body: Incoming,
    patience: Patience,
    is_whole: bool,
    connection: Option<(Connection, String)>,
    idle: Arc<Idle>,
    _permit: Permit,
}

/// Why an answer ended before its end. The client's connection is closed then, for its head is out.
#[derive(Debug, Error)]
pub(crate) enum Cut {
    #[error("the engine has broken off: {0}")]
    BrokenOff(#[from] hyper::Error),
    #[error("the engine has said nothing for {} s", limit.as_secs_f32())]
    TooSlow { limit: Duration },
}

impl Answer {
    /// `limit` is how long the engine may pause.
    pub(crate) fn new(
        body: Incoming,
        limit: Duration,
        permit: Permit,
        connection: Connection,
        idle: Arc<Idle>,
    ) -> Self {
        Self {
            body,
            patience: Patience::new(limit),
            is_whole: false,
            connection: Some((connection, permit.engine_name())),
            idle,
            _permit: permit,
        }
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let this = &mut *self;
        let next = Pin::new(&mut this.body).poll_frame(cx);
        let Poll::Ready(next) = this.patience.watch(next, cx) else {
            return Poll::Pending;
        };
        let limit = this.patience.limit();
        Poll::Ready(match next {
            None => Some(Err(Cut::TooSlow { limit })),
            Some(None) => {
                this.is_whole = true;
                None
            }
            Some(Some(frame)) => Some(frame.map_err(Cut::from)),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        // Of a body whose length was said, nobody asks for the end.
        let is_whole = self.is_whole || self.body.is_end_stream();
        if let Some((connection, engine)) = self.connection.take().filter(|_| is_whole) {
            self.idle.keep(engine, connection);
        }
    }
}
