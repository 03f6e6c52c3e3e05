//! Clients that leave, that read slowly or not at all, that send half a request.

use crate::deployment::{Deployment, agent};
use crate::engine::{MockEngine, addresses, odd_engine, read_head, say};
use crate::stream::Stream;
use headcount_tests::eventually;
use std::thread;
use std::time::Duration;

#[test]
fn a_client_that_disconnects_frees_the_place_and_stops_the_engine() {
    let engines = MockEngine::several(2, "0.02");
    let deployment = Deployment::start(&addresses(&engines), &[]);
    // In mid-stream.
    let streams: Vec<_> = (0..8).map(|_| deployment.stream(1_000_000)).collect();
    assert_eq!(deployment.in_flight(), [4, 4]);
    drop(streams);
    deployment.settles();
    for engine in &engines {
        engine.becomes_idle();
    }
    // Before the first byte: the answer comes in one piece, in hours.
    let waiting: Vec<_> = (0..8)
        .map(|_| Stream::post(deployment.address, "{\"max_tokens\":1000000}"))
        .collect();
    eventually("eight requests in flight", || {
        deployment.in_flight() == [4, 4]
    });
    for engine in &engines {
        engine.comes_to_run(4);
    }
    drop(waiting);
    deployment.settles();
    for engine in &engines {
        engine.becomes_idle();
        assert_eq!(engine.stat("aborted"), 8);
    }
}

#[test]
fn half_a_request_holds_nothing_for_long() {
    let engines = MockEngine::several(1, "0.002");
    let options = ["--client-idle-timeout", "1"];
    let deployment = Deployment::start(&addresses(&engines), &options);
    let head = HALF_HEAD;
    // Half a head, and then nothing: the client gets an error or is cut off, and is never counted.
    let mut half_head = Stream::send(deployment.address, head);
    assert!(half_head.is_ended());
    assert_eq!(deployment.total(), 0);
    // Half a body, and then nothing.
    let mut half_body = Stream::send(deployment.address, &format!("{head}\r\n{{\"max_tok"));
    assert_eq!(half_body.status(), 408);
    deployment.settles();
    // Half a body, and gone.
    for _ in 0..10 {
        let stream = Stream::send(deployment.address, &format!("{head}\r\n{{\"max_tok"));
        thread::sleep(Duration::from_millis(10));
        drop(stream);
    }
    deployment.settles();
    engines[0].becomes_idle();
    assert_eq!(engines[0].stat("served"), 0);
}

/// The head of a request with a body of 100 bytes, without its end.
const HALF_HEAD: &str = "POST /v1/completions HTTP/1.1\r\nHost: test\r\nContent-Length: 100\r\n";

#[test]
fn two_halves_of_a_request_are_one() {
    let engines = MockEngine::several(1, "0.002");
    let deployment = Deployment::start(&addresses(&engines), &[]);
    let start = format!("{HALF_HEAD}\r\n{{\"max_tok");
    let mut slow = Stream::send(deployment.address, &start);
    // Longer than the collected part, so the server passes on the beginning.
    thread::sleep(Duration::from_millis(300));
    slow.more(&format!(
        "ens\":1}}{}",
        " ".repeat(100 - "{\"max_tokens\":1}".len())
    ))
    .unwrap();
    assert_eq!(slow.status(), 200);
}

/// Answers with far more than sockets hold.
fn large_engine() -> std::net::SocketAddr {
    odd_engine(|connection| {
        if read_head(connection).is_empty() {
            return;
        }
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\n\r\n");
        let mut left = if say(connection, &head) { LARGE } else { 0 };
        let piece = "x".repeat(1 << 16);
        while left > 0 && say(connection, &piece) {
            left -= piece.len();
        }
    })
}

// Buffers of a connection may hold 32 MiB, where the kernel lets them grow to that.
const LARGE: usize = 128 << 20;

#[test]
fn a_client_that_reads_slowly_gets_all_and_counts_until_then() {
    let deployment = Deployment::start(&[large_engine()], &["--client-idle-timeout", "4"]);
    let mut stream = Stream::post(deployment.address, "");
    assert_eq!(stream.status(), 200);
    let mut read = 0;
    // Longer in all than a client may pause.
    for _ in 0..18 {
        read += stream.bytes(1 << 20).len();
        assert_eq!(deployment.total(), 1);
        thread::sleep(Duration::from_millis(250));
    }
    let (rest, _) = stream.rest();
    assert_eq!(read + rest.len(), LARGE);
    deployment.settles();
}

#[test]
fn a_client_that_does_not_read_at_all_is_cut_off() {
    let deployment = Deployment::start(&[large_engine()], &["--client-idle-timeout", "1"]);
    let mut stream = Stream::post(deployment.address, "");
    assert_eq!(stream.status(), 200);
    deployment.settles();
    assert!(stream.rest().0.len() < LARGE);
    assert_eq!(Stream::post(deployment.address, "").status(), 200);
}

#[test]
fn bodies_have_a_limit() {
    let engines = MockEngine::several(1, "0.002");
    let options = ["--max-body", "200000"];
    let deployment = Deployment::start(&addresses(&engines), &options);
    let url = deployment.url("/v1/completions");
    let body = |length: usize| {
        let start = "{\"max_tokens\":1}";
        format!("{start}{}", " ".repeat(length - start.len()))
    };
    let post = |length| agent().post(&url).send(body(length)).unwrap().status();
    assert_eq!(post(200_000), 200);
    assert_eq!(post(200_001), 413);
    // A body without a length, which turns out to be too large.
    let head = "POST /v1/completions HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut stream = Stream::send(deployment.address, head);
    let chunk = format!("{:x}\r\n{}\r\n", 50_000, " ".repeat(50_000));
    for _ in 0..5 {
        let _ = stream.more(&chunk);
    }
    assert_eq!(stream.status(), 413);
    deployment.settles();
    engines[0].becomes_idle();
    assert_eq!(engines[0].stat("served"), 1);
}

#[test]
fn a_small_body_has_a_limit_too() {
    let engines = MockEngine::several(1, "0.002");
    let deployment = Deployment::start(&addresses(&engines), &["--max-body", "1000"]);
    let head = "POST /v1/completions HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (length, status) in [(1000, 200), (1001, 413)] {
        let body = format!("{{\"max_tokens\":1}}{}", " ".repeat(length - 16));
        let chunks = format!("{head}{length:x}\r\n{body}\r\n0\r\n\r\n");
        assert_eq!(Stream::send(deployment.address, &chunks).status(), status);
    }
    deployment.settles();
    assert_eq!(engines[0].stat("served"), 1);
}

#[test]
fn a_body_that_makes_no_sense_is_the_clients_mistake() {
    let engines = MockEngine::several(1, "0.002");
    let deployment = Deployment::start(&addresses(&engines), &[]);
    let head = "POST /v1/completions HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut stream = Stream::send(deployment.address, &format!("{head}no length\r\n"));
    assert_eq!(stream.status(), 400);
    assert!(stream.rest().0.contains("body_broken_off"));
    deployment.settles();
    assert_eq!(engines[0].stat("served"), 0);
}
