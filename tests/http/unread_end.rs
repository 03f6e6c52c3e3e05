//! A deployment ends although its output is not read.

use crate::deployment::{agent, program, signal};
use crate::engine::MockEngine;
use crate::stream::Stream;
use headcount_tests::eventually;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::process::Command;
use std::time::{Duration, Instant};

/// Ends a deployment with a request in flight, whose output goes into a full pipe, with a second signal
/// or without. Returns how long that takes.
fn time_to_end_unread(second: bool, drain_timeout: &str) -> Duration {
    let engine = MockEngine::start("0.01");
    let (reader, writer) = std::io::pipe().unwrap();
    let mut process = Command::new(program())
        .args(["--engine", &format!("http://{}", engine.address)])
        .args(["--listen", "127.0.0.1:0", "--workers=1", "--access-log"])
        .args(["--drain-timeout", drain_timeout])
        .stdout(writer.try_clone().unwrap())
        .stderr(writer.try_clone().unwrap())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(reader).lines();
    let line = lines.next().unwrap().unwrap();
    let address = line
        .trim()
        .strip_prefix("headcount-server: listening on http://")
        .unwrap();
    let address = address.parse().unwrap();
    let mut stream = Stream::ask(address, 1_000_000);
    assert!(stream.token());
    // Opened again, so that only this descriptor does not block.
    let pipe = format!("/proc/self/fd/{}", writer.as_raw_fd());
    let mut pipe = (std::fs::OpenOptions::new().write(true))
        .custom_flags(libc::O_NONBLOCK)
        .open(pipe)
        .unwrap();
    while pipe.write(b"\n").is_ok() {}
    // Both streams have lines to write.
    for _ in 0..3 {
        let live = agent().get(format!("http://{address}/live")).call();
        assert_eq!(live.unwrap().status(), 200);
    }

    let (pid, start) = (process.id() as i32, Instant::now());
    signal(pid, libc::SIGTERM);
    if second {
        eventually("the end of listening", || {
            TcpStream::connect(address).is_err()
        });
        signal(pid, libc::SIGTERM);
    }
    eventually("the end of the server", || {
        process.try_wait().unwrap().is_some()
    });
    start.elapsed()
}

#[test]
fn a_second_signal_ends_a_deployment_whose_output_is_not_read_at_once() {
    let time = time_to_end_unread(true, "3600");
    assert!(time < Duration::from_secs(4), "{time:?}");
}

#[test]
fn a_log_that_is_not_read_adds_little_to_the_time_of_the_end() {
    // One second, and two each for the worker and the parent.
    let time = time_to_end_unread(false, "1");
    assert!(time < Duration::from_secs(9), "{time:?}");
}
