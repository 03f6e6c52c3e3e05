//! The access log has a line for each request, however it ends.

use crate::deployment::{agent, signal};
use crate::engine::{MockEngine, engine_that_says, odd_engine, read_request};
use crate::server::{Server, lines_of, next};
use crate::stream::Stream;
use serde_json::Value;
use std::io::Read;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, channel};

#[test]
fn the_access_log_has_a_line_for_each_request() {
    let engine = MockEngine::start("0.02");
    let mut server = Server::start(engine.address, &[]);
    let asked = agent()
        .post(server.url("/v1/completions?x=1"))
        .header("x-request-id", "the-id")
        .send("{\"max_tokens\":2}");
    assert_eq!(asked.unwrap().status(), 200);
    let logged = server.logged();
    assert_eq!(logged["id"], "the-id");
    assert_eq!(logged["method"], "POST");
    assert_eq!(logged["target"], "/v1/completions?x=1");
    assert_eq!(logged["status"], 200);
    assert_eq!(logged["engine"], format!("http://{}", engine.address));
    assert_eq!(logged["complete"], true);
    assert_eq!(logged["cut"], Value::Null);
    assert!(logged["bytes"].as_u64().unwrap() > 0);
    assert!(logged["first_byte_s"].as_f64().unwrap() > 0.02);
    assert!(logged["duration_s"].as_f64().unwrap() > 0.02);
    let refused = agent().post(server.url("/health")).send("");
    let refused = refused.unwrap();
    assert_eq!(refused.status(), 405);
    let logged = server.logged();
    assert_eq!(logged["reason"], "method_not_allowed");
    assert_eq!(logged["engine"], Value::Null);
    assert_eq!(
        logged["id"],
        refused.headers()["x-request-id"].to_str().unwrap()
    );
}

#[test]
fn standard_output_has_nothing_but_the_access_log() {
    let engine = MockEngine::start("0.002");
    let mut server = Server::start(engine.address, &[]);
    assert_eq!(
        agent().get(server.url("/live")).call().unwrap().status(),
        200
    );
    assert!(server.ends().success());
    let mut output = String::new();
    let pipe = server.output.as_mut().unwrap();
    pipe.read_to_string(&mut output).unwrap();
    let lines: Vec<_> = output.lines().collect();
    assert_eq!(lines.len(), 1, "{output}");
    let line: Value = serde_json::from_str(lines[0]).unwrap();
    assert_eq!(line["target"], "/live");
}

/// Starts an engine that reads requests and never answers. Returns the heads that it reads.
fn silent_engine() -> (SocketAddr, Receiver<String>) {
    let (sender, got) = channel();
    let engine = odd_engine(move |connection| {
        let request = read_request(connection);
        if !request.is_empty() {
            let _ = sender.send(request);
            // Up to the end of the connection.
            let _ = connection.read_to_end(&mut Vec::new());
        }
    });
    (engine, got)
}

/// Returns the id in the head that an engine got.
fn id_of(request: &str) -> &str {
    let lines = request.lines();
    let mut ids = lines.filter_map(|line| line.strip_prefix("x-request-id: "));
    ids.next().unwrap()
}

#[test]
fn a_client_that_leaves_before_the_answer_has_its_id_and_its_engine_in_the_log() {
    let (engine, got) = silent_engine();
    let mut server = Server::start(engine, &[]);
    let stream = Stream::ask(server.address, 1);
    let request = got.recv().unwrap();
    drop(stream);
    let logged = server.logged();
    assert_eq!(logged["status"], 499);
    assert_eq!(logged["id"], id_of(&request));
    assert_eq!(logged["engine"], format!("http://{engine}"));
    assert_eq!(logged["first_byte_s"], Value::Null);
    assert_eq!(logged["complete"], false);
    assert_eq!(logged["cut"], Value::Null);
}

#[test]
fn an_engine_that_gives_no_answer_is_in_the_log() {
    let (silent, _got) = silent_engine();
    let garbled = engine_that_says("no HTTP at all\r\n\r\n");
    for (engine, status, reason) in [
        (silent, 504, "engine_timeout"),
        (garbled, 502, "engine_broke_off"),
        (MockEngine::start("0.02").kill(), 503, "no_engine"),
    ] {
        let mut server = Server::start(engine, &["--first-byte-timeout", "0.2"]);
        assert_eq!(Stream::ask(server.address, 1).status(), status);
        let logged = server.logged();
        assert_eq!(logged["status"], status);
        assert_eq!(logged["reason"], reason);
        assert_eq!(logged["engine"], format!("http://{engine}"));
    }
}

/// Ends the server as told while one request streams and another has no answer yet, and looks at the lines of
/// both.
fn check_a_cut(options: &[&str], ends: impl FnOnce(&Server, &Receiver<String>)) {
    let engine = MockEngine::start("0.02");
    let mut server = Server::start(engine.address, options);
    let errors = lines_of(server.errors.take().unwrap());
    let mut begun = Stream::ask(server.address, 1_000_000);
    assert!(begun.token());
    // The answer comes in one piece, in hours.
    let mut waiting = Stream::post(server.address, "{\"max_tokens\":1000000}");
    engine.comes_to_run(2);
    signal(server.pid(), libc::SIGTERM);
    let line = next(&errors);
    assert!(line.contains("finishing 2 requests"), "{line}");
    ends(&server, &errors);
    assert_eq!(waiting.status(), 503);
    let told = waiting.rest().0;
    assert!(told.contains("\"code\":\"shutdown\""), "{told}");
    assert!(!begun.rest().1, "it was cut");
    let mut logged = [server.logged(), server.logged()];
    logged.sort_by_key(|line| line["status"].as_u64());
    let [begun, waiting] = logged;
    assert_eq!(
        (&begun["status"], &begun["reason"]),
        (&200.into(), &Value::Null)
    );
    assert_eq!(waiting["status"], 503);
    assert_eq!(waiting["reason"], "shutdown");
    for line in [begun, waiting] {
        assert_eq!(line["cut"], "shutdown", "{line}");
        assert_eq!(line["engine"], format!("http://{}", engine.address));
    }
    assert!(server.ended().success());
    engine.becomes_idle();
}

#[test]
fn requests_cut_by_the_drain_timeout_are_told_and_logged() {
    check_a_cut(&["--drain-timeout", "0.5"], |_, _| {});
}

#[test]
fn a_second_signal_loses_no_line_of_what_it_cuts() {
    check_a_cut(&["--drain-timeout", "3600"], |server, errors| {
        signal(server.pid(), libc::SIGTERM);
        let line = next(errors);
        assert!(
            line.contains("a second signal: ending with 2 requests"),
            "{line}"
        );
    });
}

#[test]
fn a_second_signal_within_the_delay_loses_no_line_either() {
    let engine = MockEngine::start("0.02");
    let mut server = Server::start(engine.address, &["--shutdown-delay", "3600"]);
    let errors = lines_of(server.errors.take().unwrap());
    let mut begun = Stream::ask(server.address, 1_000_000);
    assert!(begun.token());
    signal(server.pid(), libc::SIGTERM);
    assert!(next(&errors).contains("still serving"));
    signal(server.pid(), libc::SIGTERM);
    let logged = server.logged();
    assert_eq!(
        (&logged["status"], &logged["cut"]),
        (&200.into(), &"shutdown".into())
    );
    assert!(server.ended().success());
}
