//! Answers that no engine has given: errors, in OpenAI's form.

use crate::message::upload;
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ALLOW, CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};
use std::io;
use std::time::Duration;
use thiserror::Error;

/// After how many seconds to try again. An engine may have room in a moment; when is not known.
const RETRY: HeaderValue = HeaderValue::from_static("1");

/// The most seconds to tell: a rate of service that was measured a moment ago says nothing of tomorrow.
const LONGEST: u128 = 3600;

/// The methods of our own pages.
const PAGE_METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD");

/// The code of a request that is cut at the end of the deployment.
pub(crate) const SHUTDOWN: &str = "shutdown";

/// Why no engine answered a request. The message is for the client.
#[derive(Debug, Error)]
pub(crate) enum ErrorResponse {
    #[error("all engines are at their limits; try again soon")]
    Saturated,
    #[error("all engines are at their limits, and {}", full(*.class))]
    QueueFull {
        /// The class whose own bound it is.
        class: Option<u8>,
        /// When there may be room, if that is known.
        retry_after: Option<Duration>,
    },
    #[error(
        "the request waited for {:.1} s, and no engine had room for it in that time; try again soon",
        waited.as_secs_f32()
    )]
    QueueTimeout { waited: Duration },
    #[error(
        "the field {field} names no class; give one number from 0, which is served first, to 3"
    )]
    Class { field: HeaderName },
    #[error("the field {field} names no tenant; give one name, of at most {most} bytes of UTF-8")]
    Tenant { field: HeaderName, most: usize },
    #[error(
        "an engine would run {asked} sequences for this request (its prompts, times n or best_of), and no engine takes more than {most} at once; split the request"
    )]
    TooManySequences { asked: u64, most: u32 },
    #[error("no engine can take this request now; try again soon")]
    NoEngine,
    #[error("{engine} was sent the request and gave no answer that can be passed on: {reason}")]
    EngineBrokeOff { engine: String, reason: String },
    #[error("{engine} did not begin its answer within {} s", limit.as_secs_f32())]
    EngineTooSlow { engine: String, limit: Duration },
    #[error("no connection to an engine can be opened here ({0}); try again soon")]
    NoConnection(io::Error),
    #[error("the table refused: {0}")]
    Table(headcount::Error),
    #[error("{0}")]
    Body(#[from] upload::UploadError),
    #[error(
        "the length of a body this large must be known before an engine is chosen; send it with Content-Length"
    )]
    LengthRequired,
    #[error(
        "the prompt has more than {most} lists and objects within one another, so its sequences and tokens cannot be counted; nest it less"
    )]
    TooDeep { most: u32 },
    #[error("the request {0}; name one in the field Host")]
    Host(&'static str),
    #[error("the target of the request is not a path; begin it with / or http://")]
    Target,
    #[error("the body has a transfer coding other than chunked; send it with chunked alone")]
    TransferCoding,
    #[error("the body has its transfer codings on several lines; send it with chunked alone")]
    TransferCodings,
    #[error("this path answers GET and HEAD only")]
    Method,
    #[error("this server has as many clients as it has descriptors for; try again soon")]
    TooManyConnections,
    #[error("this server is ending, and no engine has begun an answer; try again")]
    Shutdown,
    #[error("connections are not handed over to other protocols here (no WebSocket, no CONNECT)")]
    Upgrade,
}

/// The code of an error, attached to its response for the counters and the access log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Code(pub(crate) &'static str);

impl ErrorResponse {
    fn status(&self) -> StatusCode {
        match self {
            Self::Saturated
            | Self::QueueFull { .. }
            | Self::QueueTimeout { .. }
            | Self::NoEngine
            | Self::NoConnection(_)
            | Self::TooManyConnections
            | Self::Shutdown => StatusCode::SERVICE_UNAVAILABLE,
            Self::EngineBrokeOff { .. } => StatusCode::BAD_GATEWAY,
            Self::EngineTooSlow { .. } => StatusCode::GATEWAY_TIMEOUT,
            Self::TooManySequences { .. } | Self::Body(upload::UploadError::TooLarge { .. }) => {
                StatusCode::PAYLOAD_TOO_LARGE
            }
            Self::LengthRequired => StatusCode::LENGTH_REQUIRED,
            Self::Body(upload::UploadError::TooSlow { .. }) => StatusCode::REQUEST_TIMEOUT,
            Self::Body(upload::UploadError::BrokenOff)
            | Self::TooDeep { .. }
            | Self::Host(_)
            | Self::Target
            | Self::Class { .. }
            | Self::Tenant { .. }
            | Self::TransferCodings => StatusCode::BAD_REQUEST,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::TransferCoding | Self::Upgrade => StatusCode::NOT_IMPLEMENTED,
            Self::Table(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Returns the code, by which programs tell errors apart.
    fn code(&self) -> &'static str {
        match self {
            Self::Saturated => "engines_saturated",
            Self::QueueFull { .. } => "queue_full",
            Self::QueueTimeout { .. } => "queue_timeout",
            Self::Class { .. } => "invalid_class",
            Self::Tenant { .. } => "invalid_tenant",
            Self::TooManySequences { .. } => "too_many_sequences",
            Self::NoEngine => "no_engine",
            Self::EngineBrokeOff { .. } => "engine_broke_off",
            Self::EngineTooSlow { .. } => "engine_timeout",
            Self::NoConnection(_) => "no_connection",
            Self::TooManyConnections => "too_many_connections",
            Self::Shutdown => SHUTDOWN,
            Self::Table(_) => "table",
            Self::Body(upload::UploadError::TooLarge { .. }) => "body_too_large",
            Self::Body(upload::UploadError::TooSlow { .. }) => "body_timeout",
            Self::Body(upload::UploadError::BrokenOff) => "body_broken_off",
            Self::LengthRequired => "length_required",
            Self::TooDeep { .. } => "nested_too_deeply",
            Self::Host(_) => "invalid_host",
            Self::Target => "invalid_target",
            Self::TransferCoding | Self::TransferCodings => "transfer_coding_not_supported",
            Self::Method => "method_not_allowed",
            Self::Upgrade => "upgrade_not_supported",
        }
    }

    /// Whether this is the last request on the connection: other servers on the way may have read it
    /// differently, or the client goes on in another protocol, so the bytes that follow cannot be trusted;
    /// or this server is ending.
    fn ends_connection(&self) -> bool {
        matches!(
            self,
            Self::Host(_)
                | Self::Target
                | Self::TransferCoding
                | Self::TransferCodings
                | Self::Upgrade
                | Self::Shutdown
        )
    }

    /// Returns after how many seconds to try again.
    fn retry_after(&self) -> HeaderValue {
        match self {
            Self::QueueFull {
                retry_after: Some(after),
                ..
            } => {
                HeaderValue::from(after.as_nanos().div_ceil(1_000_000_000).clamp(1, LONGEST) as u64)
            }
            _ => RETRY,
        }
    }

    pub(crate) fn into_response(self) -> Response<Full<Bytes>> {
        let status = self.status();
        let kind = if status.is_client_error() {
            "invalid_request_error"
        } else {
            "server_error"
        };
        let error = serde_json::json!({"error": {
            "message": self.to_string(),
            "type": kind,
            "param": null,
            "code": self.code(),
        }});
        let mut response = json(status, &error);
        response.extensions_mut().insert(Code(self.code()));
        if self.ends_connection() {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(CONNECTION, close);
        }
        match status {
            StatusCode::SERVICE_UNAVAILABLE => {
                (response.headers_mut()).insert(RETRY_AFTER, self.retry_after());
            }
            StatusCode::METHOD_NOT_ALLOWED => {
                response.headers_mut().insert(ALLOW, PAGE_METHODS);
            }
            _ => {}
        }
        response
    }
}

fn full(class: Option<u8>) -> String {
    match class {
        None => "the queue is full; try again later".to_owned(),
        Some(class) => format!("the queue has no place for class {class}; try again later"),
    }
}

pub(crate) fn json(status: StatusCode, content: &serde_json::Value) -> Response<Full<Bytes>> {
    text(status, "application/json", content.to_string())
}

pub(crate) fn text(status: StatusCode, kind: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
