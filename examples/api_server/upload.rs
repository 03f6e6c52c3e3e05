//! The body of a request, on its way to an engine.

use crate::options::Options;
use crate::patience::Patience;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use thiserror::Error;
use tokio::time::timeout;

/// How much of a body is kept before an engine is chosen. A prompt of that size has some 16,000
/// tokens.
const KEPT: usize = 64 << 10;

/// How long to wait for as much, or for the end, before the rest is left to come later.
const GATHER: Duration = Duration::from_millis(100);

/// How long a client may go on sending what will be refused.
const LINGER: Duration = Duration::from_secs(2);

/// A body whose beginning is kept, and whose rest is passed on as it comes.
///
/// Most requests are there whole before an engine is chosen: a client that is slow to send holds
/// no place at an engine, and a request that could not be delivered can be delivered elsewhere.
#[derive(Debug)]
pub(crate) struct Upload {
    kept: Bytes,
    rest: Option<Incoming>,
    /// Bytes that it may have, and those that may still come.
    limit: u64,
    room: u64,
    patience: Patience,
}

/// Why a body ended before its end. It is the client's doing.
#[derive(Clone, Debug, Error)]
pub(crate) enum Cut {
    #[error("the body is larger than the {limit} bytes that are allowed here")]
    TooLarge { limit: u64 },
    #[error("the body has not gone on for {} s", limit.as_secs_f32())]
    TooSlow { limit: Duration },
    #[error("the body has broken off")]
    BrokenOff,
}

impl Upload {
    /// Takes in the beginning of a body.
    pub(crate) async fn begin(body: Incoming, options: &Options) -> Result<Self, Cut> {
        let limit = options.max_body;
        if body.size_hint().lower() > limit {
            discard(Some(body)).await;
            return Err(Cut::TooLarge { limit });
        }
        let mut kept = BytesMut::new();
        let mut rest = Some(body);
        let gather = async {
            while let Some(body) = rest.as_mut().filter(|_| kept.len() < KEPT) {
                if body.is_end_stream() {
                    rest = None;
                    continue;
                }
                match body.frame().await {
                    Some(Ok(frame)) => kept.extend(frame.into_data().unwrap_or_default()),
                    Some(Err(_)) => return Err(Cut::BrokenOff),
                    None => rest = None,
                }
                if kept.len() as u64 > limit {
                    return Err(Cut::TooLarge { limit });
                }
            }
            Ok(())
        };
        // A client that takes longer is not wrong; its request then goes out as it comes in.
        timeout(GATHER, gather).await.unwrap_or(Ok(()))?;
        Ok(Self {
            limit,
            room: limit - kept.len() as u64,
            kept: kept.freeze(),
            rest,
            patience: Patience::new(options.client_idle_timeout),
        })
    }

    /// The bytes that are there.
    pub(crate) fn kept(&self) -> &[u8] {
        &self.kept
    }

    /// The length of the whole, as far as it is known.
    pub(crate) fn length(&self) -> u64 {
        self.size_hint().lower()
    }

    /// Takes in the rest, for a request that will be refused.
    pub(crate) async fn discard(self) {
        discard(self.rest).await;
    }

    /// The same body once more, if it is there whole.
    pub(crate) fn copy(&self, options: &Options) -> Option<Self> {
        self.rest.is_none().then(|| Self {
            kept: self.kept.clone(),
            rest: None,
            limit: self.limit,
            room: self.room,
            patience: Patience::new(options.client_idle_timeout),
        })
    }
}

/// Many clients send all before they listen, and hear nothing if the connection is closed meanwhile.
async fn discard(mut rest: Option<Incoming>) {
    let all = async {
        while let Some(body) = &mut rest
            && let Some(Ok(_)) = body.frame().await
        {}
    };
    let _ = timeout(LINGER, all).await;
}

impl Body for Upload {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let this = &mut *self;
        if !this.kept.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut this.kept)))));
        }
        let Some(rest) = &mut this.rest else {
            return Poll::Ready(None);
        };
        let next = Pin::new(rest).poll_frame(cx);
        let Poll::Ready(next) = this.patience.watch(next, cx) else {
            return Poll::Pending;
        };
        Poll::Ready(match next {
            None => Some(Err(Cut::TooSlow {
                limit: this.patience.limit(),
            })),
            Some(None) => None,
            Some(Some(Err(_))) => Some(Err(Cut::BrokenOff)),
            Some(Some(Ok(frame))) => {
                let length = frame.data_ref().map_or(0, |data| data.len() as u64);
                match this.room.checked_sub(length) {
                    Some(room) => {
                        this.room = room;
                        Some(Ok(frame))
                    }
                    None => Some(Err(Cut::TooLarge { limit: this.limit })),
                }
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        self.kept.is_empty() && self.rest.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let kept = self.kept.len() as u64;
        let mut hint = self
            .rest
            .as_ref()
            .map_or(SizeHint::with_exact(0), Body::size_hint);
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper.saturating_add(kept));
        }
        hint.set_lower(hint.lower().saturating_add(kept));
        hint
    }
}
