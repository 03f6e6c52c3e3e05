//! Bodies of requests, and the headers and chunks that say where they end.

use crate::case::{Case, Client, Engine, does, reply, say, sends};
use crate::fronts::{MAX_BODY, MAX_HELD};

/// The length of a body of which only a part is held.
pub(crate) const LARGE: usize = MAX_HELD + 11_000;
/// A request that must not come out of a body.
const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nHost: t\r\n\r\n";

/// Why a client hears that it is too slow.
pub(crate) const TOO_SLOW: &str =
    "408 says that the client is to blame; a place is not taken before the body is there";
/// Why a line of chunks that ends with LF is refused.
pub(crate) const LF_ALONE: &str =
    "a chunk's lines end with CRLF (RFC 9112, 7.1); what ends otherwise may hide a request";

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = lengths();
    cases.extend(codings());
    cases.extend(chunks());
    cases.extend(large());
    cases.extend(several());
    cases
}

fn post(lines: &str, body: &str) -> String {
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
        ).because("the rest of the body is taken in for a while, so that the client hears why; then the connection is good again"),
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
        ).because("the rest of the body is taken in for a while, so that the client hears why; then the connection is good again"),
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

/// Bodies that are passed on before they are there.
fn large() -> Vec<Case> {
    let part = SMUGGLED.repeat(LARGE / 2 / SMUGGLED.len());
    let chunk = format!("{:x}\r\n{part}\r\n", part.len());
    let head = post("Transfer-Encoding: chunked", "");
    let length = post(&format!("Content-Length: {}", 2 * part.len()), "");
    let get = "GET /b HTTP/1.1\r\nHost: t\r\n\r\n";
    vec![
        sends("a large body", format!("{length}{part}{part}")),
        sends("large chunks", format!("{head}{chunk}{chunk}0\r\n\r\n")),
        sends(
            "large chunks and trailers",
            format!("{head}{chunk}{chunk}0\r\nX-A: 1\r\n\r\n"),
        ),
        sends(
            "large chunks, one more of no size",
            format!("{head}{chunk}{chunk}xyz\r\na\r\n"),
        ),
        sends(
            "a large body and a request",
            format!("{length}{part}{part}{get}"),
        )
        .times(2),
        sends(
            "large chunks and a request",
            format!("{head}{chunk}{chunk}0\r\n\r\n{get}"),
        )
        .times(2),
        does(
            "a large body before and after a pause",
            [say(&length), say(&part), Client::Pause(300), say(&part)],
        ),
        does(
            "large chunks before and after a pause",
            [
                say(&head),
                say(&chunk),
                say(&chunk),
                Client::Pause(300),
                say("0\r\n\r\n"),
            ],
        ),
        does(
            "chunks that are too large after a pause",
            [
                say(&head),
                say(&chunk),
                say(&chunk),
                Client::Pause(300),
                say(chunk.repeat(10) + "0\r\n\r\n"),
            ],
        ),
        does(
            "large chunks, to an engine of HTTP/1.0 that keeps the connection",
            [
                say(get),
                Client::UntilAnswered,
                say(format!("{head}{chunk}{chunk}0\r\n\r\n")),
            ],
        )
        .times(2)
        .engine([
            Engine::Pause(200),
            reply(
                "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 9\r\n\r\nhello end",
            ),
        ]),
    ]
}

fn several() -> Vec<Case> {
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: t\r\n\r\n");
    let ten: String = (0..10).map(|number| get(&format!("/{number}"))).collect();
    vec![
        sends("two requests at once", get("/a") + &get("/b")).times(2),
        sends("ten requests at once", ten).times(10),
        sends(
            "two requests with bodies at once",
            post("Content-Length: 5", "hello") + &post("Content-Length: 2", "hi"),
        )
        .times(2),
        sends(
            "two requests with chunks at once",
            post("Transfer-Encoding: chunked", "5\r\nhello\r\n0\r\n\r\n")
                + &post("Transfer-Encoding: chunked", "2\r\nhi\r\n0\r\n\r\n"),
        )
        .times(2),
        sends(
            "a request after CRLF after a body",
            post("Content-Length: 5", "hello\r\n") + &get("/b"),
        )
        .times(2),
        sends(
            "a body that is longer than its length",
            post("Content-Length: 5", "helloX") + &get("/b"),
        )
        .times(2),
        sends("a request after one with close", {
            format!(
                "GET /a HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n{}",
                get("/smuggled")
            )
        }),
        sends("a good request and a bad one", get("/a") + "BAD\r\n\r\n").times(2),
        does(
            "a request in pieces of a byte",
            get("/a")
                .bytes()
                .flat_map(|byte| [say([byte]), Client::Pause(1)])
                .collect::<Vec<_>>(),
        ),
        does(
            "a body after a pause",
            [
                say(post("Content-Length: 5", "")),
                Client::Pause(300),
                say("hello"),
            ],
        ),
        does(
            "a body before and after a pause",
            [
                say(post("Content-Length: 5", "he")),
                Client::Pause(300),
                say("llo"),
            ],
        ),
        does(
            "chunks before and after a pause",
            [
                say(post("Transfer-Encoding: chunked", "2\r\nhe\r\n")),
                Client::Pause(300),
                say("3\r\nllo\r\n0\r\n\r\n"),
            ],
        ),
        does(
            "chunks, the last after a pause",
            [
                say(post("Transfer-Encoding: chunked", "5\r\nhello\r\n")),
                Client::Pause(300),
                say("0\r\n\r\n"),
            ],
        ),
    ]
}
