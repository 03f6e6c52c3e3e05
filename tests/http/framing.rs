//! Where messages end, in both directions (RFC 9112, section 6): what an engine or a client leaves
//! unclear is refused or made clear, and an answer that is not whole never looks as if it were.

use crate::deployment::Deployment;
use crate::engine::{engine_that_says, mirror, odd_engine, read_head, read_request, say};
use crate::stream::Stream;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

const GET: &str = "GET / HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n";

/// Starts a deployment in front of an engine that answers with these bytes.
fn in_front_of(answer: impl Into<String>) -> Deployment {
    Deployment::start(&[engine_that_says(answer)], &["--workers=1"])
}

#[test]
fn an_answer_with_a_length_and_chunks_goes_by_its_chunks() {
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\nContent-Length: 100\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    ] {
        let deployment = in_front_of(answer);
        let mut stream = Stream::send(deployment.address, GET);
        assert_eq!(stream.status(), 200);
        let head = stream.head().to_lowercase();
        assert!(!head.contains("content-length"), "{head}");
        assert!(head.contains("transfer-encoding: chunked"), "{head}");
        assert_eq!(stream.rest(), ("2\r\nok\r\n0\r\n\r\n".to_owned(), true));
        deployment.settles();
    }
}

#[test]
fn a_connection_with_two_lengths_is_not_used_again() {
    let connections = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&connections);
    let engine = odd_engine(move |connection| {
        seen.fetch_add(1, Relaxed);
        while !read_head(connection).is_empty() {
            let head = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n";
            say(connection, &format!("{head}2\r\nok\r\n0\r\n\r\n"));
        }
    });
    let deployment = Deployment::start(&[engine], &["--workers=1"]);
    for _ in 0..3 {
        let mut stream = Stream::send(deployment.address, GET);
        assert_eq!(stream.rest().0, "2\r\nok\r\n0\r\n\r\n");
        deployment.settles();
    }
    assert_eq!(connections.load(Relaxed), 3);
}

#[test]
fn an_engine_of_old_gets_each_request_as_if_it_were_new() {
    let engine = odd_engine(|connection| {
        loop {
            let got = read_request(connection);
            if got.is_empty() {
                return;
            }
            let length = got.len();
            let head = "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length:";
            say(connection, &format!("{head} {length}\r\n\r\n{got}"));
        }
    });
    let deployment = Deployment::start(&[engine], &["--workers=1", "--max-held", "3"]);
    for _ in 0..3 {
        let request =
            "POST /a HTTP/1.1\r\nHost: t\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n";
        let mut stream = Stream::send(
            deployment.address,
            &format!("{request}\r\n5\r\nhello\r\n0\r\n\r\n"),
        );
        let got = stream.rest().0;
        assert!(got.starts_with("POST /a HTTP/1.1\r\n"), "{got}");
        assert!(got.contains("hello"), "{got}");
        deployment.settles();
    }
}

#[test]
fn an_answer_whose_end_or_coding_is_unclear_is_a_bad_gateway() {
    let many = "X-Line: 1\r\n".repeat(200);
    for lines in [
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked, gzip\r\n",
        "Transfer-Encoding: gzip\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked, chunked\r\n",
        "Transfer-Encoding: identity\r\nContent-Length: 2\r\n",
        "Content-Length: 2\r\nContent-Length: 3\r\n",
        "Content-Length: 2, 3\r\n",
        "Content-Length: +2\r\n",
        "Content-Length: -2\r\n",
        "Content-Length: 0x2\r\n",
        "Content-Length: \r\n",
        "Content-Length: 99999999999999999999\r\n",
        "X-Folded: a\r\n b\r\nContent-Length: 2\r\n",
        &many,
    ] {
        let deployment = in_front_of(format!("HTTP/1.1 200 OK\r\n{lines}\r\nok"));
        for method in ["GET", "POST"] {
            let request = format!("{method} / HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n");
            let mut stream = Stream::send(deployment.address, &request);
            assert_eq!(stream.status(), 502, "{method}, {lines:?}");
            let said = stream.rest().0;
            assert!(said.contains("engine_broke_off"), "{said}");
        }
        deployment.settles();
    }
    // HTTP/1.0 has no chunks.
    let old = "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    assert_eq!(Stream::send(in_front_of(old).address, GET).status(), 502);
}

#[test]
fn a_length_that_is_said_twice_is_said_once() {
    for lines in [
        "Content-Length: 2\r\nContent-Length: 2",
        "Content-Length: 2, 2",
    ] {
        for (method, body) in [("GET", "ok"), ("HEAD", "")] {
            let deployment = in_front_of(format!("HTTP/1.1 200 OK\r\n{lines}\r\n\r\n{body}"));
            let request = format!("{method} / HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n");
            let mut stream = Stream::send(deployment.address, &request);
            let head = stream.head().to_lowercase();
            assert_eq!(head.matches("content-length: 2\r\n").count(), 1, "{head}");
            assert_eq!(stream.rest().0, body);
        }
    }
}

#[test]
fn an_answer_without_a_body_has_none_whatever_its_head_says() {
    for status in ["204 No Content", "304 Not Modified"] {
        for lines in ["Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n"] {
            let deployment = in_front_of(format!("HTTP/1.1 {status}\r\n{lines}\r\n"));
            let mut stream = Stream::send(deployment.address, GET);
            let head = stream.head().to_lowercase();
            assert!(
                head.starts_with(&format!("http/1.1 {}", &status[..3])),
                "{head}"
            );
            assert!(!head.contains("transfer-encoding"), "{head}");
            assert!(!head.contains("content-length"), "{head}");
            assert_eq!(stream.rest().0, "");
            deployment.settles();
        }
    }
    // The length that the answer to GET would have.
    let deployment = in_front_of("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
    let head = GET.replace("GET", "HEAD");
    let mut stream = Stream::send(deployment.address, &head);
    assert!(
        stream
            .head()
            .to_lowercase()
            .contains("content-length: 5\r\n")
    );
    assert_eq!(stream.rest().0, "");
}

#[test]
fn an_answer_that_is_cut_never_looks_whole() {
    for (answer, whole) in [
        ("Content-Length: 10\r\n\r\nshort", "short-----"),
        ("Transfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n", ""),
        ("Transfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n0\r\n", ""),
        ("Transfer-Encoding: chunked\r\n\r\n5\r\nshort\r\nz\r\n", ""),
        ("Transfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n-1\r\n", ""),
        (
            "Transfer-Encoding: chunked\r\n\r\n5\r\nshort!\r\n0\r\n\r\n",
            "",
        ),
    ] {
        let deployment = in_front_of(format!("HTTP/1.1 200 OK\r\n{answer}"));
        let mut stream = Stream::send(deployment.address, GET);
        // An engine that is found out at once may be found out before the head has gone.
        if stream.status() == 200 {
            let (got, is_whole) = stream.rest();
            assert!(
                !is_whole && got.len() < whole.len().max(15),
                "{answer:?}: {got:?}"
            );
        } else {
            assert_eq!(stream.status(), 502, "{answer:?}");
        }
        deployment.settles();
        // A client of HTTP/1.0 finds the end of the answer by the end of the connection, so that must be a reset.
        let mut stream = Stream::send(deployment.address, "GET / HTTP/1.0\r\n\r\n");
        match stream.rest_unless_reset() {
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{answer:?}"),
            Ok(got) => assert!(
                stream.status() == 502 || got.len() < whole.len(),
                "{answer:?}: {got:?}"
            ),
        }
        deployment.settles();
    }
}

#[test]
fn answers_are_as_new_as_their_client_and_not_as_their_engine() {
    for answer in [
        "HTTP/1.0 200 OK\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n2\r\nok\r\n0\r\nX-T: 1\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\nok",
    ] {
        let deployment = in_front_of(answer);
        let mut stream = Stream::send(deployment.address, GET);
        let head = stream.head().to_lowercase();
        assert!(
            head.starts_with("http/1.1 200 ok\r\n"),
            "{answer:?}: {head}"
        );
        assert_eq!(stream.rest(), ("2\r\nok\r\n0\r\n\r\n".to_owned(), true));
        // A client of HTTP/1.0 gets no chunks.
        let mut stream = Stream::send(deployment.address, "GET / HTTP/1.0\r\n\r\n");
        assert_eq!(stream.status(), 200);
        let head = stream.head().to_lowercase();
        assert!(!head.contains("transfer-encoding"), "{head}");
        assert_eq!(stream.rest_unless_reset().unwrap(), "ok");
        deployment.settles();
    }
}

#[test]
fn bytes_after_an_answer_are_not_the_next_one() {
    let engine = odd_engine(|connection| {
        while !read_head(connection).is_empty() {
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
            let other = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";
            say(connection, &format!("{answer}{other}"));
        }
    });
    let deployment = Deployment::start(&[engine], &["--workers=1"]);
    for _ in 0..5 {
        let mut stream = Stream::send(deployment.address, GET);
        assert_eq!(stream.rest().0, "ok");
        deployment.settles();
    }
}

#[test]
fn a_request_with_a_length_and_chunks_is_one_request() {
    let deployment = Deployment::start(&[mirror()], &["--workers=1"]);
    // A reader that goes by the length sees a second request in the body; one that goes by the chunks, after it.
    let hidden = "GET /hidden HTTP/1.1\r\nHost: t\r\n\r\n";
    for request in [
        format!(
            "POST /1 HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}"
        ),
        format!(
            "POST /1 HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n{hidden}"
        ),
    ] {
        let mut stream = Stream::send(deployment.address, &request);
        assert_eq!(stream.status(), 200);
        let got = stream.rest().0.to_lowercase();
        assert!(
            got.starts_with("post /1 ") && !got.contains("hidden"),
            "{got}"
        );
        assert!(got.contains("\r\ncontent-length: 0\r\n"), "{got}");
        assert!(!got.contains("transfer-encoding"), "{got}");
        deployment.settles();
    }
}

#[test]
fn a_request_whose_end_or_coding_is_unclear_is_refused() {
    let deployment = Deployment::start(&[mirror()], &["--workers=1"]);
    for (version, lines, status) in [
        ("1.1", "Transfer-Encoding: gzip, chunked\r\n", 501),
        (
            "1.1",
            "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
            400,
        ),
        (
            "1.1",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            400,
        ),
        ("1.1", "Transfer-Encoding: chunked, chunked\r\n", 501),
        ("1.1", "Transfer-Encoding: chunked, gzip\r\n", 400),
        ("1.1", "Transfer-Encoding: gzip\r\n", 400),
        ("1.1", "Transfer-Encoding: xchunked\r\n", 400),
        ("1.0", "Transfer-Encoding: chunked\r\n", 400),
        ("1.1", "Content-Length: 4\r\nContent-Length: 5\r\n", 400),
        ("1.1", "Content-Length: 5, 5\r\n", 400),
        ("1.1", "Content-Length: +5\r\n", 400),
        ("1.1", "Content-Length : 5\r\n", 400),
        ("1.1", "X-Folded: a\r\n b\r\nContent-Length: 5\r\n", 400),
    ] {
        let request =
            format!("POST /v1/completions HTTP/{version}\r\nHost: t\r\n{lines}\r\n0\r\n\r\n");
        let next = "GET /next HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n";
        let mut stream = Stream::send(deployment.address, &format!("{request}{next}"));
        assert_eq!(stream.status(), status, "{version} {lines:?}");
        let rest = stream.rest().0;
        assert!(
            !rest.contains("HTTP/1.1 "),
            "nothing follows {lines:?}: {rest}"
        );
        deployment.settles();
    }
}

#[test]
fn a_body_in_chunks_reaches_the_engine_whatever_the_method() {
    let deployment = Deployment::start(&[mirror()], &["--workers=1"]);
    let chunks = "3\r\nhel\r\n2;name=value\r\nlo\r\n0\r\nX-Trailer: 1\r\n\r\n";
    for method in ["GET", "DELETE", "OPTIONS", "PUT", "POST", "PATCH"] {
        let request = format!(
            "{method} / HTTP/1.1\r\nHost: t\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}"
        );
        let mut stream = Stream::send(deployment.address, &request);
        assert_eq!(stream.status(), 200);
        let got = stream.rest().0.to_lowercase();
        assert!(got.contains("content-length: 5\r\n"), "{got}");
        assert!(got.ends_with("\r\n\r\nhello"), "{got}");
    }
    // A body longer than the collected part goes in chunks again, and whole.
    let long = "x".repeat(5_000);
    let deployment = Deployment::start(&[mirror()], &["--workers=1", "--max-held", "100"]);
    for method in ["GET", "POST"] {
        let request = format!(
            "{method} / HTTP/1.1\r\nHost: t\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{long}\r\n0\r\n\r\n",
            long.len()
        );
        let got = Stream::send(deployment.address, &request).rest().0;
        assert_eq!(got.matches('x').count(), long.len() + 4, "{got}");
    }
}

#[test]
fn event_streams_pass_a_proxy_in_front_unless_their_engine_says_otherwise() {
    for (lines, expected) in [
        (
            "Content-Type: text/event-stream\r\n",
            &["x-accel-buffering: no"][..],
        ),
        (
            "Content-Type: Text/Event-Stream; charset=utf-8\r\n",
            &["x-accel-buffering: no"],
        ),
        (
            "Content-Type: text/event-stream\r\nX-Accel-Buffering: yes\r\n",
            &["x-accel-buffering: yes"],
        ),
        ("Content-Type: application/json\r\n", &[]),
        ("", &[]),
    ] {
        let deployment = in_front_of(format!("HTTP/1.1 200 OK\r\n{lines}\r\ndata: 1\n\n"));
        let mut stream = Stream::send(deployment.address, GET);
        let head = stream.head().to_lowercase();
        let found: Vec<_> = head
            .lines()
            .filter(|line| line.starts_with("x-accel"))
            .collect();
        assert_eq!(found, expected, "{lines:?}");
    }
}

#[test]
fn an_answer_before_the_body_is_there_is_passed_on() {
    // Answers by the head alone, and closes when the client has had it.
    let engine = odd_engine(|connection| {
        if !read_head(connection).is_empty() {
            let head = "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\n";
            say(connection, &format!("{head}no\n"));
            read_request(connection);
        }
    });
    let deployment = Deployment::start(&[engine], &["--workers=1", "--max-held", "100"]);
    let head = "POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 1000000\r\n\r\n";
    let mut stream = Stream::send(deployment.address, &format!("{head}{}", "x".repeat(200)));
    assert_eq!(stream.status(), 413);
    assert_eq!(stream.bytes(3), b"no\n");
    deployment.settles();
}
