//! Answers of engines with odd lengths, codings and chunks.

use crate::case::Engine::{Close, Pause, Reset};
use crate::case::{Case, answers, reply, sends};
use crate::framing::LF_ALONE;
use crate::replies::{HEAD, ok};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = framings();
    cases.extend(chunks());
    cases
}

fn framings() -> Vec<Case> {
    let with = |name, lines: &str, body: &str| answers(name, ok(lines, body));
    let chunked = "9\r\nhello end\r\n0\r\n\r\n";
    vec![
        with("answer: a length", "Content-Length: 9", "hello end"),
        with("answer: chunks", "Transfer-Encoding: chunked", chunked),
        answers(
            "answer: until close, by HTTP/1.0",
            "HTTP/1.0 200 OK\r\n\r\nhello end",
        )
        .then(Close),
        answers(
            "answer: until close, by HTTP/1.1",
            "HTTP/1.1 200 OK\r\n\r\nhello end",
        )
        .then(Close),
        with(
            "answer: until close, said",
            "Connection: close",
            "hello end",
        )
        .then(Close),
        answers(
            "answer: HTTP/1.0 with keep-alive",
            "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 9\r\n\r\nhello end",
        ),
        answers(
            "answer: HTTP/1.0 with a length",
            "HTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\nhello end",
        )
        .then(Close),
        answers(
            "answer: HTTP/1.0 with chunks",
            format!("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{chunked}"),
        )
        .because("HTTP/1.0 has no chunks; the framing is faulty (RFC 9112, 6.1)")
        .then(Close),
        with(
            "answer: a length and chunks",
            "Content-Length: 1\r\nTransfer-Encoding: chunked",
            chunked,
        ),
        with(
            "answer: chunks and a length",
            "Transfer-Encoding: chunked\r\nContent-Length: 1",
            chunked,
        ),
        with(
            "answer: a length of 0 and chunks",
            "Content-Length: 0\r\nTransfer-Encoding: chunked",
            chunked,
        ),
        with(
            "answer: a larger length and chunks",
            "Content-Length: 99\r\nTransfer-Encoding: chunked",
            chunked,
        ),
        with(
            "answer: two lengths",
            "Content-Length: 5\r\nContent-Length: 9",
            "hello end",
        ),
        with(
            "answer: two lengths, the first right",
            "Content-Length: 9\r\nContent-Length: 5",
            "hello end",
        ),
        with(
            "answer: the same length twice",
            "Content-Length: 9\r\nContent-Length: 9",
            "hello end",
        ),
        with(
            "answer: a length in a list",
            "Content-Length: 9, 9",
            "hello end",
        ),
        with(
            "answer: two lengths in a list",
            "Content-Length: 5, 9",
            "hello end",
        ),
        with(
            "answer: a negative length",
            "Content-Length: -9",
            "hello end",
        )
        .then(Close),
        with(
            "answer: a length with a plus",
            "Content-Length: +9",
            "hello end",
        )
        .then(Close),
        with(
            "answer: a length in words",
            "Content-Length: nine",
            "hello end",
        )
        .then(Close),
        with("answer: an empty length", "Content-Length:", "hello end").then(Close),
        with(
            "answer: a length of 2^64 + 9",
            "Content-Length: 18446744073709551625",
            "hello end",
        )
        .then(Close),
        with(
            "answer: gzip, chunked",
            "Transfer-Encoding: gzip, chunked",
            chunked,
        ),
        with(
            "answer: chunked, gzip",
            "Transfer-Encoding: chunked, gzip",
            chunked,
        )
        .then(Close),
        with(
            "answer: gzip as a coding",
            "Transfer-Encoding: gzip",
            "hello end",
        )
        .then(Close),
        with(
            "answer: chunked twice",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            chunked,
        ),
        with(
            "answer: identity",
            "Transfer-Encoding: identity",
            "hello end",
        )
        .then(Close),
        with("answer: Chunked", "Transfer-Encoding: Chunked", chunked),
        with("answer: xchunked", "Transfer-Encoding: xchunked", chunked).then(Close),
        sends(
            "answer to HTTP/1.0: chunks",
            "GET /a HTTP/1.0\r\nHost: t\r\n\r\n",
        )
        .engine([reply(ok("Transfer-Encoding: chunked", chunked))]),
        sends(
            "answer to HTTP/1.0: until close",
            "GET /a HTTP/1.0\r\nHost: t\r\n\r\n",
        )
        .engine([reply("HTTP/1.1 200 OK\r\n\r\nhello end"), Close]),
        sends("answer to HEAD: a length", HEAD).engine([reply(ok("Content-Length: 9", ""))]),
        sends("answer to HEAD: chunks", HEAD).engine([reply(ok("Transfer-Encoding: chunked", ""))]),
        sends("answer to HEAD: no framing", HEAD).engine([reply("HTTP/1.1 200 OK\r\n\r\n")]),
        sends("answer to HEAD: a body", HEAD).engine([reply(ok("Content-Length: 9", "hello end"))]),
    ]
}

fn chunks() -> Vec<Case> {
    let with = |name, body: &str| answers(name, ok("Transfer-Encoding: chunked", body)).then(Close);
    vec![
        with(
            "answer: a chunk's extension",
            "9;a=b\r\nhello end\r\n0\r\n\r\n",
        ),
        with("answer: trailers", "9\r\nhello end\r\n0\r\nX-A: 1\r\n\r\n"),
        with(
            "answer: a chunk's size that is none",
            "5\r\nhello\r\nxyz\r\n end\r\n0\r\n\r\n",
        ).because("valid bytes are passed on as they come; then the connection is cut, so that the client can tell"),
        with(
            "answer: a first chunk's size that is none",
            "xyz\r\nhello\r\n0\r\n\r\n",
        ),
        with(
            "answer: a chunk's size of 2^64 + 5",
            "10000000000000005\r\nhello\r\n0\r\n\r\n",
        ),
        with(
            "answer: a chunk that is longer than its size",
            "4\r\nhello\r\n0\r\n\r\n",
        ).because("valid bytes are passed on as they come; then the connection is cut, so that the client can tell"),
        with("answer: LF after a chunk", "9\r\nhello end\n0\r\n\r\n").because(LF_ALONE),
        with("answer: chunks cut in a chunk", "9\r\nhello"),
        with("answer: chunks cut in a size", "5\r\nhello\r\n4"),
        with("answer: chunks cut between chunks", "5\r\nhello\r\n"),
        with(
            "answer: chunks cut in the last chunk",
            "5\r\nhello\r\n0\r\n",
        ),
        with("answer: chunks cut before the first", ""),
        answers(
            "answer: chunks reset in a chunk",
            ok("Transfer-Encoding: chunked", "9\r\nhello"),
        )
        .then(Pause(100))
        .then(Reset),
    ]
}
