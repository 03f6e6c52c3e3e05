//! Changes the fields of a head as a proxy has to.

use hyper::HeaderMap;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use std::fmt::Write;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The engine that has answered.
pub(crate) const ENGINE: HeaderName = HeaderName::from_static("x-headcount-engine");
/// For how many milliseconds the request has waited for a place, if it has.
pub(crate) const WAITED: HeaderName = HeaderName::from_static("x-headcount-waited-ms");
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Fields that concern one connection only (RFC 9110, section 7.6.1), and `Expect`, which this server has answered
/// already.
const HOP_BY_HOP: [HeaderName; 10] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::EXPECT,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// Removes the fields that concern one connection only, by their names or because `Connection` lists them.
pub(crate) fn remove_hop_by_hop(headers: &mut HeaderMap) {
    // Most heads have none. To look at each name once is cheaper than to look each of these up.
    if !headers.keys().any(|name| HOP_BY_HOP.contains(name)) {
        return;
    }
    let listed: Vec<HeaderName> = (headers.get_all(header::CONNECTION).iter())
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    // Without these, the host or the end of the message would be lost.
    let needed = [header::HOST, header::CONTENT_LENGTH];
    for name in listed.iter().filter(|name| !needed.contains(name)) {
        headers.remove(name);
    }
    for name in &HOP_BY_HOP {
        headers.remove(name);
    }
}

/// Tells the engine which client the request is from, and which host it asked for.
pub(crate) fn add_forwarded(head: &mut Parts, client: &HeaderValue) {
    let headers = &mut head.headers;
    // The host of a target counts, not the one in `Host` (RFC 9112, section 3.2.2).
    let host = match head.uri.authority() {
        Some(authority) => HeaderValue::from_str(authority.as_str()).ok(),
        None => headers.get(header::HOST).cloned(),
    };
    if let Some(host) = host.filter(|host| !host.is_empty()) {
        headers.entry(FORWARDED_HOST).or_insert(host);
    }
    headers
        .entry(FORWARDED_PROTO)
        .or_insert(HeaderValue::from_static("http"));
    let mut chain: Vec<u8> = Vec::new();
    for earlier in headers.get_all(FORWARDED_FOR) {
        chain.extend(earlier.as_bytes());
        chain.extend(b", ");
    }
    let chain = if chain.is_empty() {
        Ok(client.clone())
    } else {
        chain.extend(client.as_bytes());
        HeaderValue::try_from(chain)
    };
    if let Ok(chain) = chain {
        headers.insert(FORWARDED_FOR, chain);
    }
}

/// Returns the id that the client gave the request, or gives the request a new one.
pub(crate) fn request_id(headers: &mut HeaderMap) -> HeaderValue {
    let given = headers.get(REQUEST_ID).filter(|id| !id.is_empty());
    let id = given.cloned().unwrap_or_else(new_id);
    headers.insert(REQUEST_ID, id.clone());
    id
}

/// When this process gave its first id, and its number: no two processes of a host have both.
static PROCESS: LazyLock<String> = LazyLock::new(|| {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let since = since.unwrap_or_default().as_micros();
    format!("{since:x}-{:x}-", std::process::id())
});

/// Returns an id that no other request on this host has.
fn new_id() -> HeaderValue {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed); // Relaxed: each value is taken once, in any order
    let mut id = String::with_capacity(PROCESS.len() + 16);
    id.push_str(&PROCESS);
    // Writing to a string cannot fail.
    let _ = write!(id, "{number:x}");
    HeaderValue::try_from(id).unwrap_or(HeaderValue::from_static("0"))
}
