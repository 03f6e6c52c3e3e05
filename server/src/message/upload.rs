//! The body of a request: collected first, then sent to an engine.

use crate::message::idle_timeout::{WaitBudget, WaitedTime};
use crate::options::Options;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use thiserror::Error;
use tokio::time::timeout;

/// How long a client may go on sending a body that will be refused.
const LINGER: Duration = Duration::from_secs(2);

/// A whole body; or the first `--max-held` bytes of a longer one, with the rest still to come from the
/// client.
///
/// The engine is chosen only when this is there. So a slow client is not counted while it sends, the size
/// of its request is known, and a request that one engine did not take can go to another one.
#[derive(Debug)]
pub(crate) struct Upload {
    held: Bytes,
    rest: Option<Rest>,
}

/// What has come of a body. One that comes in one piece is not copied.
#[derive(Debug, Default)]
struct Held {
    first: Bytes,
    /// All pieces, if there are several.
    all: BytesMut,
}

impl Held {
    fn add(&mut self, piece: Bytes) {
        if self.len() == 0 {
            self.first = piece;
            return;
        }
        if self.all.is_empty() {
            self.all.extend_from_slice(&std::mem::take(&mut self.first));
        }
        self.all.extend_from_slice(&piece);
    }

    fn len(&self) -> usize {
        self.first.len() + self.all.len()
    }

    fn freeze(self) -> Bytes {
        if self.all.is_empty() {
            self.first
        } else {
            self.all.freeze()
        }
    }
}

/// The rest of a longer body, which is still to come.
#[derive(Debug)]
struct Rest {
    body: Incoming,
    /// How many bytes the whole body may have, and how many may still come.
    limit: u64,
    room: u64,
    /// How long the client may keep its engine waiting.
    budget: WaitBudget,
}

/// Why the client's body is not complete.
#[derive(Clone, Debug, Error)]
pub(crate) enum UploadError {
    #[error("the body is larger than the {limit} bytes that are allowed here")]
    TooLarge { limit: u64 },
    #[error("the client paused for {} s within the body; send it faster", limit.as_secs_f32())]
    TooSlow { limit: Duration },
    #[error("the body has broken off")]
    BrokenOff,
}

impl Upload {
    /// Collects a body, or the beginning of a longer one. (One that announces too great a length was
    /// refused before.)
    pub(crate) async fn hold(mut body: Incoming, options: &Options) -> Result<Self, UploadError> {
        let limit = options.max_body;
        let mut held = Held::default();
        while !body.is_end_stream() {
            if held.len() as u64 > limit {
                discard(body).await;
                return Err(UploadError::TooLarge { limit });
            }
            if held.len() as u64 >= options.max_held {
                let rest = Rest {
                    body,
                    limit,
                    room: limit - held.len() as u64,
                    budget: WaitBudget::new(options.client_idle_timeout),
                };
                return Ok(Self {
                    held: held.freeze(),
                    rest: Some(rest),
                });
            }
            let pause = options.client_idle_timeout;
            match within(pause, body.frame()).await {
                Some(Some(Ok(frame))) => held.add(frame.into_data().unwrap_or_default()),
                Some(Some(Err(_))) => return Err(UploadError::BrokenOff),
                Some(None) => break,
                None => return Err(UploadError::TooSlow { limit: pause }),
            }
        }
        Ok(Self {
            held: held.freeze(),
            rest: None,
        })
    }

    /// Returns the bytes that were collected.
    pub(crate) fn held(&self) -> &[u8] {
        &self.held
    }

    /// Whether those are the whole body.
    pub(crate) fn is_whole(&self) -> bool {
        self.rest.is_none()
    }

    /// Returns the length of the whole body, if it is known.
    pub(crate) fn length(&self) -> Option<u64> {
        self.size_hint().exact()
    }

    /// Returns how long the engine waits for the client, unless the whole body is there.
    pub(crate) fn waited(&self) -> Option<WaitedTime> {
        self.rest.as_ref().map(|rest| rest.budget.waited())
    }

    /// Reads and discards the rest, for a request that will be refused.
    pub(crate) async fn discard(self) {
        if let Some(rest) = self.rest {
            discard(rest.body).await;
        }
    }

    /// Copies the body, if the whole is there.
    pub(crate) fn copy(&self) -> Option<Self> {
        self.is_whole().then(|| Self {
            held: self.held.clone(),
            rest: None,
        })
    }
}

/// Returns what comes of a body within the limit. hyper reads the body only when it is asked for, so the first try
/// often fails though the bytes are there. The timer begins with the second one, for to set it for nothing is not
/// cheap.
async fn within<T>(limit: Duration, mut next: impl Future<Output = T> + Unpin) -> Option<T> {
    let mut is_first = true;
    let soon = poll_fn(|cx| match Pin::new(&mut next).poll(cx) {
        Poll::Ready(found) => Poll::Ready(Some(found)),
        Poll::Pending if std::mem::take(&mut is_first) => {
            cx.waker().wake_by_ref();
            Poll::Pending
        }
        Poll::Pending => Poll::Ready(None),
    });
    match soon.await {
        Some(found) => Some(found),
        None => timeout(limit, next).await.ok(),
    }
}

/// Reads and discards a body. Many clients send everything before they read the answer, and never see it if the
/// connection is closed meanwhile.
pub(crate) async fn discard(mut body: Incoming) {
    let all = async { while let Some(Ok(_)) = body.frame().await {} };
    let _ = timeout(LINGER, all).await;
}

impl Body for Upload {
    type Data = Bytes;
    type Error = UploadError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        let this = &mut *self;
        if !this.held.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut this.held)))));
        }
        let Some(rest) = &mut this.rest else {
            return Poll::Ready(None);
        };
        let next = Pin::new(&mut rest.body).poll_frame(cx);
        let Poll::Ready(next) = rest.budget.watch(next, cx) else {
            return Poll::Pending;
        };
        Poll::Ready(match next {
            None => Some(Err(UploadError::TooSlow {
                limit: rest.budget.limit(),
            })),
            Some(None) => None,
            Some(Some(Err(_))) => Some(Err(UploadError::BrokenOff)),
            Some(Some(Ok(frame))) => {
                let length = frame.data_ref().map_or(0, |data| data.len() as u64);
                match rest.room.checked_sub(length) {
                    Some(room) => {
                        rest.room = room;
                        Some(Ok(frame))
                    }
                    None => Some(Err(UploadError::TooLarge { limit: rest.limit })),
                }
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        self.held.is_empty() && (self.rest.as_ref()).is_none_or(|rest| rest.body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        let held = self.held.len() as u64;
        let rest = self.rest.as_ref();
        let mut hint = rest.map_or(SizeHint::with_exact(0), |rest| rest.body.size_hint());
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper.saturating_add(held));
        }
        hint.set_lower(hint.lower().saturating_add(held));
        hint
    }
}
