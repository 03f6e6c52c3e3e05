//! Connections that the server closes. Their clients get the whole answer, even if they read slowly and send
//! something more.

use crate::deployment::{Deployment, agent, signal};
use crate::descriptors::limit;
use crate::engine::engine_that_says;
use crate::slow_readers::connections;
use crate::stream::Stream;
use headcount_tests::eventually;
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

/// An engine whose answers have bodies of so many bytes.
fn engine(length: usize) -> SocketAddr {
    let body = "x".repeat(length);
    engine_that_says(format!(
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    ))
}

const CLOSING: &str =
    "POST /a HTTP/1.1\r\nHost: t\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}";

/// Starts a client that reads nothing yet, while the server has its whole answer.
fn reader(deployment: &Deployment, request: &str) -> Stream {
    let stream = Stream::send_from_afar(deployment.address, request);
    eventually("the request's admission", || {
        deployment.table.view().engines[0].admitted_total == 1
    });
    deployment.settles();
    stream
}

#[test]
fn an_answer_that_ends_its_connection_gets_to_a_slow_client_that_sends_more() {
    let deployment = Deployment::start(&[engine(100_000)], &["--workers=1"]);
    let mut stream = reader(&deployment, CLOSING);
    assert_eq!(stream.status(), 200);
    thread::sleep(Duration::from_millis(300));
    for _ in 0..3 {
        stream.more("\r\n").unwrap();
        thread::sleep(Duration::from_millis(100));
    }
    let rest = stream.rest_unless_reset().unwrap();
    assert_eq!(rest.len(), 100_000);
}

#[test]
fn an_answer_on_a_connection_that_is_kept_gets_to_a_slow_client_when_the_deployment_ends() {
    let options = ["--workers=1", "--drain-timeout", "60"];
    let mut deployment = Deployment::start(&[engine(300_000)], &options);
    let mut stream = reader(&deployment, "GET / HTTP/1.1\r\nHost: t\r\n\r\n");
    assert_eq!(stream.status(), 200);
    // The server writes meanwhile what the kernels did not take before.
    stream.bytes(100_000);
    thread::sleep(Duration::from_millis(300));
    signal(deployment.pid(), libc::SIGTERM);
    eventually("the end of listening", || {
        TcpStream::connect(deployment.address).is_err()
    });
    thread::sleep(Duration::from_millis(300));
    stream.more("GET / HTTP/1.1\r\nHost: t\r\n\r\n").unwrap();
    thread::sleep(Duration::from_millis(300));
    let rest = stream.rest_unless_reset().unwrap();
    assert_eq!(rest.len(), 200_000, "the rest of one answer");
    drop(stream);
    eventually("the end of the server", || deployment.ended().is_some());
    assert!(deployment.ended().unwrap().success());
}

#[test]
fn an_answer_on_a_connection_that_was_idle_for_too_long_gets_to_a_slow_client() {
    let options = ["--workers=1", "--keepalive-timeout", "0.3"];
    let deployment = Deployment::start(&[engine(100_000)], &options);
    let mut stream = reader(&deployment, "GET / HTTP/1.1\r\nHost: t\r\n\r\n");
    assert_eq!(stream.status(), 200);
    thread::sleep(Duration::from_secs(1));
    stream.more("GET / HTTP/1.1\r\nHost: t\r\n\r\n").unwrap();
    thread::sleep(Duration::from_millis(300));
    let rest = stream.rest_unless_reset().unwrap();
    assert_eq!(rest.len(), 100_000);
}

#[test]
fn a_client_that_does_not_close_its_side_keeps_its_connection_for_a_while_only() {
    let deployment = Deployment::start(&[engine(10)], &["--workers=1"]);
    let mut reads = Stream::send(deployment.address, CLOSING);
    let does_not = Stream::send_from_afar(deployment.address, CLOSING);
    assert_eq!(reads.rest_unless_reset().unwrap().len(), 10);
    deployment.settles();
    eventually("the end of both processes", || {
        connections(&deployment) == 0
    });
    drop((reads, does_not));
}

#[test]
fn connections_that_are_being_closed_keep_no_client_out_and_hold_up_no_end() {
    let engine = engine(10);
    let options = ["--workers=1", "--drain-timeout", "3600"];
    let mut deployment = Deployment::start_logging(&[engine], &options, |command| {
        limit(command, 200, 200);
    });
    let mut kept = Vec::new();
    for number in 0..300 {
        let mut stream = Stream::send(deployment.address, CLOSING);
        assert_eq!(stream.status(), 200, "{number}");
        assert_eq!(stream.rest_unless_reset().unwrap().len(), 10);
        kept.push(stream);
    }
    assert_eq!(
        agent()
            .get(deployment.url("/live"))
            .call()
            .unwrap()
            .status(),
        200
    );
    signal(deployment.pid(), libc::SIGTERM);
    eventually("the end of the server", || deployment.ended().is_some());
}
