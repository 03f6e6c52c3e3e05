//! Where messages end, and whom they are for: what hyper leaves to be checked (RFC 9112, sections 3.2
//! and 6).
//!
//! hyper refuses a request whose lengths differ or make no sense, or whose transfer coding does not end
//! in `chunked`. With a length and `chunked`, it goes by `chunked`, forgets the length, and closes the
//! connection after the answer.

use crate::message::error_response::ErrorResponse;
use crate::message::upload::Upload;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::http::uri::{Authority, PathAndQuery};
use hyper::http::{request, response};
use hyper::{HeaderMap, Method, StatusCode, Uri, Version};

const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Checks what hyper lets pass in the head of a request.
pub(crate) fn check_request(head: &request::Parts) -> Result<(), ErrorResponse> {
    let mut hosts = head.headers.get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) if head.version >= Version::HTTP_11 => {
            return Err(ErrorResponse::Host("names no host"));
        }
        (Some(_), Some(_)) => return Err(ErrorResponse::Host("names a host twice")),
        (Some(host), None) if !is_host(host) => {
            return Err(ErrorResponse::Host("names a host that is none"));
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

/// A path, or a whole URL; or what has neither, for the methods that are about no resource (RFC 9112,
/// section 3.2). Of all else hyper makes the path `/`, for which the client did not ask.
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
    // hyper goes by the last of several.
    let expect = head.headers.get_all(header::EXPECT).iter().next_back();
    head.version >= Version::HTTP_11
        && expect.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}

/// Says in the head how the body goes to the engine: with its length if that is known. A request that
/// had no body goes without one.
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

/// Whether a request says that it has a body, if of no bytes.
pub(crate) fn has_body(headers: &HeaderMap) -> bool {
    headers.contains_key(header::CONTENT_LENGTH) || headers.contains_key(header::TRANSFER_ENCODING)
}

/// Checks the head of an engine's answer, and makes of it that of ours. Says whether the connection can
/// be used again.
pub(crate) fn check_answer(head: &mut response::Parts) -> Result<bool, &'static str> {
    // All others of that kind were passed over before.
    if head.status.is_informational() {
        return Err("it changed to another protocol, for which it was not asked");
    }
    let length = length(&head.headers)?;
    let coding = coding(&head.headers);
    if matches!(coding, Coding::Other | Coding::Several) {
        return Err("its answer has a transfer coding other than chunked");
    }
    head.headers.remove(header::CONTENT_LENGTH);
    // Where one spoke HTTP/1.0, the next request would go out as such, which has no chunks.
    let is_new = head.version == Version::HTTP_11;
    let is_clear = length.is_none() || coding == Coding::None;
    // Of the two, chunked is what counts, and a length beside it may have been smuggled in.
    if let Some(length) = length.filter(|_| is_clear && head.status != StatusCode::NO_CONTENT) {
        head.headers.insert(header::CONTENT_LENGTH, length.into());
    }
    // What the client gets is as new as we are, however old the engine is.
    head.version = Version::HTTP_11;
    Ok(is_clear && is_new)
}

/// Lets nginx, if it is in front of us, pass on events as they come.
pub(crate) fn let_events_pass(headers: &mut HeaderMap) {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("text/event-stream") {
        let no = HeaderValue::from_static("no");
        headers.entry(ACCEL_BUFFERING).or_insert(no);
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Coding {
    None,
    Chunked,
    /// Another, or chunked and another, or more than once.
    Other,
    /// Any, on several lines.
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

/// The length that a head names, however often it does.
fn length(headers: &HeaderMap) -> Result<Option<u64>, &'static str> {
    let mut length = None;
    for value in headers.get_all(header::CONTENT_LENGTH) {
        let value = value.to_str().unwrap_or_default();
        for number in value.split(',').map(str::trim) {
            // The number alone: what is parsed here may have a sign.
            let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
            match number.parse() {
                Ok(number) if is_number && length.is_none_or(|length| length == number) => {
                    length = Some(number);
                }
                _ => return Err("its answer names lengths that differ, or are none"),
            }
        }
    }
    Ok(length)
}

/// `HOST[:PORT]`; or nothing, for a target that has no host.
fn is_host(host: &HeaderValue) -> bool {
    let host = host.as_bytes();
    host.is_empty() || (!host.contains(&b'@') && Authority::try_from(host).is_ok())
}
