//! `--count-output`: the tokens of a request grow with its answer.

use crate::deployment::Deployment;
use crate::engine::{odd_engine, read_request, say};
use crate::stream::Stream;
use headcount_tests::eventually;
use std::io::Read;
use std::net::SocketAddr;
use std::thread::sleep;
use std::time::Duration;

const EVENT: &str = "data: {\"choices\":[{\"text\":\" token\"}]}\n\n";
const TOLD: &str =
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":500}}\n\n";

/// Ten tokens, by its length.
const PROMPT: &str = "{\"stream\":true,\"prompt\":\"forty bytes, and that makes ten tokens..\"}";

/// An engine that streams these parts, with more than 100 ms between two of them, and then waits for the client's end.
fn engine(head: &str, parts: &[String]) -> SocketAddr {
    let head = format!("HTTP/1.1 200 OK\r\n{head}\r\n");
    let parts = parts.to_vec();
    odd_engine(move |connection| {
        if read_request(connection).is_empty() || !say(connection, &head) {
            return;
        }
        for part in &parts {
            say(connection, part);
            sleep(Duration::from_millis(150));
        }
        let _ = connection.read(&mut [0]);
    })
}

const STREAM: &str = "Content-Type: text/event-stream; charset=utf-8\r\n";

/// Reads so many tokens of a stream, and waits until the table counts so many tokens for it.
fn comes_to(deployment: &Deployment, stream: &mut Stream, events: usize, tokens: u32) {
    for _ in 0..events {
        assert!(stream.token());
    }
    let mut found = 0;
    eventually(&format!("{tokens} tokens in flight"), || {
        let view = deployment.table.view();
        found = view.engines[0].tokens;
        assert_eq!(view.engines[0].in_flight, 1);
        found == tokens
    });
}

#[test]
fn each_event_of_a_stream_is_counted_if_that_is_asked_for() {
    let engine = engine(
        STREAM,
        &[EVENT.repeat(20), EVENT.into(), TOLD.into(), EVENT.into()],
    );
    let deployment = Deployment::start(&[engine], &["--workers=1", "--count-output"]);
    let mut stream = Stream::post(deployment.address, PROMPT);
    comes_to(&deployment, &mut stream, 21, 10 + 21);
    comes_to(&deployment, &mut stream, 1, 10 + 500);
    comes_to(&deployment, &mut stream, 1, 10 + 501);
    drop(stream);
    deployment.settles();
}

#[test]
fn output_above_a_cap_is_passed_on_and_not_counted() {
    let parts = [
        EVENT.repeat(10),
        EVENT.into(),
        EVENT.repeat(30),
        EVENT.into(),
    ];
    let engine = engine(STREAM, &parts);
    let options = ["--workers=1", "--count-output", "--max-tokens=25"];
    let deployment = Deployment::start(&[engine], &options);
    let mut stream = Stream::post(deployment.address, PROMPT);
    comes_to(&deployment, &mut stream, 11, 10 + 11);
    comes_to(&deployment, &mut stream, 31, 10 + 11);
    assert_eq!(deployment.table.view().refusals_total.total(), 0);
    drop(stream);
    deployment.settles();
}

#[test]
fn output_is_not_counted_unless_that_is_asked_for_and_it_can_be_read() {
    let parts = [EVENT.repeat(20), EVENT.into()];
    let json = "Content-Type: application/json\r\n";
    let packed = format!("{STREAM}Content-Encoding: gzip\r\n");
    let counting = ["--workers=1", "--count-output"];
    for (head, options) in [
        (STREAM, &["--workers=1", "--policy=tokens"]),
        (json, &counting),
        (&packed, &counting),
    ] {
        let deployment = Deployment::start(&[engine(head, &parts)], options);
        let mut stream = Stream::post(deployment.address, PROMPT);
        comes_to(&deployment, &mut stream, 21, 10);
        drop(stream);
        deployment.settles();
    }
}

#[test]
fn output_of_several_sequences_is_counted_together() {
    let engine = engine(STREAM, &[EVENT.repeat(20), EVENT.into()]);
    let deployment = Deployment::start(&[engine], &["--workers=1", "--count-output"]);
    let prompt = PROMPT.replace("{\"stream\"", "{\"n\":3,\"stream\"");
    let mut stream = Stream::post(deployment.address, &prompt);
    for _ in 0..21 {
        assert!(stream.token());
    }
    eventually("51 tokens of three requests", || {
        let engine = &deployment.table.view().engines[0];
        (engine.in_flight, engine.tokens) == (3, 30 + 21)
    });
    drop(stream);
    deployment.settles();
}
