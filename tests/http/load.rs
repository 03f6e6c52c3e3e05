//! Many requests: none is lost, none stays counted, and caps hold over all workers.

use crate::deployment::{Deployment, agent, complete};
use crate::engine::{MockEngine, addresses};
use crate::stream::Stream;
use headcount::Table;
use headcount_tests::{eventually, spread};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::thread;

#[test]
fn ten_thousand_requests_over_four_workers_lose_and_leak_nothing() {
    const REQUESTS: usize = 10_000;
    let engines = MockEngine::several(4, "0.001");
    let deployment = Deployment::start(&addresses(&engines), &[]);
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..32 {
            scope.spawn(|| {
                // A connection goes to one worker, so some of them are new.
                let (mut client, url) = (agent(), deployment.url("/v1/completions"));
                while let number @ 0..REQUESTS = next.fetch_add(1, Relaxed) {
                    if number.is_multiple_of(10) {
                        client = agent();
                    }
                    let tokens = number as u64 % 4;
                    let body =
                        format!("{{\"max_tokens\":{tokens},\"stream\":{}}}", number % 2 == 0);
                    let mut answer = client.post(&url).send(body).unwrap();
                    assert_eq!(answer.status(), 200);
                    let text = answer.body_mut().read_to_string().unwrap();
                    assert_eq!(text.matches(" token").count() as u64, tokens, "{text}");
                }
            });
        }
    });
    deployment.settles();
    let served: Vec<u64> = engines.iter().map(|engine| engine.stat("served")).collect();
    assert_eq!(served.iter().sum::<u64>(), REQUESTS as u64, "{served:?}");
    assert!(engines.iter().all(|engine| engine.stat("aborted") == 0));
    let peaks: Vec<u64> = engines.iter().map(|engine| engine.stat("peak")).collect();
    assert!(peaks.iter().any(|&peak| peak > 1), "no two of them met");
    assert_eq!(deployment.workers().len(), 4, "none of them has died");
    println!("served: {served:?}");
}

#[test]
fn requests_that_stay_are_spread_evenly_over_the_engines() {
    let engines = MockEngine::several(4, "0.05");
    let deployment = Deployment::start(&addresses(&engines), &[]);
    let streams: Vec<_> = (0..64).map(|_| deployment.stream(100_000)).collect();
    assert_eq!(deployment.in_flight(), [16; 4]);
    drop(streams);
    deployment.settles();
}

#[test]
fn caps_are_exact_over_all_workers_and_more_is_refused_at_once() {
    let engines = MockEngine::several(2, "0.005");
    let deployment = Deployment::start(&addresses(&engines), &["--max-in-flight", "3"]);
    let (served, refused) = (AtomicU32::new(0), AtomicU32::new(0));
    thread::scope(|scope| {
        for _ in 0..32 {
            scope.spawn(|| {
                for _ in 0..25 {
                    // Each on a connection of its own, so that all workers are in it.
                    let mut stream = Stream::ask(deployment.address, 4);
                    match stream.status() {
                        200 => served.fetch_add(u32::from(stream.rest().1), Relaxed),
                        503 => refused.fetch_add(1, Relaxed),
                        other => panic!("{other}"),
                    };
                }
            });
        }
    });
    deployment.settles();
    println!("{served:?} served and {refused:?} refused in the race");
    // An engine counts a request down before it sends the end of the answer, so it has none now.
    // How many requests met in the race depends on chance. Here it does not: all come, and none leaves.
    let ask = || {
        let mut stream = Stream::ask(deployment.address, 1_000_000);
        (stream.status(), stream)
    };
    let crowd: Vec<_> = thread::scope(|scope| {
        let asking: Vec<_> = (0..32).map(|_| scope.spawn(ask)).collect();
        asking
            .into_iter()
            .map(|asks| asks.join().unwrap())
            .collect()
    });
    let with = |status| crowd.iter().filter(|(s, _)| *s == status).count();
    assert_eq!(
        (with(200), with(503)),
        (6, 26),
        "all that there is room for"
    );
    let peaks: Vec<u64> = engines.iter().map(|engine| engine.stat("peak")).collect();
    assert_eq!(peaks, [3, 3], "never one more, and not one less");
    drop(crowd);
    deployment.settles();
}

#[test]
fn a_refused_client_gets_an_error_in_openais_form() {
    let engines = MockEngine::several(2, "0.05");
    let deployment = Deployment::start(&addresses(&engines), &["--max-in-flight", "2"]);
    let streams: Vec<_> = (0..4).map(|_| deployment.stream(100_000)).collect();
    for _ in 0..8 {
        let body = "{\"max_tokens\":1}";
        let mut answer = agent()
            .post(deployment.url("/v1/completions"))
            .send(body)
            .unwrap();
        assert_eq!(answer.status(), 503);
        assert_eq!(answer.headers()["retry-after"], "1");
        let body = answer.body_mut().read_to_string().unwrap();
        let error = &serde_json::from_str::<serde_json::Value>(&body).unwrap()["error"];
        assert_eq!(error["code"], "engines_saturated");
        assert_eq!(error["type"], "server_error");
        assert!(error["message"].is_string() && error["param"].is_null());
    }
    // Also a client that sends everything before it reads.
    let large = format!("{{\"prompt\":\"{}\"}}", "x".repeat(3 << 20));
    let answer = agent()
        .post(deployment.url("/v1/completions"))
        .send(large)
        .unwrap();
    assert_eq!(answer.status(), 503);
    assert_eq!(deployment.in_flight(), [2, 2]);
    drop(streams);
    deployment.settles();
}

#[test]
fn the_cap_of_all_engines_together_holds_too() {
    let engines = MockEngine::several(2, "0.05");
    let deployment = Deployment::start(&addresses(&engines), &["--max-in-flight-total", "3"]);
    let streams: Vec<_> = (0..3).map(|_| deployment.stream(100_000)).collect();
    let refused = complete(&agent(), &deployment.url("/v1/completions"), 1).unwrap();
    assert_eq!(refused.0, 503, "{}", refused.1);
    assert!(spread(&deployment.in_flight()) <= 1);
    drop(streams);
    deployment.settles();
    assert_eq!(
        complete(&agent(), &deployment.url("/v1/completions"), 1)
            .unwrap()
            .0,
        200
    );
}

#[test]
fn tokens_are_estimated_from_the_prompt_and_capped() {
    let engines = MockEngine::several(2, "0.05");
    let options = ["--policy", "tokens", "--max-tokens", "1000"];
    let deployment = Deployment::start(&addresses(&engines), &options);
    let ask = |bytes: usize| {
        let prompt = "x".repeat(bytes);
        let body = format!(
            "{{\"model\":\"{0}\",\"prompt\":\"{prompt}\",\"max_tokens\":100000,\"stream\":true}}",
            "m".repeat(500)
        );
        Stream::post(deployment.address, &body)
    };
    let mut long = ask(3_600);
    let mut short = [ask(400), ask(400), ask(400)];
    for stream in &mut short {
        assert_eq!(stream.status(), 200);
    }
    assert_eq!(long.status(), 200);
    let mut tokens: Vec<_> = deployment
        .table
        .view()
        .engines
        .iter()
        .map(|e| e.tokens)
        .collect();
    tokens.sort_unstable();
    // Where the short requests go before the long one is counted varies; their sum does not.
    assert_eq!(tokens.iter().sum::<u32>(), 900 + 3 * 100, "{tokens:?}");
    // One that an engine has no room for waits, also if it is larger than any engine's cap: it is an
    // estimate.
    let (mut full, mut too_large, mut chat) = (ask(3_996), ask(4_004), ask(4));
    assert_eq!((full.status(), too_large.status()), (503, 503));
    assert_eq!(chat.status(), 200);
    drop((long, short, chat));
    deployment.settles();
    let mut alone = ask(400_000);
    assert_eq!(alone.status(), 200);
    let engines = deployment.table.view().engines;
    assert_eq!(engines.iter().map(|e| e.tokens).sum::<u32>(), 1_000);
    drop(alone);
    deployment.settles();
}

/// Sends a request with this body. Returns the tokens that the table counts for it.
fn tokens_of(body: &str) -> u32 {
    let engines = MockEngine::several(1, "0.05");
    let deployment = Deployment::start(&addresses(&engines), &["--policy", "tokens"]);
    let mut stream = Stream::post(deployment.address, body);
    assert_eq!(stream.status(), 200, "{body}");
    deployment.table.view().engines[0].tokens
}

#[test]
fn tokens_are_counted_wherever_a_prompt_has_them() {
    let stream = "\"max_tokens\":100000,\"stream\":true";
    let bodies = [
        // Four bytes are a token, and so is the remainder.
        ("\"prompt\":\"12345\"".to_owned(), 2),
        ("\"input\":\"1234\"".to_owned(), 1),
        // By number.
        ("\"prompt\":[11,22,33]".to_owned(), 3),
        // As many for each prompt, rounded up.
        ("\"prompt\":[[11,22],[33]]".to_owned(), 4),
        (
            "\"messages\":[{\"role\":\"user\",\"content\":\"12345678\"}]".to_owned(),
            2,
        ),
        (
            "\"messages\":[{\"content\":[{\"type\":\"text\",\"text\":\"12345678\"}]}]".to_owned(),
            2,
        ),
    ];
    for (prompt, tokens) in bodies {
        assert_eq!(
            tokens_of(&format!("{{{prompt},{stream}}}")),
            tokens,
            "{prompt}"
        );
    }
    // However long it is.
    let long = format!("{{{stream},\"prompt\":\"{}\"}}", "x".repeat(400_000));
    assert_eq!(tokens_of(&long), 100_000);
}

#[test]
fn settings_in_the_list_hold_from_the_start() {
    let engines = MockEngine::several(2, "0.05");
    let [small, large] = [0, 1].map(|engine| engines[engine].address);
    let list = [
        format!("http://{small} weight=2.5 max_in_flight=7 max_tokens=10"),
        format!("http://{large} max_tokens=1000"),
    ];
    let options = [
        "--policy", "tokens", "--engine", &list[0], "--engine", &list[1],
    ];
    let deployment = Deployment::start(&[], &options);
    let view = deployment.table.view();
    let said = [0, 1].map(|engine| {
        let engine = &view.engines[engine];
        (engine.weight, engine.max_in_flight, engine.max_tokens)
    });
    assert_eq!(said, [(2.5, Some(7), Some(10)), (1.0, None, Some(1000))]);
    let ask = |bytes: usize| {
        let prompt = "x".repeat(bytes);
        let body = format!("{{\"prompt\":\"{prompt}\",\"max_tokens\":100000,\"stream\":true}}");
        Stream::post(deployment.address, &body)
    };
    // More than the small engine ever takes, and than the large one has room for now: the client may try again.
    let mut first = ask(3_600);
    assert_eq!(first.status(), 200);
    assert_eq!(ask(2_000).status(), 503);
    drop(first);
    deployment.settles();
}

#[test]
fn prompts_meet_elsewhere_when_their_engine_takes_no_requests() {
    let engines = MockEngine::several(4, "0.001");
    let deployment = Deployment::start(&addresses(&engines), &["--affinity", "2"]);
    let ask = || {
        deployment.settles();
        let mut stream = Stream::post(
            deployment.address,
            "{\"prompt\":\"as ever\",\"max_tokens\":1}",
        );
        assert_eq!(stream.status(), 200);
        let head = stream.head().to_lowercase();
        stream.rest();
        let engine = head.split("x-headcount-engine: ").nth(1).unwrap();
        engine.lines().next().unwrap().to_owned()
    };
    let first = ask();
    let table = Table::open(deployment.table_path()).unwrap();
    table.drain(table.find(&first).unwrap()).unwrap();
    // Once all workers have noticed, they agree on another engine.
    let mut engine = String::new();
    eventually("another engine for these prompts", || {
        engine = ask();
        (0..12).all(|_| ask() == engine)
    });
    assert_ne!(engine, first);
}

#[test]
fn prompts_that_begin_alike_meet_at_one_engine_unless_it_is_loaded() {
    let engines = MockEngine::several(4, "0.05");
    let deployment = Deployment::start(&addresses(&engines), &["--affinity", "2"]);
    let ask = |system: &str, user: usize| {
        let body = format!(
            "{{\"messages\":[{{\"role\":\"system\",\"content\":\"{}\"}},{{\"role\":\"user\",\"content\":\"{user}\"}}],
              \"max_tokens\":100000,\"stream\":true}}",
            system.repeat(300)
        );
        let mut stream = Stream::post(deployment.address, &body);
        assert_eq!(stream.status(), 200);
        let head = stream.head().to_owned();
        let engine = head
            .lines()
            .find(|line| line.starts_with("x-headcount-engine"));
        (engine.unwrap().to_owned(), stream)
    };
    // One at a time, at whatever worker: always the same engine.
    let first = ask("a", 0).0;
    for user in 1..20 {
        deployment.settles();
        assert_eq!(ask("a", user).0, first);
    }
    deployment.settles();
    // Many prompts are not all alike.
    let others: std::collections::BTreeSet<_> = (0..40)
        .map(|number| {
            deployment.settles();
            ask(&format!("{number}"), 0).0
        })
        .collect();
    assert!(others.len() > 2, "{others:?}");
    deployment.settles();
    // With nine in flight at once it would be too loaded for the rest: two more than the least loaded
    // it takes, and then one more.
    let streams: Vec<_> = (0..9).map(|user| ask("a", user).1).collect();
    let mut counts = deployment.in_flight();
    counts.sort_unstable();
    assert!(counts[3] - counts[0] <= 3 && counts[3] >= 3, "{counts:?}");
    drop(streams);
    deployment.settles();
}
