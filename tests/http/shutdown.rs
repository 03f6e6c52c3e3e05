//! The end of a deployment: behind a balancer, by a second signal, under a supervisor.

use crate::deployment::{Deployment, agent, complete, signal};
use crate::engine::{MockEngine, addresses};
use crate::stream::Stream;
use headcount_tests::{eventually, is_running};
use std::net::TcpStream;
use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

/// Returns status and body of a page.
fn get(deployment: &Deployment, path: &str) -> (u16, String) {
    let mut answer = agent().get(deployment.url(path)).call().unwrap();
    let body = answer.body_mut().read_to_string().unwrap();
    (answer.status().as_u16(), body)
}

#[test]
fn with_a_delay_health_is_bad_first_and_new_requests_are_served() {
    let engines = MockEngine::several(2, "0.02");
    let options = ["--shutdown-delay", "3600"];
    let mut deployment = Deployment::start_logging(&addresses(&engines), &options, |_| {});
    let post =
        "POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 16\r\n\r\n{\"max_tokens\":1}";
    let mut before = Stream::send(deployment.address, post);
    assert_eq!(before.status(), 200);
    assert!(!before.head().to_lowercase().contains("connection: close"));
    assert_eq!(get(&deployment, "/health").0, 200);

    signal(deployment.pid(), libc::SIGTERM);
    // All four workers have to learn of it.
    let mut bad = 0;
    eventually("bad health at each worker", || {
        let (status, body) = get(&deployment, "/health");
        bad = if status == 503 { bad + 1 } else { 0 };
        assert!(status == 200 || body.contains("\"draining\""), "{body}");
        bad == 40
    });
    for _ in 0..20 {
        let mut stream = Stream::send(deployment.address, post);
        assert_eq!(stream.status(), 200);
        let head = stream.head().to_lowercase();
        assert!(head.contains("connection: close"), "{head}");
    }
    assert_eq!(get(&deployment, "/live").0, 200, "it is alive");
    signal(deployment.pid(), libc::SIGTERM);
    eventually("the end of the server", || deployment.ended().is_some());
}

#[test]
fn after_the_delay_it_stops_listening_and_ends() {
    let engines = MockEngine::several(1, "0.02");
    let options = ["--shutdown-delay", "1"];
    let mut deployment = Deployment::start_logging(&addresses(&engines), &options, |_| {});
    let mut stream = deployment.stream(100);
    let start = Instant::now();
    signal(deployment.pid(), libc::SIGTERM);
    eventually("the end of listening", || {
        TcpStream::connect(deployment.address).is_err()
    });
    assert!(start.elapsed() >= Duration::from_secs(1));
    assert!(stream.rest().1, "what is in flight is finished");
    eventually("the end of the server", || deployment.ended().is_some());
    assert!(deployment.ended().unwrap().success());
}

#[test]
fn a_worker_that_is_started_during_the_delay_knows_of_it() {
    let engines = MockEngine::several(1, "0.02");
    let options = ["--workers=1", "--shutdown-delay", "30"];
    let mut deployment = Deployment::start_logging(&addresses(&engines), &options, |_| {});
    signal(deployment.pid(), libc::SIGTERM);
    eventually("bad health", || get(&deployment, "/health").0 == 503);
    let worker = deployment.workers()[0];
    signal(worker, libc::SIGKILL);
    eventually("another worker", || {
        !deployment.workers().is_empty() && !deployment.workers().contains(&worker)
    });
    eventually("bad health", || get(&deployment, "/health").0 == 503);
    assert_eq!(
        complete(&agent(), &deployment.url("/v1/completions"), 1)
            .unwrap()
            .0,
        200
    );
    signal(deployment.pid(), libc::SIGTERM);
    eventually("the end of the server", || deployment.ended().is_some());
}

#[test]
fn a_second_signal_ends_at_once_what_the_first_one_waits_for() {
    let engines = MockEngine::several(2, "0.02");
    let options = ["--drain-timeout", "3600"];
    let mut deployment = Deployment::start_logging(&addresses(&engines), &options, |_| {});
    let workers = deployment.workers();
    let mut streams: Vec<_> = (0..3).map(|_| deployment.stream(1_000_000)).collect();
    signal(deployment.pid(), libc::SIGINT);
    eventually("a log line with the number of requests", || {
        deployment.log().contains("finishing 3 requests in flight")
    });
    assert!(streams.iter_mut().all(Stream::token), "they go on");
    signal(deployment.pid(), libc::SIGINT);
    eventually("the end of the server", || deployment.ended().is_some());
    assert!(!workers.iter().any(|&worker| is_running(worker)));
    for stream in &mut streams {
        assert!(!stream.rest().1, "it was cut");
    }
    assert_eq!(deployment.total(), 0, "what they held is free");
    assert!(deployment.table.view().frontends.is_empty());
}

#[test]
fn liveness_says_nothing_of_the_engines() {
    let mut engines = MockEngine::several(1, "0.002");
    let deployment = Deployment::start(&addresses(&engines), &[]);
    engines.remove(0).kill();
    assert_eq!(
        complete(&agent(), &deployment.url("/v1/completions"), 1)
            .unwrap()
            .0,
        503
    );
    assert_eq!(get(&deployment, "/health").0, 503);
    for _ in 0..8 {
        assert_eq!(get(&deployment, "/live").0, 200);
    }
}

#[test]
fn a_supervisor_is_told_of_the_readiness_and_of_the_end() {
    let directory = headcount_tests::directory();
    let path = directory.path().join("notify");
    let supervisor = UnixDatagram::bind(&path).unwrap();
    supervisor
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let said = || {
        let mut text = [0; 64];
        let length = supervisor.recv(&mut text).unwrap();
        String::from_utf8_lossy(&text[..length]).into_owned()
    };
    let engines = MockEngine::several(1, "0.02");
    let deployment = Deployment::start_logging(&addresses(&engines), &[], |command| {
        command.env("NOTIFY_SOCKET", &path);
    });
    assert_eq!(said(), "READY=1");
    assert!(!deployment.workers().is_empty());
    let stream = deployment.stream(20);
    signal(deployment.pid(), libc::SIGTERM);
    assert_eq!(said(), "STOPPING=1");
    drop(stream);
}

#[test]
fn one_request_is_no_requests() {
    let engines = MockEngine::several(1, "0.02");
    let mut deployment = Deployment::start_logging(&addresses(&engines), &[], |_| {});
    let stream = deployment.stream(1_000_000);
    signal(deployment.busiest(), libc::SIGKILL);
    let returned = ": freed 1 request that dead workers had in flight\n";
    eventually(returned, || deployment.log().contains(returned));
    drop(stream);
    deployment.wait_for_workers();
    let stream = deployment.stream(1_000_000);
    signal(deployment.pid(), libc::SIGTERM);
    let finishing = "finishing 1 request in flight";
    eventually(finishing, || deployment.log().contains(finishing));
    drop(stream);
    eventually("the end of the server", || deployment.ended().is_some());
}
