//! Answers that no engine has given: errors, in the form of OpenAI's.

use crate::proxy::Reply;
use crate::upload;
use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};
use std::io;
use std::time::Duration;
use thiserror::Error;

/// Seconds after which to try again. A place may be free in a moment; nobody knows when.
const RETRY: HeaderValue = HeaderValue::from_static("1");

/// Why a request was not answered by an engine. The message is for the client.
#[derive(Debug, Error)]
pub(crate) enum Refusal {
    #[error("all engines are at their limits; try again soon")]
    Saturated,
    #[error("the prompt has some {tokens} tokens, more than any engine takes at once; shorten it")]
    TooManyTokens { tokens: u32 },
    #[error("no engine can take this request now; try again soon")]
    NoEngine,
    #[error("the engine broke off before it answered; try again")]
    EngineBrokeOff,
    #[error("the engine did not begin its answer within {} s", limit.as_secs_f32())]
    EngineTooSlow { limit: Duration },
    #[error("no connection to an engine can be opened here ({0}); try again soon")]
    NoConnection(io::Error),
    #[error("the table refused: {0}")]
    Table(headcount::Error),
    #[error("{0}")]
    Body(#[from] upload::Cut),
    #[error("connections are not handed over to other protocols here (no WebSocket, no CONNECT)")]
    Upgrade,
}

impl Refusal {
    fn status(&self) -> StatusCode {
        match self {
            Self::Saturated | Self::NoEngine | Self::NoConnection(_) => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Self::EngineBrokeOff => StatusCode::BAD_GATEWAY,
            Self::EngineTooSlow { .. } => StatusCode::GATEWAY_TIMEOUT,
            Self::TooManyTokens { .. } | Self::Body(upload::Cut::TooLarge { .. }) => {
                StatusCode::PAYLOAD_TOO_LARGE
            }
            Self::Body(upload::Cut::TooSlow { .. }) => StatusCode::REQUEST_TIMEOUT,
            Self::Body(upload::Cut::BrokenOff) => StatusCode::BAD_REQUEST,
            Self::Upgrade => StatusCode::NOT_IMPLEMENTED,
            Self::Table(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// For programs.
    fn code(&self) -> &'static str {
        match self {
            Self::Saturated => "engines_saturated",
            Self::TooManyTokens { .. } => "too_many_tokens",
            Self::NoEngine => "no_engine",
            Self::EngineBrokeOff => "engine_broke_off",
            Self::EngineTooSlow { .. } => "engine_timeout",
            Self::NoConnection(_) => "no_connection",
            Self::Table(_) => "table",
            Self::Body(upload::Cut::TooLarge { .. }) => "body_too_large",
            Self::Body(upload::Cut::TooSlow { .. }) => "body_timeout",
            Self::Body(upload::Cut::BrokenOff) => "body_broken_off",
            Self::Upgrade => "upgrade_not_supported",
        }
    }

    pub(crate) fn into_response(self) -> Response<Reply> {
        let status = self.status();
        let kind = match status.is_client_error() {
            true => "invalid_request_error",
            false => "server_error",
        };
        let error = serde_json::json!({"error": {
            "message": self.to_string(),
            "type": kind,
            "param": null,
            "code": self.code(),
        }});
        let mut response = json(status, &error);
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(RETRY_AFTER, RETRY);
        }
        response
    }
}

pub(crate) fn json(status: StatusCode, content: &serde_json::Value) -> Response<Reply> {
    text(status, "application/json", content.to_string())
}

pub(crate) fn text(status: StatusCode, kind: &'static str, text: String) -> Response<Reply> {
    let mut response = Response::new(Either::Left(Full::new(Bytes::from(text))));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
