//! Engines that answer, and do not read their requests.

use crate::deployment::Deployment;
use crate::engine::{odd_engine, read_head, say};
use crate::stream::Stream;
use headcount_tests::eventually;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// More bytes than a connection holds between two processes.
const LARGE: usize = 16_000_000;

fn post() -> String {
    let head = "POST / HTTP/1.1\r\nHost: t\r\n";
    let body = " ".repeat(LARGE);
    format!("{head}Content-Length: {LARGE}\r\n\r\n{body}")
}

/// Returns how many descriptors the one worker has open.
fn descriptors(deployment: &Deployment) -> usize {
    let path = format!("/proc/{}/fd", deployment.workers()[0]);
    std::fs::read_dir(path).unwrap().count()
}

#[test]
fn an_engine_that_does_not_read_learns_that_the_client_has_left() {
    let ended = Arc::new(AtomicUsize::new(0));
    let noted = Arc::clone(&ended);
    let engine = odd_engine(move |connection| {
        read_head(connection);
        say(
            connection,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        );
        while say(connection, "5\r\ntoken\r\n") {
            thread::sleep(Duration::from_millis(20));
        }
        noted.fetch_add(1, Relaxed);
    });
    let deployment = Deployment::start(&[engine], &["--workers=1"]);
    let before = descriptors(&deployment);
    let request = post();
    for count in 1..=3 {
        let mut stream = Stream::send(deployment.address, &request);
        assert_eq!(stream.status(), 200);
        drop(stream);
        eventually("the end of the engine's work", || {
            ended.load(Relaxed) == count
        });
        deployment.settles();
    }
    eventually("the end of its connections", || {
        descriptors(&deployment) <= before
    });
}

#[test]
fn a_request_that_was_answered_unread_does_not_keep_a_connection() {
    let engine = odd_engine(|connection| {
        read_head(connection);
        say(
            connection,
            "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno",
        );
        // It lives on, and reads nothing more.
        thread::sleep(Duration::from_secs(600));
    });
    let deployment = Deployment::start(&[engine], &["--workers=1"]);
    let before = descriptors(&deployment);
    let request = post();
    for _ in 0..3 {
        let mut stream = Stream::send(deployment.address, &request);
        assert_eq!(stream.status(), 401);
        assert_eq!(stream.bytes(2), b"no");
    }
    eventually("the end of its connections", || {
        descriptors(&deployment) <= before
    });
    deployment.settles();
}

#[test]
fn an_engine_may_be_slow_to_read() {
    let engine = odd_engine(|connection| {
        read_head(connection);
        // Several times as long as a host may be silent.
        thread::sleep(Duration::from_secs(8));
        let mut body = vec![0; LARGE];
        if connection.read_exact(&mut body).is_ok() {
            say(connection, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        }
    });
    let options = ["--workers=1", "--engine-keepalive", "1"];
    let deployment = Deployment::start(&[engine], &options);
    let mut stream = Stream::send(deployment.address, &post());
    assert_eq!(stream.status(), 200);
    assert_eq!(stream.bytes(2), b"ok");
    deployment.settles();
}

#[test]
fn an_engine_that_talks_and_does_not_answer_is_given_up() {
    let engine = odd_engine(|connection| {
        read_head(connection);
        let interim = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".repeat(1_000);
        while say(connection, &interim) {}
    });
    let deployment = Deployment::start(&[engine], &["--workers=1"]);
    let request = "POST / HTTP/1.1\r\nHost: t\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    let mut stream = Stream::send(deployment.address, request);
    assert_eq!(stream.status(), 502);
    let said = stream.rest().0;
    assert!(said.contains("1048576 bytes of interim answers"), "{said}");
    deployment.settles();
}

#[test]
fn an_engine_may_say_that_it_works_and_then_much() {
    let large = "x".repeat(8 << 20);
    let engine = odd_engine(move |connection| {
        // One connection for all requests.
        while !read_head(connection).is_empty() {
            say(
                connection,
                &"HTTP/1.1 102 Processing\r\n\r\n".repeat(20_000),
            );
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", large.len());
            say(connection, &(head + &large));
        }
    });
    let deployment = Deployment::start(&[engine], &["--workers=1"]);
    for _ in 0..4 {
        let mut stream = Stream::send(deployment.address, "GET / HTTP/1.1\r\nHost: t\r\n\r\n");
        assert_eq!(stream.status(), 200);
        assert!(stream.bytes(8 << 20).iter().all(|byte| *byte == b'x'));
    }
    deployment.settles();
}
