//! Records each request in the counters, and in the access log if there is one.

use crate::client::silence::Phase;
use crate::log::tell;
use crate::message::error_response::{Code, SHUTDOWN};
use crate::message::headers;
use crate::message::idle_timeout::WaitedTime;
use crate::process::ending::Ending;
use crate::report::counters::Counters;
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{CONNECTION, HeaderMap, HeaderName, HeaderValue};
use hyper::{Request, Response, StatusCode};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The status if the client left before there was an answer, as in nginx's log.
const CLIENT_LEFT: u16 = 499;

/// Where a worker's requests are recorded.
#[derive(Debug)]
pub(crate) struct Recorder {
    pub(crate) counters: Arc<Counters>,
    pub(crate) ending: Arc<Ending>,
    pub(crate) has_access_log: bool,
    pub(crate) has_queue: bool,
}

/// The record of a request, from its head to the end of its answer. Dropping it counts and logs the request.
#[derive(Debug)]
pub(crate) struct Record {
    recorder: Arc<Recorder>,
    phase: Arc<Phase>,
    start: Instant,
    /// `None` before there is an answer.
    status: Option<u16>,
    reason: Option<&'static str>,
    sent: u64,
    is_whole: bool,
    /// How long the request has waited for a place, if there is a queue. The request carries this to where it waits.
    waited: Option<WaitedTime>,
    line: Option<Box<AccessLine>>,
}

/// The fields that only the access log has.
#[derive(Debug)]
struct AccessLine {
    client: IpAddr,
    method: String,
    target: String,
    id: String,
    at: CurrentEngine,
    first_byte: Option<f64>,
}

/// The engine that a request is on, or was on last. The request carries this to where the engine is chosen.
#[derive(Clone, Debug, Default)]
pub(crate) struct CurrentEngine(Arc<Mutex<Option<String>>>);

impl CurrentEngine {
    pub(crate) fn set(&self, engine: &str) {
        *self.lock() = Some(cut(engine, ENGINE));
    }

    fn lock(&self) -> MutexGuard<'_, Option<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many bytes of each field are logged at most. So a line has fewer than the 4,096 bytes that a pipe
/// takes in one piece, and lines of several workers do not mix.
const TARGET: usize = 2048;
const ID: usize = 512;
const METHOD: usize = 64;
const ENGINE: usize = 512;

impl Recorder {
    /// Begins the record of a request.
    pub(crate) fn begin<B>(
        self: &Arc<Self>,
        phase: &Arc<Phase>,
        client: IpAddr,
        request: &mut Request<B>,
    ) -> Record {
        phase.becomes_busy();
        let line = self.has_access_log.then(|| {
            let at = CurrentEngine::default();
            request.extensions_mut().insert(at.clone());
            Box::new(AccessLine {
                client,
                method: cut(request.method().as_str(), METHOD),
                target: cut(&request.uri().to_string(), TARGET),
                id: text(request.headers(), &headers::REQUEST_ID, ID),
                at,
                first_byte: None,
            })
        });
        let waited = self.has_queue.then(WaitedTime::default);
        if let Some(waited) = &waited {
            request.extensions_mut().insert(waited.clone());
        }
        Record {
            recorder: Arc::clone(self),
            phase: Arc::clone(phase),
            start: Instant::now(),
            status: None,
            reason: None,
            sent: 0,
            is_whole: false,
            waited,
            line,
        }
    }
}

impl Record {
    /// Notes the head of the answer. The returned answer goes on recording while its body goes out.
    pub(crate) fn answered<B: Body>(mut self, response: Response<B>) -> Response<RecordedBody<B>> {
        self.status = Some(response.status().as_u16());
        self.reason = response.extensions().get().map(|Code(code)| *code);
        if let Some(line) = &mut self.line {
            // An answer to HEAD has no body.
            self.is_whole |= line.method == "HEAD";
            line.first_byte = Some(self.start.elapsed().as_secs_f64());
        }
        self.is_whole |= response.body().is_end_stream();
        let waited = self.waited.as_ref().map(WaitedTime::so_far);
        let waited = waited.filter(|waited| !waited.is_zero());
        let is_last = self.recorder.ending.is_draining();
        let mut response = response.map(|body| RecordedBody { body, record: self });
        if let Some(waited) = waited {
            let waited = HeaderValue::from(waited.as_millis() as u64);
            response.headers_mut().insert(headers::WAITED, waited);
        }
        if is_last {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(CONNECTION, close);
        }
        response
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        self.phase.is_answered();
        let took = self.start.elapsed();
        let is_cutting = self.recorder.ending.is_cutting();
        let (status, reason) = match self.status {
            Some(status) => (status, self.reason),
            // The client could not even be told.
            None if is_cutting => (StatusCode::SERVICE_UNAVAILABLE.as_u16(), Some(SHUTDOWN)),
            None => (CLIENT_LEFT, None),
        };
        let is_cut = is_cutting && (!self.is_whole || reason == Some(SHUTDOWN));
        let counts = self.recorder.counters.own();
        counts.ended(status, reason, took, self.sent);
        if let Some(line) = &self.line {
            let time = SystemTime::now().duration_since(UNIX_EPOCH);
            let line = serde_json::json!({
                "time": time.map_or(0.0, |time| (time.as_secs_f64() * 1e3).round() / 1e3),
                "id": line.id,
                "client": line.client.to_string(),
                "method": line.method,
                "target": line.target,
                "status": status,
                "reason": reason,
                "engine": *line.at.lock(),
                "waited_s": self.waited.as_ref().map(|waited| waited.so_far().as_secs_f64()),
                "first_byte_s": line.first_byte,
                "duration_s": took.as_secs_f64(),
                "bytes": self.sent,
                "complete": self.is_whole,
                "cut": is_cut.then_some(SHUTDOWN),
                "worker": std::process::id(),
            });
            tell(line);
        }
    }
}

fn text(headers: &HeaderMap, name: &HeaderName, most: usize) -> String {
    let value = headers.get(name).map(HeaderValue::as_bytes);
    cut(&String::from_utf8_lossy(value.unwrap_or_default()), most)
}

/// Returns the beginning of a text that takes no more than so many bytes in JSON.
fn cut(text: &str, most: usize) -> String {
    let mut length = 0;
    let fits = |c: &char| {
        length += match c {
            '"' | '\\' => 2,
            c if c.is_control() => 6,
            c => c.len_utf8(),
        };
        length <= most
    };
    text.chars().take_while(fits).collect()
}

/// The body of an answer, which records itself as it goes out.
pub(crate) struct RecordedBody<B> {
    body: B,
    record: Record,
}

impl<B: Body<Data = Bytes> + Unpin> Body for RecordedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        match &frame {
            Poll::Ready(Some(Ok(frame))) => {
                let length = frame.data_ref().map_or(0, Bytes::len);
                self.record.sent += length as u64;
                self.record.is_whole = self.body.is_end_stream();
            }
            Poll::Ready(None) => self.record.is_whole = true,
            _ => {}
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
