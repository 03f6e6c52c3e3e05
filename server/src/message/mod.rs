//! HTTP messages: where they end, which fields are passed on, their bodies, and errors as answers.

pub(crate) mod error_response;
pub(crate) mod framing;
pub(crate) mod headers;
pub(crate) mod idle_timeout;
pub(crate) mod upload;
