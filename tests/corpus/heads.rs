//! Odd heads of requests.

use crate::case::{Case, Client, does, say, sends};
use crate::fronts::MAX_BODY;

/// Why fields are removed that the others pass on.
pub(crate) const HOP_BY_HOP: &str =
    "fields for one connection only are not passed on (RFC 9110, 7.6.1)";
/// Why control characters are refused.
pub(crate) const CONTROL: &str = "no value has control characters (RFC 9110, 5.5)";
const WEBSOCKET: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                         Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==";
const LARGE_HEADS: &str = "heads may have 400 KiB, targets 64 KiB";

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = hosts();
    cases.extend(request_lines());
    cases.extend(targets());
    cases.extend(lines());
    cases.extend(of_one_connection());
    cases.extend(expectations());
    cases
}

fn hosts() -> Vec<Case> {
    vec![
        sends(
            "a request in good order",
            "GET /a?b=c HTTP/1.1\r\nHost: t\r\nX-A: 1\r\n\r\n",
        ),
        sends("no Host", "GET /a HTTP/1.1\r\n\r\n"),
        sends("an empty Host", "GET /a HTTP/1.1\r\nHost:\r\n\r\n"),
        sends("two Hosts", "GET /a HTTP/1.1\r\nHost: t\r\nHost: u\r\n\r\n"),
        sends(
            "the same Host twice",
            "GET /a HTTP/1.1\r\nHost: t\r\nHost: t\r\n\r\n",
        ),
        sends(
            "a Host with a slash",
            "GET /a HTTP/1.1\r\nHost: t/u\r\n\r\n",
        ),
        sends(
            "a Host with a space",
            "GET /a HTTP/1.1\r\nHost: t u\r\n\r\n",
        ),
        sends(
            "a Host with two ports",
            "GET /a HTTP/1.1\r\nHost: t:1:2\r\n\r\n",
        )
        .because("it is not a host"),
        sends(
            "a target with another host",
            "GET http://u/a HTTP/1.1\r\nHost: t\r\n\r\n",
        ),
        sends(
            "a target with a host, no Host",
            "GET http://u/a HTTP/1.1\r\n\r\n",
        ),
        sends(
            "a target with the same host",
            "GET http://t/a?b HTTP/1.1\r\nHost: t\r\n\r\n",
        ),
        sends(
            "a target with a host and no path",
            "GET http://t HTTP/1.1\r\nHost: t\r\n\r\n",
        ),
    ]
}

fn request_lines() -> Vec<Case> {
    vec![
        sends(
            "only a host and port as target",
            "GET t:80 HTTP/1.1\r\nHost: t\r\n\r\n",
        ),
        sends("OPTIONS *", "OPTIONS * HTTP/1.1\r\nHost: t\r\n\r\n"),
        sends("GET *", "GET * HTTP/1.1\r\nHost: t\r\n\r\n"),
        sends("OPTIONS /a", "OPTIONS /a HTTP/1.1\r\nHost: t\r\n\r\n"),
        sends("CONNECT", "CONNECT t:443 HTTP/1.1\r\nHost: t:443\r\n\r\n"),
        sends("TRACE", "TRACE /a HTTP/1.1\r\nHost: t\r\n\r\n"),
        sends(
            "a method in lower case",
            "get /a HTTP/1.1\r\nHost: t\r\n\r\n",
        ),
        sends("an unknown method", "BREW /a HTTP/1.1\r\nHost: t\r\n\r\n"),
        sends(
            "a method with a hyphen",
            "M-SEARCH /a HTTP/1.1\r\nHost: t\r\n\r\n",
        ),
        sends(
            "a method with a bracket",
            "GE(T /a HTTP/1.1\r\nHost: t\r\n\r\n",
        ),
        sends("HEAD", "HEAD /a HTTP/1.1\r\nHost: t\r\n\r\n"),
        sends("HTTP/1.0", "GET /a HTTP/1.0\r\n\r\n"),
        sends(
            "HTTP/1.0 with keep-alive",
            "GET /a HTTP/1.0\r\nHost: t\r\nConnection: keep-alive\r\n\r\n",
        ),
        sends(
            "HTTP/1.1 with close",
            "GET /a HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n",
        ),
        sends("HTTP/1.2", "GET /a HTTP/1.2\r\nHost: t\r\n\r\n")
            .because("HTTP/1 has the versions 1.0 and 1.1 only"),
        sends("HTTP/2.0", "GET /a HTTP/2.0\r\nHost: t\r\n\r\n"),
        sends("HTTP/3.7", "GET /a HTTP/3.7\r\nHost: t\r\n\r\n"),
        sends("http/1.1", "GET /a http/1.1\r\nHost: t\r\n\r\n"),
        sends("HTTP/01.1", "GET /a HTTP/01.1\r\nHost: t\r\n\r\n"),
        sends("HTTP/0.9", "GET /a\r\n").impatient(),
        sends(
            "the preface of HTTP/2",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0",
        )
        .because("HTTP/2 is not spoken here")
        .impatient(),
        sends(
            "the beginning of TLS",
            b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03\r\n\r\n".as_slice(),
        )
        .impatient(),
        sends(
            "two spaces before the target",
            "GET  /a HTTP/1.1\r\nHost: t\r\n\r\n",
        )
        .because("RFC 9112 (3) has one space; servers read two differently"),
        sends(
            "two spaces after the target",
            "GET /a  HTTP/1.1\r\nHost: t\r\n\r\n",
        )
        .because("RFC 9112 (3) has one space; servers read two differently"),
        sends(
            "a tab before the target",
            "GET\t/a HTTP/1.1\r\nHost: t\r\n\r\n",
        ),
        sends(
            "a space in the target",
            "GET /a b HTTP/1.1\r\nHost: t\r\n\r\n",
        ),
        sends(
            "a space after the version",
            "GET /a HTTP/1.1 \r\nHost: t\r\n\r\n",
        ),
        sends(
            "an empty line before it",
            "\r\nGET /a HTTP/1.1\r\nHost: t\r\n\r\n",
        ),
        sends(
            "five empty lines before it",
            "\r\n\r\n\r\n\r\n\r\nGET /a HTTP/1.1\r\nHost: t\r\n\r\n",
        ),
    ]
}

fn targets() -> Vec<Case> {
    let with_target =
        |name, target: &str| sends(name, format!("GET {target} HTTP/1.1\r\nHost: t\r\n\r\n"));
    vec![
        with_target("an encoded slash", "/a%2Fb"),
        with_target("an encoded NUL", "/a%00b"),
        with_target("an encoded point", "/%2e%2e/a"),
        with_target("an encoding that is none", "/a%zz"),
        with_target("a percent at the end", "/a%"),
        with_target("two slashes", "//a//b"),
        with_target("a path that goes up", "/a/../b/./c"),
        with_target("a path that goes up beyond the root", "/../a"),
        with_target("a backslash", "/a\\b"),
        with_target("an empty query", "/a?"),
        with_target("two question marks", "/a??b?c"),
        with_target("a query and no path", "?a"),
        with_target("a fragment", "/a#b")
            .because("a client must not send it (RFC 9112, 3.2), and engines have no use for it"),
        with_target("square brackets in the target", "/a[b]"),
        with_target("curly brackets in the target", "/a{b}"),
        with_target("angle brackets in the target", "/a<b>")
            .because("no URI has these characters (RFC 3986); clients must encode them"),
        with_target("a quote in the target", "/a\"b"),
        with_target("a bar in the target", "/a|b"),
        with_target("a circumflex in the target", "/a^b"),
        with_target("a backtick in the target", "/a`b")
            .because("no URI has these characters (RFC 3986); clients must encode them"),
        with_target("an apostrophe in the target", "/a'b"),
        with_target("brackets in the query", "/a?b[]={c}|d"),
        with_target("quotes and angle brackets in the query", "/a?b=\"c\"<d>^`")
            .because("no URI has these characters (RFC 3986); clients must encode them"),
        with_target("no slash at its start", "a"),
        with_target("UTF-8 in the target", "/ä"),
        sends(
            "a byte that is no UTF-8 in the target",
            b"GET /\xff HTTP/1.1\r\nHost: t\r\n\r\n".as_slice(),
        ),
        sends(
            "a NUL in the target",
            "GET /a\0b HTTP/1.1\r\nHost: t\r\n\r\n",
        ),
        sends(
            "a control character in the target",
            "GET /a\x01b HTTP/1.1\r\nHost: t\r\n\r\n",
        ),
        sends(
            "DEL in the target",
            "GET /a\x7fb HTTP/1.1\r\nHost: t\r\n\r\n",
        ),
        with_target("a target of 6,000 bytes", &format!("/{}", "a".repeat(6000))),
        with_target(
            "a target of 60,000 bytes",
            &format!("/{}", "a".repeat(60_000)),
        )
        .because(LARGE_HEADS),
        with_target(
            "a target of 600,000 bytes",
            &format!("/{}", "a".repeat(600_000)),
        ),
    ]
}

fn lines() -> Vec<Case> {
    let with = |name, line: &str| {
        sends(
            name,
            format!("GET /a HTTP/1.1\r\nHost: t\r\n{line}\r\n\r\n"),
        )
    };
    let many = |count: usize| {
        let lines: Vec<_> = (0..count)
            .map(|number| format!("X-{number}: {number}"))
            .collect();
        lines.join("\r\n")
    };
    vec![
        with("50 headers", &many(50)),
        with("150 headers", &many(150)),
        with("1,000 headers", &many(1000)),
        with(
            "a header of 6,000 bytes",
            &format!("X-A: {}", "a".repeat(6000)),
        ),
        with(
            "a header of 60,000 bytes",
            &format!("X-A: {}", "a".repeat(60_000)),
        )
        .because(LARGE_HEADS),
        with(
            "a header of 600,000 bytes",
            &format!("X-A: {}", "a".repeat(600_000)),
        ),
        with("a folded header", "X-A: 1\r\n 2"),
        with("a folded header, by a tab", "X-A: 1\r\n\t2"),
        sends(
            "a folded first header",
            "GET /a HTTP/1.1\r\n X-A: 1\r\nHost: t\r\n\r\n",
        ),
        with("a space before the colon", "X-A : 1"),
        with("a space in a name", "X A: 1"),
        with("no colon", "X-A"),
        with("no name", ": 1"),
        with("an underscore in a name", "x_a: 1"),
        with("a bracket in a name", "X(A: 1"),
        with("a NUL in a name", "X\0A: 1"),
        with("a byte that is not ASCII in a name", "Xä: 1"),
        with("a NUL in a value", "X-A: 1\x002"),
        with("a control character in a value", "X-A: 1\x012").because(CONTROL),
        with("UTF-8 in a value", "X-A: ä"),
        with("a tab in a value", "X-A: 1\t2"),
        with("spaces around a value", "X-A: \t 1 \t "),
        with("a CR in a value", "X-A: 1\r2"),
        with("a CR and a header in a value", "X-A: 1\rX-B: 2"),
        with("a LF in a value", "X-A: 1\nX-B: 2"),
        sends("LF at the ends of lines", "GET /a HTTP/1.1\nHost: t\n\n"),
        sends("CR at the ends of lines", "GET /a HTTP/1.1\rHost: t\r\r").impatient(),
        sends("LF after CRLF", "GET /a HTTP/1.1\r\nHost: t\r\n\n"),
        with("an empty value", "X-A:"),
        with("the same header twice", "X-A: 1\r\nX-B: 2\r\nx-a: 3"),
        with("two Cookies", "Cookie: a=1\r\nCookie: b=2"),
        with("a list with empty items", "X-A: , 1,, 2,"),
        with(
            "Content-Type twice",
            "Content-Type: a/b\r\nContent-Type: c/d",
        ),
        with(
            "Authorization twice",
            "Authorization: a\r\nAuthorization: b",
        ),
    ]
}

/// Fields that concern one connection only.
fn of_one_connection() -> Vec<Case> {
    let with = |name, lines: &str| {
        sends(
            name,
            format!("GET /a HTTP/1.1\r\nHost: t\r\n{lines}\r\n\r\n"),
        )
    };
    vec![
        with(
            "Connection that lists a header",
            "Connection: X-A\r\nX-A: 1",
        )
        .because(HOP_BY_HOP),
        with("Connection that lists Host", "Connection: Host"),
        with(
            "Connection that lists close and more",
            "Connection: x-a, close\r\nX-A: 1",
        )
        .because(HOP_BY_HOP),
        with(
            "two Connections",
            "Connection: keep-alive\r\nConnection: close",
        ),
        with("Connection that lists an empty item", "Connection: ,,close"),
        with(
            "Keep-Alive",
            "Connection: keep-alive\r\nKeep-Alive: timeout=5",
        ),
        with("Proxy-Connection", "Proxy-Connection: close").because(HOP_BY_HOP),
        with("Proxy-Authorization", "Proxy-Authorization: Basic YTpi").because(HOP_BY_HOP),
        with("TE: trailers", "Connection: TE\r\nTE: trailers"),
        with("TE: gzip", "TE: gzip"),
        with("Trailer", "Trailer: X-A").because(HOP_BY_HOP),
        with("an upgrade to WebSocket", WEBSOCKET)
            .because("connections are not handed over to other protocols, and 501 says so"),
        with(
            "an upgrade to h2c",
            "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA",
        )
        .because(HOP_BY_HOP),
        with(
            "an upgrade to what is unknown",
            "Connection: Upgrade\r\nUpgrade: x/1",
        ),
        with("Upgrade, not listed", "Upgrade: websocket"),
        with(
            "Upgrade, two of them",
            "Connection: Upgrade\r\nUpgrade: h2c\r\nUpgrade: websocket",
        ),
        with("Via and Forwarded", "Via: 1.0 x\r\nForwarded: for=1.2.3.4"),
        with("Max-Forwards: 0", "Max-Forwards: 0"),
        with("Range", "Range: bytes=0-1"),
        with("Accept-Encoding", "Accept-Encoding: gzip, br"),
    ]
}

fn expectations() -> Vec<Case> {
    let post = |length: usize, lines: &str| {
        format!("POST /a HTTP/1.1\r\nHost: t\r\nContent-Length: {length}\r\n{lines}\r\n\r\n")
    };
    let hundred = "Expect: 100-continue";
    vec![
        does(
            "Expect, the body after 100",
            [
                say(post(5, hundred)),
                Client::UntilAnsweredOrASecond,
                say("hello"),
            ],
        ),
        sends("Expect, the body at once", post(5, hundred) + "hello"),
        sends(
            "Expect, no body",
            format!("GET /a HTTP/1.1\r\nHost: t\r\n{hundred}\r\n\r\n"),
        )
        .because("the expectation is met here, and without a body there is nothing to wait for"),
        sends("Expect, a body of no bytes", post(0, hundred)).because(
            "the expectation is met here, and without a body there is nothing to wait for",
        ),
        sends(
            "Expect in capitals, the body at once",
            post(5, "Expect: 100-CONTINUE") + "hello",
        ),
        sends(
            "Expect by HTTP/1.0, the body at once",
            format!("POST /a HTTP/1.0\r\nContent-Length: 5\r\n{hundred}\r\n\r\nhello"),
        ),
        does(
            "Expect, a body that is too large",
            [say(post(MAX_BODY + 1, hundred))],
        )
        .impatient(),
        sends("another expectation", post(5, "Expect: 200-ok") + "hello"),
        sends(
            "two expectations",
            post(5, "Expect: 100-continue, x") + "hello",
        ),
    ]
}
