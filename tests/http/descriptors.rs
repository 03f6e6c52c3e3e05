//! Processes raise their limit of descriptors, and keep enough of them for the requests that have begun.

use crate::deployment::{Deployment, agent, signal};
use crate::engine::MockEngine;
use crate::engines::descriptors;
use crate::stream::Stream;
use headcount::EngineState;
use headcount_tests::eventually;
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// Makes a command start its program with these limits, soft and hard.
pub(crate) fn limit(command: &mut Command, soft: u64, hard: u64) {
    let limits = libc::rlimit {
        rlim_cur: soft,
        rlim_max: hard,
    };
    let set = move || {
        // SAFETY: reads the limits only.
        match unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limits) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: one system call, which may be made between fork and exec.
    unsafe { command.pre_exec(set) };
}

#[test]
fn all_processes_raise_their_soft_limit_of_descriptors() {
    let engine = MockEngine::start("0.02");
    let deployment = Deployment::start_logging(&[engine.address], &["--workers=1"], |command| {
        limit(command, 64, 2048);
    });
    for pid in [deployment.pid(), deployment.workers()[0]] {
        let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
        let line = limits.lines().find(|l| l.starts_with("Max open files"));
        let words: Vec<_> = line.unwrap().split_whitespace().collect();
        assert_eq!(words[3..5], ["2048", "2048"], "{pid}");
    }
    // 64 descriptors would not suffice for so many.
    let streams: Vec<_> = (0..100).map(|_| deployment.stream(1_000_000)).collect();
    drop(streams);
    deployment.settles();
}

#[test]
fn requests_that_have_begun_have_descriptors_and_more_is_refused_while_our_pages_answer() {
    let engine = MockEngine::start("0.02");
    let address = engine.address;
    let deployment = Deployment::start_logging(&[address], &["--workers=1"], |command| {
        limit(command, 200, 200);
    });
    let body = "{\"max_tokens\":1000000,\"stream\":true}";
    // Each a client, and a connection to the engine.
    let mut streams: Vec<_> = (0..120)
        .map(|_| Stream::post(deployment.address, body))
        .collect();
    let statuses: Vec<_> = streams.iter_mut().map(Stream::status).collect();
    let refused = statuses.iter().filter(|&&status| status == 503).count();
    let served = statuses.iter().filter(|&&status| status == 200).count();
    assert_eq!(
        (served + refused, served),
        (120, deployment.total() as usize)
    );
    assert!((60..100).contains(&served), "{statuses:?}");
    let last = statuses.iter().rposition(|&status| status == 503).unwrap();
    let last = &mut streams[last];
    assert!(last.rest().0.contains("too_many_connections"));
    // No engine is marked down, and the pages still answer.
    assert_eq!(deployment.state(address), Some(EngineState::Active));
    for _ in 0..5 {
        let start = Instant::now();
        let health = agent().get(deployment.url("/health")).call().unwrap();
        assert_eq!(health.status(), 200);
        assert!(start.elapsed() < Duration::from_secs(20));
    }
    // The worker's line may still be on its way through the process that writes the log.
    let lines = || deployment.log().matches("limit of open files").count();
    eventually("the line about descriptors", || lines() > 0);
    let lines = lines();
    assert_eq!(lines, 1, "{}", deployment.log());
    streams.truncate(5);
    eventually("places for more", || {
        Stream::post(deployment.address, "{\"max_tokens\":1}").status() == 200
    });
    drop(streams);
    deployment.settles();
}

#[test]
fn that_connections_cannot_be_accepted_is_said_once_and_not_each_time() {
    let engine = MockEngine::start("0.02");
    let options = ["--workers=1"];
    let deployment = Deployment::start_logging(&[engine.address], &options, |_| {});
    let worker = deployment.workers()[0];
    let said = || {
        deployment
            .log()
            .matches("cannot accept connections")
            .count()
    };
    for _ in 0..4 {
        let before = descriptors(worker, 3);
        let mut waiting = Stream::send(deployment.address, "GET /live HTTP/1.1\r\nHost: t\r\n\r\n");
        eventually("a log line about the failure", || said() >= 1);
        // It is tried again meanwhile.
        thread::sleep(Duration::from_millis(200));
        descriptors(worker, before);
        assert_eq!(waiting.status(), 200);
    }
    // The log has every line that was written before this answer.
    signal(worker, libc::SIGTERM);
    eventually("another worker", || {
        deployment.workers().first().is_some_and(|w| *w != worker)
    });
    assert_eq!(said(), 1, "{}", deployment.log());
}
