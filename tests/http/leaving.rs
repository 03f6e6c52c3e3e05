//! A client that has left has no place at an engine, even if it has sent bytes that were not read yet.

use crate::deployment::Deployment;
use crate::engine::{MockEngine, addresses, odd_engine, read_head, say};
use crate::stream::Stream;
use headcount_tests::eventually;
use std::time::Instant;

/// Bytes that a client may send after its request.
const BEHIND: [&str; 4] = [
    "",
    "\r\n",
    "GET /second HTTP/1.1\r\nHost: t\r\n\r\n",
    "no request at all",
];

fn post(body: &str) -> String {
    let length = body.len();
    format!("POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: {length}\r\n\r\n{body}")
}

/// Fails if the place is freed only by something else: nothing does that within minutes.
fn soon(start: Instant) {
    let time = start.elapsed().as_secs();
    assert!(time < 30, "noticed after {time} s");
}

#[test]
fn a_client_that_leaves_before_the_answer_is_noticed_whatever_lies_unread() {
    let engines = MockEngine::several(1, "0.05");
    let options = ["--workers=1", "--max-in-flight", "1"];
    let deployment = Deployment::start(&addresses(&engines), &options);
    for behind in BEHIND {
        for half in [false, true] {
            // The answer comes in one piece, in hours.
            let request = post("{\"max_tokens\":1000000}");
            let mut stream = Stream::send(deployment.address, &format!("{request}{behind}"));
            engines[0].comes_to_run(1);
            assert_eq!(deployment.total(), 1);
            let start = Instant::now();
            if half {
                // The client shuts down its sending side, which counts as leaving.
                stream.shut();
                assert!(stream.is_ended());
            }
            drop(stream);
            deployment.settles();
            engines[0].becomes_idle();
            soon(start);
        }
    }
    assert_eq!(engines[0].stat("aborted"), 2 * BEHIND.len() as u64);
}

#[test]
fn a_client_that_leaves_within_the_answer_is_noticed_though_the_engine_is_silent() {
    // The engine begins its answer, and then pauses for hours.
    let engine = odd_engine(|connection| {
        if !read_head(connection).is_empty() {
            say(
                connection,
                "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun",
            );
            read_head(connection);
        }
    });
    let deployment = Deployment::start(&[engine], &["--workers=1"]);
    for behind in BEHIND {
        let get = format!("GET / HTTP/1.1\r\nHost: t\r\n\r\n{behind}");
        let mut stream = Stream::send(deployment.address, &get);
        assert_eq!(stream.status(), 200);
        assert_eq!(stream.bytes(5), b"begun");
        assert_eq!(deployment.total(), 1);
        let start = Instant::now();
        drop(stream);
        deployment.settles();
        soon(start);
    }
}

#[test]
fn requests_behind_one_another_are_answered_in_turn() {
    let engines = MockEngine::several(1, "0.01");
    let deployment = Deployment::start(&addresses(&engines), &["--workers=1"]);
    let requests = post("{\"max_tokens\":3}").repeat(5);
    let end = "GET /health HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n";
    let mut stream = Stream::send(deployment.address, &format!("{requests}{end}"));
    let said = format!("{}{}", stream.head().to_owned(), stream.rest().0);
    assert_eq!(said.matches("HTTP/1.1 200 OK").count(), 6, "{said}");
    deployment.settles();
    assert_eq!(engines[0].stat("served"), 5);
    assert_eq!(engines[0].stat("aborted"), 0);
}

/// The tokens of an answer, and one of them: more in all than the kernels keep for a distant client.
const TOKENS: usize = 4_000;
const TOKEN: &str = "data: {\"choices\":[{\"index\":0,\"text\":\" token\",\"logprobs\":null,\"finish_reason\":null,\"more\":\"............................................................................................................\"}]}\n\n";

#[test]
fn an_engine_that_has_finished_is_free_though_its_client_does_not_read() {
    let engine = odd_engine(|connection| {
        while !read_head(connection).is_empty() {
            let kind = "Content-Type: text/event-stream";
            let head = format!("HTTP/1.1 200 OK\r\n{kind}\r\nTransfer-Encoding: chunked\r\n\r\n");
            say(connection, &head);
            for _ in 0..TOKENS {
                say(connection, &format!("{:x}\r\n{TOKEN}\r\n", TOKEN.len()));
            }
            say(connection, "0\r\n\r\n");
        }
    });
    let deployment = Deployment::start(&[engine], &["--workers=1"]);
    let get = "GET / HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n";
    let mut stream = Stream::send_from_afar(deployment.address, get);
    eventually("the request's admission", || {
        deployment.table.view().engines[0].admitted_total == 1
    });
    let start = Instant::now();
    deployment.settles();
    soon(start);
    assert_eq!(stream.status(), 200);
    let (got, is_whole) = stream.rest();
    assert!(is_whole);
    // Chunks may end anywhere, but not within a letter.
    let letters = |text: &str| text.matches('{').count();
    assert_eq!(letters(&got), letters(TOKEN) * TOKENS);
}
