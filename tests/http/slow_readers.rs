//! Clients that still read when the server has their whole answer, and the limits for them.

use crate::deployment::{Deployment, agent, signal};
use crate::engine::{odd_engine, read_head, say};
use crate::stream::Stream;
use headcount_tests::{eventually, is_running};
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

/// Pieces of an answer, and one of them: less in all than a worker keeps for a client, and more than the kernels
/// keep for one from afar.
const PIECES: usize = 4_000;
const PIECE: &str = "x123456789x123456789x123456789x123456789x123456789x123456789x123456789x123456789x123456789x123456789\
    x123456789x123456789x123456789x123456789x123456789x123456789x123456789x123456789x123456789x12345678\n";

/// Starts an engine whose answer has no length.
fn engine() -> SocketAddr {
    odd_engine(|connection| {
        while !read_head(connection).is_empty() {
            say(
                connection,
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            );
            for _ in 0..PIECES {
                say(connection, &format!("{:x}\r\n{PIECE}\r\n", PIECE.len()));
            }
            say(connection, "0\r\n\r\n");
        }
    })
}

/// Starts a distant client that reads nothing yet, while the server has its whole answer.
fn reader(deployment: &Deployment, request: &str) -> Stream {
    let before = deployment.table.view().engines[0].admitted_total;
    let stream = Stream::send_from_afar(deployment.address, request);
    eventually("the request's admission", || {
        deployment.table.view().engines[0].admitted_total == before + 1
    });
    deployment.settles();
    stream
}

/// Returns how many connections of clients are open, without the one that asks.
pub(crate) fn connections(deployment: &Deployment) -> u64 {
    let mut answer = agent().get(deployment.url("/metrics")).call().unwrap();
    let text = answer.body_mut().read_to_string().unwrap();
    let name = "headcount_http_connections ";
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap().parse::<u64>().unwrap() - 1
}

#[test]
fn a_connection_is_not_idle_before_the_last_byte_is_written() {
    let options = ["--workers=1", "--keepalive-timeout", "0.2"];
    let deployment = Deployment::start(&[engine()], &options);
    let mut stream = reader(&deployment, "GET / HTTP/1.1\r\nHost: t\r\n\r\n");
    assert_eq!(stream.status(), 200);
    // The client reads some bytes meanwhile, so it has not stopped reading.
    for _ in 0..10 {
        stream.bytes(1 << 10);
        thread::sleep(Duration::from_millis(100));
    }
    let (rest, is_whole) = stream.rest();
    assert!(is_whole, "cut after {} bytes more", rest.len());
    // Then it is idle, and closed: `rest` has read up to there.

    let mut stream = reader(&deployment, "GET / HTTP/1.0\r\n\r\n");
    thread::sleep(Duration::from_secs(1));
    let rest = stream.rest_unless_reset().unwrap();
    assert_eq!(rest.len(), PIECES * PIECE.len());
}

#[test]
fn an_old_client_is_not_told_that_a_cut_answer_is_whole() {
    type Event = fn(&mut Deployment, &mut Stream);
    let events: [(&str, &[&str], Event); 5] = [
        (
            "it pauses for too long",
            &["--client-idle-timeout", "0.5"],
            |deployment, _| {
                eventually("the end of the connection", || connections(deployment) == 0);
            },
        ),
        (
            "the time for draining is over",
            &["--drain-timeout", "0.5"],
            |deployment, _| {
                signal(deployment.pid(), libc::SIGTERM);
                eventually("the end of the server", || deployment.ended().is_some());
            },
        ),
        (
            "a second signal",
            &["--drain-timeout", "600"],
            |deployment, _| {
                signal(deployment.pid(), libc::SIGTERM);
                thread::sleep(Duration::from_millis(100));
                let mut last = Instant::now();
                eventually("the end of the server", || {
                    if last.elapsed() > Duration::from_millis(500) {
                        signal(deployment.pid(), libc::SIGTERM);
                        last = Instant::now();
                    }
                    deployment.ended().is_some()
                });
            },
        ),
        ("the worker is killed", &[], |deployment, _| {
            let worker = deployment.workers()[0];
            signal(worker, libc::SIGKILL);
            eventually("the death of the worker", || !is_running(worker));
        }),
        ("it shuts its sending side", &[], |deployment, stream| {
            stream.shut();
            eventually("the end of the connection", || connections(deployment) == 0);
        }),
    ];
    let mut seem_whole = Vec::new();
    for (what, more, happens) in events {
        let options = [&["--workers=1"], more].concat();
        let mut deployment = Deployment::start(&[engine()], &options);
        let mut stream = reader(&deployment, "GET / HTTP/1.0\r\n\r\n");
        assert_eq!(stream.status(), 200, "{what}");
        happens(&mut deployment, &mut stream);
        if let Ok(rest) = stream.rest_unless_reset() {
            seem_whole.push((what, rest.len()));
        }
    }
    assert_eq!(seem_whole, []);
}
