//! Odd answers of engines.

use crate::case::Engine::Close;
use crate::case::{Case, answers};
use crate::heads::{CONTROL, HOP_BY_HOP};
use crate::judge::DATE;

const NO_LENGTH: &str = "`Content-Length` is left out here, as it may be (RFC 9110, 8.6)";
/// Why interim answers are not passed on.
pub(crate) const INTERIM: &str = "the HTTP library (hyper) has no way to pass interim answers on; clients may not depend on them";

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = statuses();
    cases.extend(heads());
    cases
}

pub(crate) const HEAD: &str = "HEAD /a HTTP/1.1\r\nHost: t\r\n\r\n";

/// A proper answer except for these lines and this body.
pub(crate) fn ok(lines: &str, body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{lines}\r\n\r\n{body}")
}

fn statuses() -> Vec<Case> {
    let with = |name, start: &str, rest: &str| answers(name, format!("{start}\r\n{rest}"));
    let good = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello end";
    let length = "Content-Length: 9\r\n\r\nhello end";
    let head = "Content-Length: 9\r\n\r\n";
    vec![
        with(
            "answer: 100 before it",
            "HTTP/1.1 100 Continue",
            &format!("\r\n{good}"),
        )
        .because(INTERIM),
        with(
            "answer: 102 before it",
            "HTTP/1.1 102 Processing",
            &format!("\r\n{good}"),
        )
        .because(INTERIM),
        with(
            "answer: 103 before it",
            "HTTP/1.1 103 Early Hints",
            &format!("Link: </a>\r\n\r\n{good}"),
        )
        .because(INTERIM),
        with(
            "answer: 100, 103 and 103 before it",
            "HTTP/1.1 100 Continue",
            &format!("\r\nHTTP/1.1 103 E\r\n\r\nHTTP/1.1 103 E\r\n\r\n{good}"),
        )
        .because(INTERIM),
        with(
            "answer: 101, not asked for",
            "HTTP/1.1 101 Switching",
            "Upgrade: x\r\nConnection: upgrade\r\n\r\nhello end",
        )
        .then(Close),
        with(
            "answer: 100 with a length",
            "HTTP/1.1 100 Continue",
            &format!("Content-Length: 0\r\n\r\n{good}"),
        )
        .because(INTERIM),
        with("answer: 204", "HTTP/1.1 204 No Content", "\r\n"),
        with(
            "answer: 204 with a length of 0",
            "HTTP/1.1 204 No Content",
            "Content-Length: 0\r\n\r\n",
        ),
        with("answer: 204 with a body", "HTTP/1.1 204 No Content", length),
        with(
            "answer: 204 with chunks",
            "HTTP/1.1 204 No Content",
            "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ),
        with(
            "answer: 205 with a length of 0",
            "HTTP/1.1 205 Reset Content",
            "Content-Length: 0\r\n\r\n",
        ),
        with(
            "answer: 205 with a body",
            "HTTP/1.1 205 Reset Content",
            length,
        ),
        with(
            "answer: 206",
            "HTTP/1.1 206 Partial Content",
            &format!("Content-Range: bytes 0-8/99\r\n{length}"),
        ),
        with(
            "answer: 304",
            "HTTP/1.1 304 Not Modified",
            "ETag: \"a\"\r\n\r\n",
        ),
        with(
            "answer: 304 with a length",
            "HTTP/1.1 304 Not Modified",
            head,
        )
        .because(NO_LENGTH),
        with(
            "answer: 304 with a body",
            "HTTP/1.1 304 Not Modified",
            length,
        )
        .because(NO_LENGTH),
        with("answer: 299", "HTTP/1.1 299 Odd", length),
        with("answer: 418", "HTTP/1.1 418 Teapot", length),
        with(
            "answer: 429 with Retry-After",
            "HTTP/1.1 429 Too Many",
            &format!("Retry-After: 7\r\n{length}"),
        ),
        with("answer: 500", "HTTP/1.1 500 Error", length),
        with("answer: 503", "HTTP/1.1 503 Busy", length),
        with("answer: 600", "HTTP/1.1 600 Odd", length),
        with("answer: 999", "HTTP/1.1 999 Odd", length),
        with("answer: 1000", "HTTP/1.1 1000 Odd", length)
            .because("an answer that is not HTTP/1.1 is not passed on")
            .then(Close),
        with("answer: 099", "HTTP/1.1 099 Odd", length)
            .because("an answer that is not HTTP/1.1 is not passed on")
            .then(Close),
        with("answer: 20", "HTTP/1.1 20 Odd", length)
            .because("an answer that is not HTTP/1.1 is not passed on")
            .then(Close),
        with("answer: a status in words", "HTTP/1.1 OK OK", length).then(Close),
        with("answer: no reason", "HTTP/1.1 200", length),
        with("answer: an empty reason", "HTTP/1.1 200 ", length),
        with(
            "answer: a reason that is not ASCII",
            "HTTP/1.1 200 Schön",
            length,
        ),
        with("answer: HTTP/2.0", "HTTP/2.0 200 OK", length)
            .because("an answer that is not HTTP/1.1 is not passed on")
            .then(Close),
        with("answer: HTTP/1.2", "HTTP/1.2 200 OK", length)
            .because("an answer that is not HTTP/1.1 is not passed on")
            .then(Close),
        with("answer: http/1.1", "http/1.1 200 OK", length).then(Close),
        answers("answer: no HTTP", "hello end").then(Close),
        answers(
            "answer: no HTTP, several lines",
            "hello\r\nContent-Length: 9\r\n\r\nhello end",
        )
        .then(Close),
        answers(
            "answer: the beginning of TLS",
            b"\x15\x03\x01\x00\x02\x02\x46".as_slice(),
        )
        .then(Close),
        with("answer: an empty line before it", "", good),
        with(
            "answer: 302",
            "HTTP/1.1 302 Found",
            "Location: http://t/b\r\nContent-Length: 0\r\n\r\n",
        ),
    ]
}

fn heads() -> Vec<Case> {
    let with = |name, lines: &str| {
        answers(
            name,
            ok(&format!("{lines}\r\nContent-Length: 9"), "hello end"),
        )
    };
    let many = |count: usize| {
        let lines: Vec<_> = (0..count)
            .map(|number| format!("X-{number}: {number}"))
            .collect();
        lines.join("\r\n")
    };
    vec![
        with(
            "answer: two Set-Cookie",
            "Set-Cookie: a=1; Path=/\r\nSet-Cookie: b=2",
        ),
        with(
            "answer: the same header twice",
            "X-A: 1\r\nX-B: 2\r\nX-A: 3",
        ),
        with(
            "answer: Date and Server",
            &format!("Date: {DATE}\r\nServer: engine"),
        ),
        with(
            "answer: Content-Encoding",
            "Content-Encoding: gzip\r\nVary: Accept-Encoding",
        ),
        with("answer: a type", "Content-Type: application/json"),
        with(
            "answer: hints for proxies",
            "X-Accel-Buffering: no\r\nX-Accel-Expires: 0",
        ),
        with("answer: an empty value", "X-A:"),
        with("answer: a folded header", "X-A: 1\r\n 2"),
        with("answer: a space before the colon", "X-A : 1"),
        with(
            "answer: a length with a space before the colon",
            "Content-Length : 5",
        ),
        with("answer: no colon", "X-A"),
        with("answer: no name", ": 1"),
        with("answer: a space in a name", "X A: 1"),
        with("answer: a NUL in a value", "X-A: 1\x002"),
        with("answer: a CR in a value", "X-A: 1\r2"),
        with("answer: a control character in a value", "X-A: 1\x012").because(CONTROL),
        with("answer: UTF-8 in a value", "X-A: ä"),
        answers(
            "answer: LF at the ends of lines",
            "HTTP/1.1 200 OK\nContent-Length: 9\n\nhello end",
        ),
        with("answer: 50 headers", &many(50)),
        with("answer: 150 headers", &many(150)),
        with(
            "answer: a header of 3,000 bytes",
            &format!("X-A: {}", "a".repeat(3000)),
        ),
        with(
            "answer: a header of 12,000 bytes",
            &format!("X-A: {}", "a".repeat(12_000)),
        ),
        with(
            "answer: a header of 600,000 bytes",
            &format!("X-A: {}", "a".repeat(600_000)),
        ),
        with(
            "answer: Connection that lists a header",
            "Connection: X-A\r\nX-A: 1",
        )
        .because(HOP_BY_HOP),
        with(
            "answer: Keep-Alive",
            "Connection: keep-alive\r\nKeep-Alive: timeout=1",
        ),
        with("answer: Connection: close", "Connection: close").then(Close),
        with("answer: Connection: close, and open", "Connection: close"),
        with(
            "answer: Proxy-Authenticate",
            "Proxy-Authenticate: Basic\r\nWWW-Authenticate: Basic",
        )
        .because(HOP_BY_HOP),
        with("answer: Upgrade", "Upgrade: h2c\r\nConnection: Upgrade").because(HOP_BY_HOP),
        with("answer: Trailer", "Trailer: X-A").because(HOP_BY_HOP),
    ]
}
