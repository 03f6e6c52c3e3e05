//! Bodies of requests, and the headers and chunks that say where they end.

use crate::case::{Case, sends};
use crate::fronts::{MAX_BODY, MAX_HELD};

/// The length of a body of which only a part is held.
pub(crate) const LARGE: usize = MAX_HELD + 11_000;
/// A request that must not come out of a body.
pub(crate) const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nHost: t\r\n\r\n";

/// Why a client gets 408.
pub(crate) const TOO_SLOW: &str =
    "408 says that the client is to blame; a place is not taken before the body is there";
/// Why a line of chunks that ends with LF is refused.
pub(crate) const LF_ALONE: &str =
    "a chunk's lines end with CRLF (RFC 9112, 7.1); another ending may hide a request";

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = lengths();
    cases.extend(codings());
    cases.extend(chunks());
    cases
}

/// A request with a body, framed by these lines.
pub(crate) fn post(lines: &str, body: &str) -> String {
    format!("POST /a HTTP/1.1\r\nHost: t\r\n{lines}\r\n\r\n{body}")
}

fn lengths() -> Vec<Case> {
    let with = |name, lines: &str, body: &str| sends(name, post(lines, body));
    vec![
        with("a length", "Content-Length: 5", "hello"),
        with("a length of 0", "Content-Length: 0", ""),
        sends("POST without a body", "POST /a HTTP/1.1\r\nHost: t\r\n\r\n"),
        with(
            "the same length twice",
            "Content-Length: 5\r\nContent-Length: 5",
            "hello",
        ),
        with(
            "two lengths",
            "Content-Length: 5\r\nContent-Length: 0",
            "hello",
        ),
        with(
            "two lengths, the second longer",
            "Content-Length: 0\r\nContent-Length: 38",
            SMUGGLED,
        ),
        with("a length in a list", "Content-Length: 5, 5", "hello"),
        with("two lengths in a list", "Content-Length: 5, 6", "hello"),
        with("a negative length", "Content-Length: -5", "hello"),
        with("a length with a plus", "Content-Length: +5", "hello"),
        with("a length in hexadecimal", "Content-Length: 0x5", "hello"),
        with(
            "a length with zeros before it",
            "Content-Length: 005",
            "hello",
        ),
        with(
            "a length with a space in it",
            "Content-Length: 5 5",
            "hello",
        ),
        with("an empty length", "Content-Length:", ""),
        with("a length in words", "Content-Length: five", "hello"),
        with("a length with a point", "Content-Length: 5.0", "hello"),
        with(
            "a length of 2^64",
            "Content-Length: 18446744073709551616",
            "hello",
        ),
        with(
            "a length of 2^64 + 5",
            "Content-Length: 18446744073709551621",
            "hello",
        ),
        with(
            "a length of 2^63",
            "Content-Length: 9223372036854775808",
            "hello",
        ).because("it is larger than `--max-body`"),
        with(
            "a length with a space before the colon",
            "Content-Length : 5",
            "hello",
        ),
        with("a length after a tab", "Content-Length:\t5", "hello"),
        with(
            "a length that Connection lists",
            "Connection: Content-Length\r\nContent-Length: 5",
            "hello",
        ),
        with("a length that is folded", "Content-Length:\r\n 5", "hello"),
        with(
            "a length with a vertical tab",
            "Content-Length: \x0b5",
            "hello",
        ),
        sends(
            "GET with a body",
            "GET /a HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nhello",
        ),
        sends(
            "HEAD with a body",
            "HEAD /a HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nhello",
        ),
        sends(
            "DELETE with a body",
            "DELETE /a HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nhello",
        ),
        sends(
            "HTTP/1.0 with a body",
            "POST /a HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello",
        ),
        with(
            "a body as large as may be",
            &format!("Content-Length: {MAX_BODY}"),
            &"a".repeat(MAX_BODY),
        ),
        with(
            "a body that is too large",
            &format!("Content-Length: {}", MAX_BODY + 1),
            &"a".repeat(MAX_BODY + 1),
        ).because("the rest of the body is read for a while, so that the client sees the reason; then the connection can be used again"),
    ]
}

fn codings() -> Vec<Case> {
    let body = "5\r\nhello\r\n0\r\n\r\n";
    let with = |name, lines: &str| sends(name, post(lines, body));
    vec![
        with("chunks", "Transfer-Encoding: chunked"),
        with(
            "chunks and a length",
            "Content-Length: 15\r\nTransfer-Encoding: chunked",
        ),
        sends(
            "chunks and a length that hides a request",
            post(
                &format!(
                    "Content-Length: {}\r\nTransfer-Encoding: chunked",
                    5 + SMUGGLED.len()
                ),
                &format!("0\r\n\r\n{SMUGGLED}"),
            ),
        ),
        with(
            "a length of 0 and chunks",
            "Transfer-Encoding: chunked\r\nContent-Length: 0",
        ),
        with(
            "chunks by HTTP/1.1 with close",
            "Connection: close\r\nTransfer-Encoding: chunked",
        ),
        sends(
            "chunks by HTTP/1.0",
            format!("POST /a HTTP/1.0\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n{body}"),
        ),
        sends(
            "GET with chunks",
            format!("GET /a HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n{body}"),
        ),
        with("gzip, chunked", "Transfer-Encoding: gzip, chunked"),
        with(
            "gzip and chunked, on two lines",
            "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked",
        ),
        with("chunked, gzip", "Transfer-Encoding: chunked, gzip"),
        with("gzip", "Transfer-Encoding: gzip"),
        with(
            "gzip and a length",
            "Transfer-Encoding: gzip\r\nContent-Length: 15",
        ),
        with("chunked, chunked", "Transfer-Encoding: chunked, chunked"),
        with(
            "chunked twice",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        ),
        with("identity", "Transfer-Encoding: identity"),
        with(
            "identity and a length",
            "Transfer-Encoding: identity\r\nContent-Length: 15",
        ),
        with("chunked, identity", "Transfer-Encoding: chunked, identity"),
        with("xchunked", "Transfer-Encoding: xchunked"),
        with(
            "xchunked and a length",
            "Transfer-Encoding: xchunked\r\nContent-Length: 15",
        ),
        with("Chunked", "Transfer-Encoding: Chunked"),
        with("chunked after a tab", "Transfer-Encoding:\tchunked"),
        with("chunked and a space", "Transfer-Encoding: chunked "),
        with(
            "chunked with a vertical tab",
            "Transfer-Encoding: \x0bchunked",
        ),
        with("chunked in quotes", "Transfer-Encoding: \"chunked\""),
        with("chunked with a parameter", "Transfer-Encoding: chunked;a=b"),
        with(
            "chunked in a list with empty items",
            "Transfer-Encoding: , chunked",
        ),
        with("a coding that is empty", "Transfer-Encoding:"),
        with(
            "a coding that is empty and a length",
            "Transfer-Encoding:\r\nContent-Length: 15",
        ),
        with(
            "chunked with a space before the colon",
            "Transfer-Encoding : chunked",
        ),
        with("chunked that is folded", "Transfer-Encoding:\r\n chunked"),
        with(
            "chunked that Connection lists",
            "Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked",
        ),
        with(
            "chunked, with an underscore in its name",
            "Transfer_Encoding: chunked\r\nContent-Length: 15",
        ),
    ]
}

fn chunks() -> Vec<Case> {
    let with = |name, body: &str| sends(name, post("Transfer-Encoding: chunked", body));
    vec![
        with("chunks of no bytes", "0\r\n\r\n"),
        with("several chunks", "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"),
        with("a chunk's extension", "5;a=b\r\nhello\r\n0\r\n\r\n"),
        with(
            "a chunk's extension in quotes",
            "5;a=\"b;c\"\r\nhello\r\n0\r\n\r\n",
        ),
        with(
            "a chunk's extension with a LF",
            "5;a\nb\r\nhello\r\n0\r\n\r\n",
        ),
        with(
            "a chunk's extension of 20,000 bytes",
            &format!("5;{}\r\nhello\r\n0\r\n\r\n", "a".repeat(20_000)),
        ),
        with("a chunk's size with spaces", "5 \r\nhello\r\n0\r\n\r\n"),
        with("a chunk's size after a space", " 5\r\nhello\r\n0\r\n\r\n"),
        with(
            "a chunk's size with zeros before it",
            "0000005\r\nhello\r\n0\r\n\r\n",
        ),
        with(
            "a chunk's size with very many zeros before it",
            &format!("{}5\r\nhello\r\n0\r\n\r\n", "0".repeat(1000)),
        ),
        with("a chunk's size in capitals", "A\r\nhellohello\r\n0\r\n\r\n"),
        with("a chunk's size with 0x", "0x5\r\nhello\r\n0\r\n\r\n"),
        with("a negative chunk's size", "-5\r\nhello\r\n0\r\n\r\n"),
        with("a chunk's size with a plus", "+5\r\nhello\r\n0\r\n\r\n"),
        with("a chunk's size that is none", "hello\r\n0\r\n\r\n"),
        with("an empty chunk's size", "\r\nhello\r\n0\r\n\r\n"),
        with(
            "a chunk's size of 2^64",
            "10000000000000000\r\nhello\r\n0\r\n\r\n",
        ),
        with(
            "a chunk's size of 2^64 + 5",
            "10000000000000005\r\nhello\r\n0\r\n\r\n",
        ),
        with("a chunk's size of 2^63", "8000000000000000\r\nhello").because(TOO_SLOW).impatient(),
        with(
            "a chunk that is longer than its size",
            "4\r\nhello\r\n0\r\n\r\n",
        ),
        with(
            "a chunk that is followed by CR and X",
            "5\r\nhello\rX0\r\n\r\n",
        ),
        with("a chunk that is followed by LF", "5\r\nhello\n0\r\n\r\n").because(LF_ALONE),
        with(
            "a chunk's size that is followed by LF",
            "5\nhello\r\n0\r\n\r\n",
        ).because(LF_ALONE),
        with(
            "a chunk's size that is followed by CR",
            "5\rhello\r\n0\r\n\r\n",
        )
        .impatient(),
        with("trailers", "5\r\nhello\r\n0\r\nX-A: 1\r\nX-B: 2\r\n\r\n"),
        with(
            "a trailer that is a length",
            "5\r\nhello\r\n0\r\nContent-Length: 9\r\n\r\n",
        ),
        with("a trailer without a colon", "5\r\nhello\r\n0\r\nXA\r\n\r\n"),
        with(
            "trailers of 60,000 bytes",
            &format!("5\r\nhello\r\n0\r\nX-A: {}\r\n\r\n", "a".repeat(60_000)),
        ),
        with("chunks without the last CRLF", "5\r\nhello\r\n0\r\n").because(TOO_SLOW).impatient(),
        with("chunks without the last chunk", "5\r\nhello\r\n").because(TOO_SLOW).impatient(),
        with(
            "chunks that are too large",
            &format!(
                "{:x}\r\n{}\r\n0\r\n\r\n",
                MAX_BODY + 1,
                "a".repeat(MAX_BODY + 1)
            ),
        ).because("the rest of the body is read for a while, so that the client sees the reason; then the connection can be used again"),
        with(
            "a chunk of which a part is a request",
            &format!("26\r\n{SMUGGLED}\r\n0\r\n\r\n"),
        ),
        with(
            "1,000 chunks of a byte",
            &("1\r\na\r\n".repeat(1000) + "0\r\n\r\n"),
        ),
    ]
}
