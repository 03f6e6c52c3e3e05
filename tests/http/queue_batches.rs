//! Requests that count as several wait for all their places together.

use crate::deployment::Deployment;
use crate::engine::{MockEngine, addresses};
use crate::queue::{comes_to_wait, takes_down, waited, waiting};
use crate::stream::Stream;
use headcount_tests::eventually;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// A request of so many sequences that takes hours.
fn post(deployment: &Deployment, sequences: u32) -> Stream {
    let body =
        format!("{{\"max_tokens\":1000000,\"stream\":true,\"n\":{sequences},\"prompt\":\"x\"}}");
    Stream::post(deployment.address, &body)
}

fn wait(deployment: &Deployment, sequences: u32) -> Stream {
    let before = waiting(deployment);
    let stream = post(deployment, sequences);
    comes_to_wait(deployment, before + 1);
    stream
}

#[test]
fn a_batch_waits_for_all_its_places_and_is_not_starved() {
    let engines = MockEngine::several(1, "0.02");
    let options = ["--max-in-flight", "4", "--queue", "9", "--workers=1"];
    let deployment = Deployment::start(&addresses(&engines), &options);
    let mut held: Vec<_> = (0..4).map(|_| deployment.stream(1_000_000)).collect();
    let mut three = wait(&deployment, 3);
    let mut one = wait(&deployment, 1);
    // Two places are not enough for the batch, and the request behind it gets none of them.
    held.truncate(2);
    eventually("the places", || deployment.total() == 2);
    thread::sleep(Duration::from_millis(300));
    assert_eq!((deployment.total(), waiting(&deployment)), (2, 2));
    held.truncate(1);
    assert!(three.token() && waited(&mut three).unwrap() >= 300);
    assert_eq!((deployment.total(), waiting(&deployment)), (4, 1));
    held.clear();
    assert!(one.token());
    assert_eq!((deployment.total(), waiting(&deployment)), (4, 0));
    drop((three, one));
    deployment.settles();
}

#[test]
fn others_use_the_engines_at_which_no_batch_waits() {
    let engines = MockEngine::several(2, "0.02");
    let [a, b] = [0, 1].map(|engine| engines[engine].address);
    let engine = |at, cap| format!("http://{at} max_in_flight={cap}");
    let (a, b) = (engine(a, 4), engine(b, 1));
    let options = [
        "--queue",
        "9",
        "--workers=1",
        "--engine",
        &a,
        "--engine",
        &b,
    ];
    let deployment = Deployment::start(&[], &options);
    let mut four = post(&deployment, 4);
    assert!(four.token());
    let held = deployment.stream(1_000_000);
    assert_eq!(deployment.in_flight(), [4, 1]);
    let mut batch = wait(&deployment, 2);
    let mut one = wait(&deployment, 1);
    drop(held);
    assert!(one.token(), "the second engine is not the batch's");
    assert_eq!(
        (deployment.in_flight(), waiting(&deployment)),
        (vec![4, 1], 1)
    );
    drop(four);
    assert!(batch.token());
    assert_eq!(
        (deployment.in_flight(), waiting(&deployment)),
        (vec![2, 1], 0)
    );
}

#[test]
fn a_batch_goes_to_another_engine_that_gets_room_first() {
    let engines = MockEngine::several(2, "0.02");
    let options = ["--max-in-flight", "3", "--queue", "9", "--workers=1"];
    let deployment = Deployment::start(&addresses(&engines), &options);
    let mut held: Vec<_> = (0..2).map(|_| post(&deployment, 3)).collect();
    assert!(held.iter_mut().all(Stream::token));
    for _ in 0..2 {
        // Whichever it is: in two rounds it is each of them.
        let mut batch = wait(&deployment, 2);
        drop(held.pop());
        assert!(batch.token());
        assert_eq!((deployment.total(), waiting(&deployment)), (5, 0));
        drop(batch);
        eventually("the places", || deployment.total() == 3);
        let mut again = post(&deployment, 3);
        assert!(again.token());
        held.insert(0, again);
    }
}

#[test]
fn batches_larger_than_all_caps_do_not_wait() {
    let engines = MockEngine::several(2, "0.02");
    for options in [
        &["--max-in-flight", "4"][..],
        &["--max-in-flight-total", "4"],
        &["--max-in-flight", "4", "--max-in-flight-total", "9"],
    ] {
        let options = [&["--queue", "9", "--workers=1"], options].concat();
        let deployment = Deployment::start(&addresses(&engines), &options);
        assert_eq!(post(&deployment, 5).status(), 413, "{options:?}");
        let mut four = post(&deployment, 4);
        assert!(four.token());
        assert_eq!(post(&deployment, 5).status(), 413, "{options:?}");
        assert_eq!(waiting(&deployment), 0);
    }
}

#[test]
fn a_batch_whose_engine_goes_waits_for_another() {
    let engines = MockEngine::several(2, "0.02");
    let at = addresses(&engines);
    let options = ["--max-in-flight=2", "--queue=9", "--probe-every=60"];
    let deployment = Deployment::start(&at, &options);
    let mut held: Vec<_> = (0..2).map(|_| post(&deployment, 2)).collect();
    assert!(held.iter_mut().all(Stream::token));
    // Each of two batches waits at an engine, or both at one.
    let mut batches: Vec<_> = (0..2).map(|_| wait(&deployment, 2)).collect();
    takes_down(&deployment, at[0]);
    comes_to_wait(&deployment, 2);
    drop(held);
    eventually("a batch at the other engine", || deployment.on(at[1]) == 2);
    comes_to_wait(&deployment, 1);
    let served = batches
        .iter_mut()
        .position(|batch| batch.answers_within(Duration::from_secs(5)));
    drop(batches.remove(served.unwrap()));
    assert!(batches[0].token());
    drop(batches);
    deployment.settles();
}

#[test]
fn tokens_that_do_not_fit_now_wait_and_those_above_all_caps_wait_for_an_idle_engine() {
    let engines = MockEngine::several(1, "0.02");
    let options = [
        "--policy",
        "tokens",
        "--max-tokens",
        "100",
        "--queue",
        "9",
        "--workers=1",
    ];
    let deployment = Deployment::start(&addresses(&engines), &options);
    let post = |tokens: usize| {
        let prompt = "x".repeat(4 * tokens);
        let body = format!("{{\"max_tokens\":1000000,\"stream\":true,\"prompt\":\"{prompt}\"}}");
        Stream::post(deployment.address, &body)
    };
    let tokens = || deployment.table.view().engines[0].tokens;
    let mut held: Vec<_> = [60, 30].map(post).into_iter().collect();
    assert!(held.iter_mut().all(Stream::token));
    let mut large = post(5_000);
    comes_to_wait(&deployment, 1);
    let mut small = post(10);
    comes_to_wait(&deployment, 2);
    held.truncate(1);
    eventually("the tokens", || tokens() == 60);
    thread::sleep(Duration::from_millis(200));
    assert_eq!(
        (tokens(), waiting(&deployment)),
        (60, 2),
        "the large one comes first"
    );
    held.clear();
    assert!(large.token());
    assert_eq!((tokens(), waiting(&deployment)), (100, 1));
    drop(large);
    assert!(small.token());
    assert_eq!((tokens(), waiting(&deployment)), (10, 0));
}

#[test]
fn all_are_served_that_race_for_few_places_whatever_they_need() {
    let engines = MockEngine::several(2, "0.002");
    let options = ["--max-in-flight", "5", "--queue", "100"];
    let deployment = Deployment::start(&addresses(&engines), &options);
    let (most, waited_for) = (AtomicU32::new(0), AtomicU32::new(0));
    thread::scope(|scope| {
        for client in 0..16 {
            let (deployment, most, waited_for) = (&deployment, &most, &waited_for);
            scope.spawn(move || {
                for round in 0..25 {
                    let n = (client + round) % 5 + 1;
                    let body = format!("{{\"max_tokens\":3,\"prompt\":\"x\",\"n\":{n}}}");
                    let mut stream = Stream::post(deployment.address, &body);
                    let view = deployment.in_flight();
                    most.fetch_max(view.into_iter().max().unwrap(), Relaxed);
                    assert_eq!(stream.status(), 200, "{}", stream.head());
                    waited_for.fetch_add(waited(&mut stream).is_some().into(), Relaxed);
                }
            });
        }
    });
    deployment.settles();
    println!("{waited_for:?} of 400 have waited, at most {most:?} at one engine");
    assert!(most.load(Relaxed) <= 5 && waited_for.load(Relaxed) > 100);
    assert_eq!(waiting(&deployment), 0);
}
