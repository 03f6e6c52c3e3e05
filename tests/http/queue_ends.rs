//! A request that waits may end otherwise than by a place: by its client, its worker, the deployment, its engines.

use crate::deployment::{Deployment, signal, stop};
use crate::engine::{MockEngine, addresses, odd_engine, read_head};
use crate::queue::{
    Gate, ONE_PLACE, ask, comes_to_wait, field, takes_down, wait, waited, waiting, waiting_at,
    with_one_place,
};
use crate::server::Server;
use crate::stream::Stream;
use headcount::EngineState;
use headcount_tests::{Rounds, eventually, is_running};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn a_client_that_leaves_is_in_the_queue_no_more() {
    let gate = Gate::new();
    let (deployment, mut first) = with_one_place(&gate, &[]);
    for behind in ["", "\r\n", "GET /second HTTP/1.1\r\nHost: t\r\n\r\n"] {
        let mut leaves = wait(&deployment, "leaves", "");
        leaves.more(behind).unwrap();
        let stays = wait(&deployment, "stays", "");
        let start = Instant::now();
        drop(leaves);
        comes_to_wait(&deployment, 1);
        let took = start.elapsed();
        assert!(took < Duration::from_secs(20), "its time is 30 s: {took:?}");
        // One that shuts down its sending side counts as one that has left.
        let mut shuts = wait(&deployment, "shuts", "");
        shuts.shut();
        assert!(shuts.is_ended());
        comes_to_wait(&deployment, 1);
        drop(stays);
        comes_to_wait(&deployment, 0);
    }
    let mut last = wait(&deployment, "last", "");
    gate.open();
    assert_eq!((first.status(), last.status()), (200, 200));
    assert_eq!(gate.came(), ["first", "last"]);
    let queue = deployment.table.view().queue.unwrap();
    assert_eq!(queue.cancelled_total, 9);
}

#[test]
fn a_client_that_leaves_just_when_it_gets_the_place_does_not_keep_it() {
    let gate = Gate::new();
    let (deployment, mut held) = with_one_place(&gate, &[]);
    let mut rounds = Rounds::new(3, "places that came to a client that was leaving");
    while rounds.another() {
        let before = gate.came().len();
        let leaves = wait(&deployment, "leaves", "");
        let mut next = wait(&deployment, "next", "");
        let leaving = thread::spawn(move || drop(leaves));
        drop(held);
        leaving.join().unwrap();
        // Either the engine sees the first one or not; the next one in any case.
        eventually("the next request at the engine", || {
            gate.came()[before..].iter().any(|name| name == "next")
        });
        rounds.fell(gate.came().len() == before + 2);
        comes_to_wait(&deployment, 0);
        assert!(!next.answers_within(Duration::from_millis(1)));
        assert_eq!(deployment.total(), 1);
        held = next;
    }
    drop(held);
    deployment.settles();
}

#[test]
fn a_client_that_has_left_the_queue_has_a_line_in_the_log() {
    let engine = MockEngine::start("0.01");
    let mut server = Server::start(engine.address, &ONE_PLACE);
    let mut first = Stream::ask(server.address, 1_000_000);
    assert!(first.token());
    let second = Stream::ask(server.address, 1);
    thread::sleep(Duration::from_millis(500));
    drop(second);
    let line = server.logged();
    assert_eq!(
        (&line["status"], &line["engine"]),
        (&499.into(), &serde_json::Value::Null)
    );
    assert!(
        (0.1..60.0).contains(&line["waited_s"].as_f64().unwrap()),
        "{line}"
    );
}

#[test]
fn a_worker_that_is_killed_takes_its_requests_with_it_and_no_others() {
    let gate = Gate::new();
    let mut rounds = Rounds::new(
        2,
        "kills of a worker with requests that waited, where others did too",
    );
    while rounds.another() {
        let (deployment, mut first) = with_one_place(&gate, &[]);
        let mut streams: Vec<_> = (0..16).map(|_| wait(&deployment, "waits", "")).collect();
        let (at, holder) = (waiting_at(&deployment), deployment.busiest());
        let (victim, lost) = at[0];
        signal(victim, libc::SIGKILL);
        eventually("the end of the worker", || !is_running(victim));
        rounds.fell(at.len() > 1);
        // With the worker's place, if it had it, one more leaves the queue.
        comes_to_wait(&deployment, 16 - lost as u32 - u32::from(holder == victim));
        gate.open();
        let answered = streams
            .iter_mut()
            .filter_map(|stream| match stream.status() {
                200 => waited(stream),
                0 => None,
                other => panic!("{other}"),
            });
        assert_eq!(answered.count() as u64, 16 - lost, "{at:?}");
        let expected = if holder == victim { 0 } else { 200 };
        assert_eq!(first.status(), expected);
        deployment.settles();
        assert_eq!(waiting(&deployment), 0);
        gate.close();
    }
}

#[test]
fn the_place_of_a_worker_that_is_killed_goes_to_one_that_waits() {
    let gate = Gate::new();
    let (deployment, _first) = with_one_place(&gate, &[]);
    let holder = deployment.busiest();
    let mut rest = Vec::new();
    // One that waits in another worker.
    eventually("a request in another worker", || {
        rest.push(wait(&deployment, "waits", ""));
        waiting_at(&deployment)
            .iter()
            .any(|(worker, _)| *worker != holder)
    });
    let start = Instant::now();
    signal(holder, libc::SIGKILL);
    gate.comes_to_have(2);
    let took = start.elapsed();
    println!("served {} ms after the kill", took.as_millis());
    assert!(took < Duration::from_secs(20), "{took:?}");
}

#[test]
fn a_worker_that_is_stopped_holds_no_others_back() {
    let gate = Gate::new();
    let (deployment, mut first) = with_one_place(&gate, &[]);
    let holder = deployment.busiest();
    let mut streams = Vec::new();
    // The first one of the queue is in a worker that has not the place, and there are others behind it.
    loop {
        streams.push(wait(&deployment, "waits", ""));
        if waiting_at(&deployment)[0].0 != holder {
            break;
        }
        streams.pop();
        comes_to_wait(&deployment, 0);
    }
    let stopped = waiting_at(&deployment)[0].0;
    eventually("a request in another worker", || {
        streams.push(wait(&deployment, "waits", ""));
        waiting_at(&deployment).len() > 1
    });
    let others: u64 = (waiting_at(&deployment).iter())
        .filter_map(|(worker, count)| (*worker != stopped).then_some(count))
        .sum();
    stop(stopped);
    gate.open();
    assert_eq!(first.status(), 200);
    gate.comes_to_have(1 + others as usize);
    signal(stopped, libc::SIGCONT);
    for stream in &mut streams {
        assert_eq!(stream.status(), 200);
    }
    deployment.settles();
}

#[test]
fn at_its_end_a_deployment_serves_those_who_wait_as_long_as_it_may() {
    let gate = Gate::new();
    let directory = [gate.address];
    let options = [&ONE_PLACE[..], &["--drain-timeout", "60"]].concat();
    let mut deployment = Deployment::start_logging(&directory, &options, |_| {});
    let mut first = ask(&deployment, "first", "");
    gate.comes_to_have(1);
    let mut streams = [(); 3].map(|()| wait(&deployment, "waits", ""));
    signal(deployment.pid(), libc::SIGTERM);
    let said = "finishing 1 request in flight and 3 that wait, for at most 60 s";
    eventually(said, || deployment.log().contains(said));
    gate.open();
    assert_eq!(first.status(), 200);
    for stream in &mut streams {
        assert_eq!(stream.status(), 200);
        assert!(waited(stream).is_some());
    }
    eventually("the end of the server", || deployment.ended().is_some());
    assert_eq!(waiting(&deployment), 0);
}

#[test]
fn who_still_waits_when_the_time_of_the_end_is_over_is_told_so() {
    let gate = Gate::new();
    let options = [&ONE_PLACE[..], &["--drain-timeout", "0.5"]].concat();
    let mut deployment = Deployment::start_logging(&[gate.address], &options, |_| {});
    let _first = ask(&deployment, "first", "");
    gate.comes_to_have(1);
    let mut streams = [(); 3].map(|()| wait(&deployment, "waits", ""));
    signal(deployment.pid(), libc::SIGTERM);
    for stream in &mut streams {
        assert_eq!(stream.status(), 503);
        assert!(waited(stream).unwrap() >= 400);
        assert_eq!(field(stream, "retry-after").as_deref(), Some("1"));
        assert!(stream.rest().0.contains("\"code\":\"shutdown\""));
    }
    eventually("the end of the server", || deployment.ended().is_some());
    assert_eq!(waiting(&deployment), 0);
}

#[test]
fn an_engine_that_cannot_be_reached_is_left_out_by_those_who_wait() {
    let engines = MockEngine::several(2, "0.02");
    let [gone, other] = [0, 1].map(|engine| engines[engine].address);
    let options = [
        &ONE_PLACE[..],
        &["--probe-every=60", "--workers=1", "--repeat-posts"],
    ]
    .concat();
    let deployment = Deployment::start(&[gone, other], &options);
    let held = [(); 2].map(|()| deployment.stream(1_000_000));
    let waits = [(); 2].map(|()| Stream::ask(deployment.address, 1_000_000));
    comes_to_wait(&deployment, 2);
    // With the engine its stream ends, so its place is free, and the first one goes there in vain. It waits again, for
    // the other engine. The second one may have gone there, too, if the first one found it still dying.
    let [first, second] = engines.try_into().unwrap();
    first.kill();
    eventually("the engine's end", || {
        deployment.state(gone) == Some(EngineState::Down)
    });
    comes_to_wait(&deployment, 2);
    drop(held);
    second.comes_to_run(1);
    comes_to_wait(&deployment, 1);
    let mut waits = Vec::from(waits);
    let served =
        (waits.iter_mut()).position(|stream| stream.answers_within(Duration::from_secs(5)));
    let mut served = waits.remove(served.unwrap());
    let mut last = waits.remove(0);
    assert!(served.token() && waited(&mut served).is_some());
    // The last engine goes down, too, though it has a request.
    takes_down(&deployment, other);
    assert_eq!(last.status(), 503);
    assert!(waited(&mut last).is_some());
    let said = last.rest().0;
    assert!(said.contains("\"code\":\"no_engine\""), "{said}");
    assert!(
        served.token(),
        "a request on an engine that is down goes on"
    );
    drop(served);
    deployment.settles();
    assert_eq!(waiting(&deployment), 0);
}

#[test]
fn all_waits_of_a_request_take_no_longer_than_one_may() {
    // It breaks off before it answers anything, two seconds after the request.
    let got = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&got);
    let broken = odd_engine(move |connection| {
        if !read_head(connection).is_empty() {
            count.fetch_add(1, Relaxed);
            thread::sleep(Duration::from_secs(2));
        }
    });
    let gate = Gate::new();
    let options = [
        "--max-in-flight",
        "1",
        "--queue",
        "9",
        "--queue-timeout",
        "3",
        "--workers=1",
    ];
    let deployment = Deployment::start(&[broken, gate.address], &options);
    // Both places are taken.
    let mut held = [(); 2].map(|()| ask(&deployment, "held", ""));
    gate.comes_to_have(1);
    let start = Instant::now();
    // It waits for the broken engine, and then for the other one.
    let mut late = ask(&deployment, "late", "");
    assert_eq!(late.status(), 503, "{}", late.head());
    let took = start.elapsed();
    let of_it = Duration::from_millis(waited(&mut late).unwrap());
    println!("{of_it:?} of {took:?}");
    assert!(late.rest().0.contains("queue_timeout"));
    assert!(
        took > of_it && of_it >= Duration::from_millis(2_990),
        "{of_it:?} of {took:?}"
    );
    // If each wait had its own time, it were five seconds.
    assert!(
        of_it < Duration::from_millis(4_500),
        "{of_it:?} of {took:?}"
    );
    assert_eq!(got.load(Relaxed), 2, "once from each request");
    gate.open();
    let statuses = held.each_mut().map(Stream::status);
    assert!(statuses.contains(&200), "{statuses:?}");
    deployment.settles();
}

#[test]
fn engines_that_a_reload_brings_take_those_who_wait() {
    let engines = MockEngine::several(2, "0.02");
    let list = |at: &[_], cap| -> String {
        let lines = at
            .iter()
            .map(|at| format!("http://{at} max_in_flight={cap}\n"));
        lines.collect()
    };
    let at = addresses(&engines);
    let deployment = Deployment::start_by_file(&list(&at[..1], 1), &["--queue", "9"]);
    let mut streams = vec![deployment.stream(1_000_000)];
    let mut rest: Vec<_> = (0..3)
        .map(|_| Stream::ask(deployment.address, 1_000_000))
        .collect();
    comes_to_wait(&deployment, 3);
    for (list, left) in [(list(&at, 1), 2), (list(&at, 2), 0)] {
        std::fs::write(deployment.file(), list).unwrap();
        signal(deployment.pid(), libc::SIGHUP);
        comes_to_wait(&deployment, left);
    }
    assert!(rest.iter_mut().all(Stream::token));
    streams.append(&mut rest);
    assert_eq!(deployment.in_flight(), [2, 2]);
    assert_eq!(deployment.table.view().queue.unwrap().max_waiting, 9);
}
