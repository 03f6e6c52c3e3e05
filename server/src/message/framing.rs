//! Checks where messages end, and which host they are for, as far as hyper does not (RFC 9112, sections 3.2
//! and 6).
//!
//! hyper refuses a request whose lengths differ or make no sense, or whose transfer coding does not end in
//! `chunked`. With a length and `chunked`, it goes by `chunked`, drops the length, and closes the
//! connection after the answer.

use crate::message::error_response::ErrorResponse;
use crate::message::upload::Upload;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::http::uri::{Authority, PathAndQuery};
use hyper::http::{request, response};
use hyper::{HeaderMap, Method, StatusCode, Uri, Version};

const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Checks in the head of a request what hyper does not.
pub(crate) fn check_request(head: &request::Parts) -> Result<(), ErrorResponse> {
    let mut hosts = head.headers.get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) if head.version >= Version::HTTP_11 => {
            return Err(ErrorResponse::Host("names no host"));
        }
        (Some(_), Some(_)) => return Err(ErrorResponse::Host("names a host twice")),
        (Some(host), None) if !is_host(host) => {
            return Err(ErrorResponse::Host("names a host that is not one"));
        }
        _ => {}
    }
    if !is_target(&head.method, &head.uri) {
        return Err(ErrorResponse::Target);
    }
    match coding(&head.headers) {
        Coding::None | Coding::Chunked => Ok(()),
        Coding::Other => Err(ErrorResponse::TransferCoding),
        Coding::Several => Err(ErrorResponse::TransferCodings),
    }
}

/// Whether a target is a path or a whole URL, or one of the forms that `OPTIONS` and `CONNECT` have (RFC 9112,
/// section 3.2). hyper turns every other target into the path `/`, which the client did not ask for.
fn is_target(method: &Method, target: &Uri) -> bool {
    let path = target.path_and_query().map_or("", PathAndQuery::as_str);
    match (target.scheme(), target.authority()) {
        (Some(_), Some(_)) => true,
        (None, None) => path.starts_with('/') || (method == Method::OPTIONS && path == "*"),
        _ => method == Method::CONNECT,
    }
}

/// Whether the client waits for 100 before it sends the body.
pub(crate) fn is_expecting(head: &request::Parts) -> bool {
    // hyper goes by the last one of several.
    let expect = head.headers.get_all(header::EXPECT).iter().next_back();
    head.version >= Version::HTTP_11
        && expect.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}

/// Sets the framing of the body that goes to the engine: its length if that is known, otherwise `chunked`.
/// A request that had no body goes without one.
pub(crate) fn set_length(headers: &mut HeaderMap, had_body: bool, upload: &Upload) {
    match upload.length() {
        Some(length) if had_body => drop(headers.insert(header::CONTENT_LENGTH, length.into())),
        Some(_) => {}
        None => {
            headers.remove(header::CONTENT_LENGTH);
            let chunked = HeaderValue::from_static("chunked");
            headers.insert(header::TRANSFER_ENCODING, chunked);
        }
    }
}

/// Whether a request announces a body, even an empty one.
pub(crate) fn has_body(headers: &HeaderMap) -> bool {
    headers.contains_key(header::CONTENT_LENGTH) || headers.contains_key(header::TRANSFER_ENCODING)
}

/// Checks the head of an engine's answer, and turns it into the head of ours. Returns whether the
/// connection can be used again.
pub(crate) fn check_answer(head: &mut response::Parts) -> Result<bool, &'static str> {
    // hyper has skipped all others of that kind.
    if head.status.is_informational() {
        return Err("it changed to another protocol without being asked");
    }
    let length = length(&head.headers)?;
    let coding = coding(&head.headers);
    if matches!(coding, Coding::Other | Coding::Several) {
        return Err("its answer has a transfer coding other than chunked");
    }
    // On this connection hyper would send the next request to an engine of HTTP/1.0 as HTTP/1.0, which has
    // no chunks.
    let is_new = head.version == Version::HTTP_11;
    let is_clear = length.is_none() || coding == Coding::None;
    // If both are there, chunked counts: a length beside it may be an attempt to smuggle a message.
    match length.filter(|_| is_clear && head.status != StatusCode::NO_CONTENT) {
        Some(length) => drop(head.headers.insert(header::CONTENT_LENGTH, length.into())),
        None => drop(head.headers.remove(header::CONTENT_LENGTH)),
    }
    // The client gets our version, whatever the version of the engine.
    head.version = Version::HTTP_11;
    Ok(is_clear && is_new)
}

/// Whether a body is a stream of events.
pub(crate) fn is_event_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("text/event-stream")
}

/// Tells an nginx in front to pass on events as they come.
pub(crate) fn let_events_pass(headers: &mut HeaderMap) {
    if is_event_stream(headers) {
        let no = HeaderValue::from_static("no");
        headers.entry(ACCEL_BUFFERING).or_insert(no);
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Coding {
    None,
    Chunked,
    /// Another coding, chunked with another, or chunked twice.
    Other,
    /// Codings on several lines.
    Several,
}

fn coding(headers: &HeaderMap) -> Coding {
    let mut values = headers.get_all(header::TRANSFER_ENCODING).iter();
    match (values.next(), values.next()) {
        (None, _) => Coding::None,
        (Some(_), Some(_)) => Coding::Several,
        (Some(one), _) if one.as_bytes().eq_ignore_ascii_case(b"chunked") => Coding::Chunked,
        _ => Coding::Other,
    }
}

/// Returns the length in a head, which may stand there several times.
fn length(headers: &HeaderMap) -> Result<Option<u64>, &'static str> {
    let mut length = None;
    for value in headers.get_all(header::CONTENT_LENGTH) {
        let value = value.to_str().unwrap_or_default();
        for number in value.split(',').map(str::trim) {
            // `parse` accepts a sign; a length has none.
            let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
            match number.parse() {
                Ok(number) if is_number && length.is_none_or(|length| length == number) => {
                    length = Some(number);
                }
                _ => return Err("its answer has lengths that differ or are not numbers"),
            }
        }
    }
    Ok(length)
}

/// Whether a value has the form `HOST[:PORT]`, or is empty, as for a target without a host.
fn is_host(host: &HeaderValue) -> bool {
    let host = host.as_bytes();
    host.is_empty() || (!host.contains(&b'@') && Authority::try_from(host).is_ok())
}
