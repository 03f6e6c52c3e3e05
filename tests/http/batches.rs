//! A request counts as many requests as an engine will run for it: all at one engine, or none.

use crate::deployment::{Deployment, StopClients, agent, complete};
use crate::engine::{MockEngine, addresses, mirror};
use crate::stream::Stream;
use headcount_tests::eventually;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::thread;

/// An answer that takes hours, so that its request stays in flight.
fn post(deployment: &Deployment, fields: &str) -> Stream {
    let body = format!("{{\"max_tokens\":1000000,{fields}}}");
    Stream::post(deployment.address, &body)
}

/// Sends a request with these fields. Returns the requests and tokens that the table counts for it.
fn counted(deployment: &Deployment, engines: &[MockEngine], fields: &str) -> (u32, u32) {
    let stream = post(deployment, fields);
    // The engine gets the request after all places are taken.
    eventually("the request's arrival at an engine", || {
        engines
            .iter()
            .map(|engine| engine.stat("running"))
            .sum::<u64>()
            == 1
    });
    let view = deployment.table.view().engines;
    let mut counted = view.iter().map(|e| (e.in_flight, e.tokens));
    let result = counted.find(|count| *count != (0, 0)).unwrap();
    assert!(
        counted.all(|count| count == (0, 0)),
        "all are at one engine"
    );
    drop(stream);
    deployment.settles();
    engines.iter().for_each(MockEngine::becomes_idle);
    result
}

#[test]
fn a_request_counts_what_an_engine_will_run() {
    let engines = MockEngine::several(2, "0.05");
    let options = ["--workers=1", "--policy", "tokens"];
    let deployment = Deployment::start(&addresses(&engines), &options);
    let texts = |count: usize| vec!["\"12345678\""; count].join(",");
    for (fields, expected) in [
        ("\"prompt\":\"12345678\"".to_owned(), (1, 2)),
        (format!("\"prompt\":[{}]", texts(1)), (1, 2)),
        (format!("\"prompt\":[{}]", texts(32)), (32, 64)),
        (format!("\"n\":2,\"prompt\":[{}]", texts(3)), (6, 12)),
        (
            format!("\"prompt\":[{}],\"n\":2,\"best_of\":4", texts(3)),
            (12, 24),
        ),
        // The tokens of one prompt, or of two.
        ("\"prompt\":[1,2,3]".to_owned(), (1, 3)),
        ("\"prompt\":[[1,2,3],[4,5]]".to_owned(), (2, 6)),
        (format!("\"input\":[{}]", texts(512)), (512, 1_024)),
        (
            "\"messages\":[{\"content\":\"1234\"},{\"content\":\"1234\"}]".to_owned(),
            (1, 2),
        ),
        (
            "\"messages\":[{\"content\":\"1234\"}],\"n\":3".to_owned(),
            (3, 3),
        ),
        // Parts of one response, and of one chat.
        (
            "\"input\":[{\"content\":\"1234\"},{\"content\":\"1234\"}]".to_owned(),
            (1, 2),
        ),
        (
            "\"documents\":[{\"text\":\"1234\"},{\"text\":\"1234\"}],\"messages\":[{\"content\":\"1234\"}]".to_owned(),
            (1, 3),
        ),
        // A pair for each document.
        (
            "\"query\":\"1234\",\"documents\":[\"1234\",{\"text\":\"1234\"}]".to_owned(),
            (2, 4),
        ),
        (
            "\"text_2\":[\"1234\",\"1234\",\"1234\"],\"text_1\":\"1234\"".to_owned(),
            (3, 6),
        ),
        ("\"text_2\":\"1234\",\"text_1\":\"1234\"".to_owned(), (1, 2)),
        // Numbers in all forms that engines read. Others count as one.
        ("\"prompt\":\"1234\",\"n\":\"2\"".to_owned(), (2, 2)),
        ("\"prompt\":\"1234\",\"n\":2.0".to_owned(), (2, 2)),
        ("\"prompt\":\"1234\",\"n\":null".to_owned(), (1, 1)),
        ("\"prompt\":\"1234\",\"n\":0".to_owned(), (1, 1)),
        ("\"prompt\":\"1234\",\"n\":-5".to_owned(), (1, 1)),
        ("\"prompt\":\"1234\",\"n\":[7]".to_owned(), (1, 1)),
        ("\"prompt\":\"1234\",\"n\":{\"a\":7}".to_owned(), (1, 1)),
        ("\"prompt\":[]".to_owned(), (1, 0)),
        // A body without a known prompt counts as one request.
        ("\"n\":5".to_owned(), (1, 7)),
    ] {
        let shown = &fields[..fields.len().min(70)];
        assert_eq!(counted(&deployment, &engines, &fields), expected, "{shown}");
    }
}

#[test]
fn several_are_placed_at_one_engine_or_not_at_all() {
    let engines = MockEngine::several(2, "0.05");
    let options = ["--workers=1", "--max-in-flight", "4"];
    let deployment = Deployment::start(&addresses(&engines), &options);
    // One on each engine, and one more: three places are left at one engine, two at the other.
    let ones: Vec<_> = (0..3).map(|_| deployment.stream(1_000_000)).collect();
    let free = |deployment: &Deployment| {
        let mut free: Vec<_> = deployment.in_flight().iter().map(|n| 4 - n).collect();
        free.sort_unstable();
        free
    };
    assert_eq!(free(&deployment), [2, 3]);
    let mut four = post(&deployment, "\"prompt\":\"x\",\"n\":4");
    assert_eq!(four.status(), 503, "five are free, but nowhere four");
    assert_eq!(free(&deployment), [2, 3]);
    let three = post(&deployment, "\"prompt\":\"x\",\"n\":3");
    eventually("the request's places", || free(&deployment) == [0, 2]);
    let two = post(&deployment, "\"prompt\":[\"x\",\"y\"]");
    eventually("the request's places", || free(&deployment) == [0, 0]);
    // More than the engines ever have room for.
    let mut five = post(&deployment, "\"prompt\":\"x\",\"n\":5");
    assert_eq!(five.status(), 413);
    let said = five.rest().0;
    assert!(
        said.contains("too_many_sequences") && said.contains("more than 4 at once"),
        "{said}"
    );
    drop((ones, three, two));
    deployment.settles();
    assert_eq!(post(&deployment, "\"prompt\":\"x\",\"n\":5").status(), 413);
    let four = post(&deployment, "\"prompt\":\"x\",\"n\":4");
    eventually("the request's places", || free(&deployment) == [0, 4]);
    drop(four);
    deployment.settles();
}

#[test]
fn a_full_engine_that_seems_less_loaded_does_not_hide_one_with_room() {
    let engines = MockEngine::several(2, "0.05");
    let [small, large] = [0, 1].map(|engine| engines[engine].address);
    let small = format!("http://{small} max_in_flight=2");
    let large = format!("http://{large} max_in_flight=100");
    let options = ["--workers=1", "--engine", &small, "--engine", &large];
    let deployment = Deployment::start(&[], &options);
    for _ in 0..4 {
        let stream = post(&deployment, "\"prompt\":\"x\",\"n\":3");
        eventually("the request's places", || deployment.in_flight() == [0, 3]);
        drop(stream);
        deployment.settles();
    }
    let refusals = || deployment.table.view().refusals_total.total();
    assert_eq!(refusals(), 0, "nothing was refused");
    let stream = post(&deployment, "\"prompt\":\"x\",\"n\":99");
    eventually("the request's places", || deployment.in_flight() == [0, 99]);
    assert_eq!(post(&deployment, "\"prompt\":\"x\",\"n\":3").status(), 503);
    assert_eq!(refusals(), 1, "and this is one");
    drop(stream);
    deployment.settles();
}

#[test]
fn a_batch_that_is_refused_changes_nothing() {
    let batch = "\"prompt\":\"1234567812345678\",\"n\":50";
    for (options, status) in [
        (&["--max-in-flight", "1"][..], 413),
        (&["--max-in-flight", "49"], 413),
        (&["--max-in-flight-total", "4"], 413),
        (&["--max-in-flight-total", "50"], 503),
        (&["--max-in-flight", "50"], 503),
        (&["--policy", "tokens", "--max-tokens", "200"], 503),
    ] {
        let engines = MockEngine::several(2, "0.05");
        let options = [&["--workers=1"], options].concat();
        let deployment = Deployment::start(&addresses(&engines), &options);
        let held: Vec<_> = match status {
            // The batch fits an idle table, so each engine has a request already.
            503 => (0..2).map(|_| deployment.stream(1_000_000)).collect(),
            _ => Vec::new(),
        };
        let counts = || {
            let engines = deployment.table.view().engines.into_iter();
            let counts = engines.map(|e| (e.admitted_total, e.finished_total));
            counts.collect::<Vec<_>>()
        };
        let before = counts();
        for _ in 0..5 {
            let mut stream = post(&deployment, batch);
            assert_eq!(stream.status(), status, "{options:?}");
        }
        assert_eq!(counts(), before, "{options:?}");
        let refusals = deployment.table.view().refusals_total.total();
        assert!(refusals >= 5, "each is counted: {refusals}");
        drop(held);
        deployment.settles();
    }
}

#[test]
fn batches_that_never_fit_keep_no_request_from_its_place() {
    let engine = MockEngine::start("0.001");
    let options = ["--max-in-flight", "1"];
    let deployment = Deployment::start(&[engine.address], &options);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let stop = StopClients(&over);
        for _ in 0..4 {
            scope.spawn(|| {
                while !over.load(Relaxed) {
                    let mut stream = post(&deployment, "\"prompt\":\"x\",\"n\":50");
                    assert_eq!(stream.status(), 413);
                }
            });
        }
        let url = deployment.url("/v1/completions");
        for _ in 0..300 {
            assert_eq!(complete(&agent(), &url, 1).unwrap().0, 200);
            // The place of the last one is given back when its answer is passed on.
            eventually("the return of the place", || deployment.total() == 0);
        }
        drop(stop);
    });
    deployment.settles();
}

#[test]
fn an_estimate_has_to_fit_where_all_its_requests_do() {
    let engines = MockEngine::several(2, "0.05");
    let [many, few] = [0, 1].map(|engine| engines[engine].address);
    let many = format!("http://{many} max_in_flight=100 max_tokens=10");
    let few = format!("http://{few} max_in_flight=2 max_tokens=1000");
    let options = [
        "--workers=1",
        "--policy",
        "tokens",
        "--engine",
        &many,
        "--engine",
        &few,
    ];
    let deployment = Deployment::start(&[], &options);
    // Only the first engine has room for five requests, so they count ten tokens at most.
    let prompt = "x".repeat(400);
    let five = post(&deployment, &format!("\"prompt\":\"{prompt}\",\"n\":5"));
    eventually("the request's places", || deployment.in_flight() == [5, 0]);
    assert_eq!(deployment.table.view().engines[0].tokens, 10);
    drop(five);
    deployment.settles();
}

#[test]
fn no_cap_makes_room_for_any_number() {
    let deployment = Deployment::start(&[mirror()], &["--workers=1"]);
    for n in ["16385", "4294967296", "99999999999999999999", "1e300"] {
        let mut stream = post(&deployment, &format!("\"prompt\":\"x\",\"n\":{n}"));
        assert_eq!(stream.status(), 413, "{n}");
    }
    assert_eq!(
        post(&deployment, "\"prompt\":\"x\",\"n\":16384").status(),
        200
    );
    let total = ["--workers=1", "--max-in-flight-total", "3"];
    let deployment = Deployment::start(&[mirror()], &total);
    assert_eq!(post(&deployment, "\"prompt\":\"x\",\"n\":4").status(), 413);
    assert_eq!(post(&deployment, "\"prompt\":\"x\",\"n\":3").status(), 200);
    deployment.settles();
}

#[test]
fn no_request_fills_an_engine_that_has_no_cap() {
    let engines = MockEngine::several(1, "0.05");
    let options = ["--workers=1", "--policy", "tokens"];
    let deployment = Deployment::start(&addresses(&engines), &options);
    let counts = || {
        let engine = &deployment.table.view().engines[0];
        (engine.in_flight, engine.tokens)
    };
    // By its text, 2^32 tokens.
    let text = "x".repeat(1 << 20);
    let large = post(&deployment, &format!("\"prompt\":\"{text}\",\"n\":16384"));
    eventually("the request's places", || counts() == (16_384, 1 << 28));
    let small = post(&deployment, "\"prompt\":\"1234\"");
    eventually("the request's place", || {
        counts() == (16_385, (1 << 28) + 1)
    });
    drop((large, small));
    deployment.settles();
    // A prompt alone is counted as it is.
    let text = "x".repeat(4 << 20);
    let one = post(&deployment, &format!("\"prompt\":\"{text}\""));
    eventually("the request's place", || counts() == (1, 1 << 20));
    drop(one);
    deployment.settles();
}

#[test]
fn caps_hold_when_batches_race() {
    let engines = MockEngine::several(2, "0.002");
    let deployment = Deployment::start(&addresses(&engines), &["--max-in-flight", "7"]);
    let (served, refused, most) = (AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(0));
    thread::scope(|scope| {
        for client in 0..16 {
            let (deployment, served, refused, most) = (&deployment, &served, &refused, &most);
            scope.spawn(move || {
                for round in 0..30 {
                    let n = (client + round) % 5 + 1;
                    let body = format!("{{\"max_tokens\":3,\"prompt\":\"x\",\"n\":{n}}}");
                    let mut stream = Stream::post(deployment.address, &body);
                    let view = deployment.in_flight();
                    most.fetch_max(view.into_iter().max().unwrap(), Relaxed);
                    match stream.status() {
                        200 => served.fetch_add(1, Relaxed),
                        503 => refused.fetch_add(1, Relaxed),
                        other => panic!("{other}"),
                    };
                }
            });
        }
    });
    deployment.settles();
    println!("{served:?} served, {refused:?} refused, at most {most:?} at one engine");
    assert!(most.load(Relaxed) <= 7);
    assert!(
        served.load(Relaxed) > 0 && refused.load(Relaxed) > 0,
        "they met"
    );
}
