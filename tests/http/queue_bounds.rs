//! Who may not wait, or not for longer: the bounds of the queue, and its time.

use crate::deployment::{Deployment, StopClients, agent, complete, signal};
use crate::engine::{MockEngine, addresses, mirror};
use crate::queue::{Gate, ask, comes_to_wait, field, wait, waited, waiting, with_one_place};
use crate::server::Server;
use crate::stream::Stream;
use headcount_tests::{Rounds, eventually};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// Reads an answer that is a refusal. Returns its `Retry-After` and its code.
fn refusal(answer: &mut Stream) -> (u64, String) {
    assert_eq!(answer.status(), 503, "{}", answer.head());
    let after = field(answer, "retry-after").map(|after| after.parse().unwrap());
    let body = answer.rest().0;
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body["error"]["type"], "server_error");
    (
        after.unwrap(),
        body["error"]["code"].as_str().unwrap().to_owned(),
    )
}

#[test]
fn no_more_wait_than_the_bound_says_and_no_fewer() {
    let gate = Gate::new();
    let options = ["--max-in-flight", "1", "--queue", "3"];
    let deployment = Deployment::start(&[gate.address], &options);
    let _first = ask(&deployment, "first", "");
    gate.comes_to_have(1);
    let mut rounds = Rounds::new(
        4,
        "rounds in which requests of several workers meet at the bound",
    );
    while rounds.another() {
        let (start, over) = (Barrier::new(12), Barrier::new(13));
        let (refused, most) = (AtomicU32::new(0), AtomicU32::new(0));
        thread::scope(|scope| {
            for _ in 0..12 {
                scope.spawn(|| {
                    start.wait();
                    let mut stream = ask(&deployment, "more", "");
                    // Those that wait are not answered.
                    let is_refused = stream.answers_within(Duration::from_secs(1));
                    most.fetch_max(waiting(&deployment), Relaxed);
                    if is_refused {
                        let (after, code) = refusal(&mut stream);
                        assert_eq!((after, code.as_str()), (1, "queue_full"));
                        assert_eq!(waited(&mut stream), None);
                        refused.fetch_add(1, Relaxed);
                    }
                    over.wait();
                });
            }
            over.wait();
            let workers = crate::queue::waiting_at(&deployment).len();
            rounds.fell(workers > 1);
        });
        assert_eq!((refused.load(Relaxed), most.load(Relaxed)), (9, 3));
        comes_to_wait(&deployment, 0);
    }
    let queue = deployment.table.view().queue.unwrap();
    assert_eq!(queue.refused_total % 9, 0);
}

#[test]
fn a_class_has_a_bound_of_its_own() {
    let gate = Gate::new();
    let options = [
        "--class-header",
        "x-class",
        "--queue-of-class",
        "3=1",
        "--queue-of-class=2=2",
    ];
    let (deployment, _first) = with_one_place(&gate, &options);
    let _third = wait(&deployment, "third", "x-class: 3\r\n");
    let mut refused = ask(&deployment, "more", "x-class: 3\r\n");
    assert_eq!(refused.status(), 503);
    let said = refused.rest().0;
    assert!(
        said.contains("the queue has no place for class 3"),
        "{said}"
    );
    let _two = [(); 2].map(|()| wait(&deployment, "second", "x-class: 2\r\n"));
    assert_eq!(
        refusal(&mut ask(&deployment, "more", "x-class: 2\r\n")).1,
        "queue_full"
    );
    let _others = [(); 5].map(|()| wait(&deployment, "others", ""));
    assert_eq!(waiting(&deployment), 8);
}

#[test]
fn the_hint_when_to_try_again_comes_from_the_rate() {
    let gate = Gate::new();
    let options = ["--max-in-flight", "1", "--queue", "8"];
    let deployment = Deployment::start(&[gate.address], &options);
    let _first = ask(&deployment, "first", "");
    gate.comes_to_have(1);
    let mut streams: Vec<_> = (0..8).map(|_| wait(&deployment, "more", "")).collect();
    // One is served every 0.7 s, so another eight take some 5 s.
    for passed in 1..=4 {
        thread::sleep(Duration::from_millis(700));
        gate.pass_one();
        gate.comes_to_have(passed + 1);
        streams.push(wait(&deployment, "more", ""));
    }
    let (after, code) = refusal(&mut ask(&deployment, "late", ""));
    assert_eq!(code, "queue_full");
    println!("Retry-After: {after}");
    assert!((3..=60).contains(&after), "{after} s");
    gate.open();
}

#[test]
fn who_has_waited_for_as_long_as_it_may_is_told_so() {
    let engine = MockEngine::start("0.01");
    let options = [
        "--max-in-flight",
        "1",
        "--queue",
        "9",
        "--queue-timeout",
        "0.4",
    ];
    let mut server = Server::start(engine.address, &options);
    let mut first = Stream::ask(server.address, 1_000_000);
    assert!(first.token());
    let start = Instant::now();
    let mut late = Stream::ask(server.address, 1);
    let (after, code) = refusal(&mut late);
    assert_eq!((after, code.as_str()), (1, "queue_timeout"));
    let took = start.elapsed().as_millis() as u64;
    let of_it = waited(&mut late).unwrap();
    assert!((400..=took).contains(&of_it), "{of_it} of {took} ms");
    let line = server.logged();
    assert_eq!(
        (&line["status"], &line["reason"]),
        (&503.into(), &"queue_timeout".into())
    );
    assert_eq!(line["engine"], serde_json::Value::Null);
    assert!(
        (0.4..60.0).contains(&line["waited_s"].as_f64().unwrap()),
        "{line}"
    );
    drop(first);
    let line = server.logged();
    assert_eq!(
        (&line["status"], &line["waited_s"]),
        (&200.into(), &0.0.into())
    );
    // The next one has the place.
    eventually("the place", || {
        Stream::ask(server.address, 1).status() == 200
    });
    let metrics = agent().get(server.url("/metrics")).call();
    let metrics = metrics.unwrap().body_mut().read_to_string().unwrap();
    let counted = "headcount_http_refusals_total{reason=\"queue_timeout\"} ";
    for line in ["max_waiting", "waiting_timed_out_total"] {
        let line = format!("headcount_{line}{{table=\"memory\"}} ");
        assert!(metrics.contains(&line), "{metrics}");
    }
    let counted = metrics.lines().find_map(|line| line.strip_prefix(counted));
    assert!(
        counted.is_some_and(|count| count.parse::<u64>().unwrap() >= 1),
        "{metrics}"
    );
}

#[test]
fn without_a_queue_nothing_waits_and_nothing_is_said_of_waiting() {
    let engine = MockEngine::start("0.01");
    let mut server = Server::start(engine.address, &["--max-in-flight", "1"]);
    let mut first = Stream::ask(server.address, 1_000_000);
    assert!(first.token());
    assert_eq!(waited(&mut first), None);
    let mut second = Stream::ask(server.address, 1);
    assert_eq!(refusal(&mut second), (1, "engines_saturated".to_owned()));
    assert_eq!(waited(&mut second), None);
    let line = server.logged();
    assert_eq!(line["waited_s"], serde_json::Value::Null);
    drop(first);
}

#[test]
fn a_body_is_asked_for_if_its_request_may_wait() {
    let gate = Gate::new();
    let options = ["--max-in-flight", "1", "--queue", "1"];
    let deployment = Deployment::start(&[gate.address], &options);
    let _first = ask(&deployment, "first", "");
    gate.comes_to_have(1);
    let head = "POST /a HTTP/1.1\r\nHost: t\r\nConnection: close\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n";
    let mut second = Stream::send(deployment.address, head);
    assert_eq!(second.status(), 100);
    second.again("{}");
    comes_to_wait(&deployment, 1);
    let mut third = Stream::send(deployment.address, head);
    assert_eq!(refusal(&mut third).1, "queue_full");
    gate.open();
    assert_eq!(second.status(), 200);
}

#[test]
fn the_next_deployment_has_its_own_queue_or_none() {
    let engines = MockEngine::several(1, "0.01");
    let at = addresses(&engines);
    let options = ["--workers=1", "--max-in-flight", "1", "--queue", "5"];
    let mut deployment = Deployment::start_logging(&at, &options, |_| {});
    let bound = |deployment: &Deployment| {
        (deployment.table.view().queue)
            .map(|queue| (queue.max_waiting, queue.classes[1].max_waiting))
    };
    assert_eq!(bound(&deployment), Some((5, None)));
    for (options, expected, said) in [
        (
            &["--queue", "7", "--queue-of-class", "1=2"][..],
            Some((7, Some(2))),
            "this deployment: max_waiting 5, now 7\n",
        ),
        (&[], None, "this deployment: max_waiting 7, now none\n"),
    ] {
        signal(deployment.pid(), libc::SIGTERM);
        eventually("the end of the server", || deployment.ended().is_some());
        let options = [&["--workers=1", "--max-in-flight", "1"], options].concat();
        deployment = deployment.next_with(&at, &options);
        assert_eq!(bound(&deployment), expected);
        assert!(deployment.log().contains(said), "{}", deployment.log());
    }
    let _first = deployment.stream(1_000_000);
    assert_eq!(
        complete(&agent(), &deployment.url("/v1/completions"), 1)
            .unwrap()
            .0,
        503
    );
}

#[test]
fn requests_that_need_not_wait_are_served_as_without_a_queue() {
    let deployment = Deployment::start(&[mirror()], &["--queue", "10"]);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let stop = StopClients(&over);
        for _ in 0..4 {
            scope.spawn(|| {
                while !over.load(Relaxed) {
                    let mut stream = ask(&deployment, "a", "");
                    assert_eq!((stream.status(), waited(&mut stream)), (200, None));
                }
            });
        }
        thread::sleep(Duration::from_secs(1));
        drop(stop);
    });
    deployment.settles();
    assert_eq!(waiting(&deployment), 0);
}
