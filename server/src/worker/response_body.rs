//! The body of an engine's answer on its way to the client. It owns the permits of the request.

use crate::client::socket::{Client, ClientLeft};
use crate::engine::dial::Connection;
use crate::engine::engine_client::IdleConnections;
use crate::engine::names::EngineName;
use crate::message::idle_timeout::IdleTimeout;
use crate::process::ending as process;
use crate::route::output::Output;
use crate::route::permits::Permits;
use crate::worker::Worker;
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use thiserror::Error;

/// Passes on the engine's bytes as they come.
///
/// The server drops this body, and with it the permits, when the last byte has been passed on or the client
/// has left. If the answer was not read to its end, that closes the engine's connection, by which the
/// engine learns that its answer is no longer wanted.
pub(crate) struct ResponseBody {
    body: Incoming,
    idle_timeout: IdleTimeout,
    is_whole: bool,
    /// The engine's connection, which is closed unless it is kept.
    connection: Option<Connection>,
    /// The engine, if the connection can be used again.
    engine: Option<Arc<EngineName>>,
    idle: Arc<IdleConnections>,
    client: Client,
    server: Arc<process::Ending>,
    /// Ready when the answer is to be cut. `None` before the engine has kept the client waiting.
    cut: Option<Cut>,
    /// Whether the client finds the end of the answer by the end of the connection.
    ends_by_close: bool,
    permits: Permits,
    /// The output, if it is counted.
    output: Option<Output>,
}

type Cut = Pin<Box<dyn Future<Output = ResponseError> + Send>>;

/// How the client finds the end of an answer whose length is not known before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    /// By its last chunk.
    Marked,
    /// By the end of the connection, as in HTTP/1.0.
    Close,
}

/// Why an answer was cut. The head is out already, so the client's connection is closed.
#[derive(Debug, Error)]
pub(crate) enum ResponseError {
    #[error("the engine has broken off: {0}")]
    BrokenOff(#[from] hyper::Error),
    #[error("the engine has sent nothing for {} s", limit.as_secs_f32())]
    TooSlow { limit: Duration },
    #[error(transparent)]
    ClientLeft(#[from] ClientLeft),
    #[error("this server is ending")]
    Shutdown,
}

impl ResponseBody {
    /// The connection comes with the engine's name if it can be used again.
    pub(crate) fn new(
        body: Incoming,
        worker: &Worker,
        (permits, output): (Permits, Option<Output>),
        (connection, engine): (Connection, Option<Arc<EngineName>>),
        client: Client,
        ending: Ending,
    ) -> Self {
        let ends_by_close = ending == Ending::Close && body.size_hint().exact().is_none();
        if ends_by_close {
            client.begins_what_the_close_ends();
        }
        Self {
            body,
            idle_timeout: IdleTimeout::new(worker.options.engine_idle_timeout),
            is_whole: false,
            connection: Some(connection),
            engine,
            idle: worker.engines.idle(),
            client,
            server: Arc::clone(&worker.ending),
            cut: None,
            ends_by_close,
            permits,
            output,
        }
    }

    fn cut(client: &Client, server: &process::Ending) -> Cut {
        let (leaves, ends) = (client.clone().leaves(), server.cuts());
        Box::pin(async move {
            tokio::select! {
                left = leaves => left.into(),
                () = ends => ResponseError::Shutdown,
            }
        })
    }

    fn next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, ResponseError>>> {
        let next = Pin::new(&mut self.body).poll_frame(cx);
        if next.is_pending() {
            let cut = (self.cut).get_or_insert_with(|| Self::cut(&self.client, &self.server));
            if let Poll::Ready(cut) = cut.as_mut().poll(cx) {
                return Poll::Ready(Some(Err(cut)));
            }
        }
        let limit = self.idle_timeout.limit();
        self.idle_timeout.watch(next, cx).map(|next| match next {
            None => Some(Err(ResponseError::TooSlow { limit })),
            Some(next) => next.map(|frame| frame.map_err(ResponseError::from)),
        })
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = ResponseError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ResponseError>>> {
        let next = ready!(self.next(cx));
        self.is_whole |= next.is_none();
        let this = &mut *self;
        if let (Some(output), Some(Ok(frame))) = (&mut this.output, &next)
            && let Some(part) = frame.data_ref()
        {
            output.read(part, &mut this.permits);
        }
        Poll::Ready(next)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        // hyper does not poll for the end of a body of known length.
        let is_whole = self.is_whole || self.body.is_end_stream();
        if self.ends_by_close && is_whole {
            self.client.has_what_the_close_ends();
        }
        if is_whole
            && let (Some(connection), Some(engine)) = (self.connection.take(), self.engine.take())
        {
            self.idle.keep(&engine.text, connection);
        }
    }
}
