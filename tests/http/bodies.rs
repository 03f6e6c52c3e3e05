//! A request takes its place at an engine when its body is there, and counts what the body asks for,
//! however slowly and in whatever pieces it has come.

use crate::deployment::Deployment;
use crate::engine::{MockEngine, addresses, mirror, odd_engine, read_head, say};
use crate::stream::Stream;
use headcount_tests::eventually;
use std::thread;
use std::time::{Duration, Instant};

const HEAD: &str = "POST /v1/completions HTTP/1.1\r\nHost: t\r\nConnection: close\r\n";
const GET: &str = "GET /health-of-engine HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n";

#[test]
fn a_client_that_has_not_sent_its_body_has_no_place() {
    let options = [
        "--workers=1",
        "--max-in-flight",
        "1",
        "--client-idle-timeout",
        "3",
    ];
    let deployment = Deployment::start(&[mirror()], &options);
    let slow = [
        format!("{HEAD}Content-Length: 100\r\n\r\n"),
        format!("{HEAD}Content-Length: 100\r\n\r\n{{"),
        format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n"),
        format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n1\r\n{{\r\n"),
    ];
    let start = Instant::now();
    let mut slow = slow.map(|request| Stream::send(deployment.address, &request));
    // Other clients are served meanwhile.
    let mut served = 0;
    while start.elapsed() < Duration::from_secs(1) {
        assert_eq!(Stream::send(deployment.address, GET).status(), 200);
        deployment.settles();
        served += 1;
    }
    assert!(served > 0);
    for stream in &mut slow {
        assert_eq!(stream.status(), 408);
        assert!(stream.rest().0.contains("body_timeout"));
    }
    deployment.settles();
    assert_eq!(deployment.table.view().engines[0].admitted_total, served);
}

#[test]
fn a_body_that_comes_late_is_counted_with_all_its_tokens() {
    let engines = MockEngine::several(1, "0.05");
    let options = ["--workers=1", "--max-tokens", "10000"];
    let deployment = Deployment::start(&addresses(&engines), &options);
    let body = format!(
        "{{\"max_tokens\":100000,\"prompt\":\"{}\"}}",
        "x".repeat(8_000 * 4)
    );
    for _ in 0..3 {
        let head = format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n");
        let mut late = Stream::send(deployment.address, &head);
        // Longer than a server lingers for the rest of a body.
        thread::sleep(Duration::from_millis(400));
        assert_eq!(deployment.total(), 0);
        late.more(&format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len()))
            .unwrap();
        eventually("a count of one", || deployment.total() == 1);
        assert_eq!(deployment.table.view().engines[0].tokens, 8_000);
        let mut other = Stream::post(deployment.address, &body);
        assert_eq!(other.status(), 503, "the cap holds");
        drop(late);
        deployment.settles();
    }
}

/// Sends a request in these pieces. Returns what the table counts for it.
fn tokens_of(deployment: &Deployment, pieces: &[String]) -> u32 {
    deployment.settles();
    let mut stream = Stream::send(deployment.address, &pieces[0]);
    for piece in &pieces[1..] {
        thread::sleep(Duration::from_millis(10));
        stream.more(piece).unwrap();
    }
    eventually("a count of one", || deployment.total() == 1);
    deployment.table.view().engines[0].tokens
}

#[test]
fn the_count_does_not_depend_on_how_the_bytes_come() {
    let engines = MockEngine::several(1, "0.05");
    let options = ["--workers=1", "--policy", "tokens"];
    let deployment = Deployment::start(&addresses(&engines), &options);
    for size in [40, 4_000, 400_000] {
        let body = format!(
            "{{\"max_tokens\":100000,\"prompt\":\"{}\"}}",
            "x".repeat(size)
        );
        let with_length = format!("{HEAD}Content-Length: {}\r\n\r\n", body.len());
        let in_chunks = format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n");
        let (first, second) = body.split_at(30);
        let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
        for pieces in [
            vec![format!("{with_length}{body}")],
            vec![with_length.clone(), first.to_owned(), second.to_owned()],
            vec![format!("{in_chunks}{}0\r\n\r\n", chunk(&body))],
            vec![
                in_chunks.clone(),
                chunk(first),
                chunk(second),
                "0\r\n\r\n".to_owned(),
            ],
        ] {
            assert_eq!(tokens_of(&deployment, &pieces), size as u32 / 4);
        }
    }
}

#[test]
fn pictures_and_sounds_count_little_whatever_their_size() {
    let engines = MockEngine::several(1, "0.05");
    let options = ["--workers=1", "--max-tokens", "10000"];
    let deployment = Deployment::start(&addresses(&engines), &options);
    let data = "A".repeat(1_500_000);
    for (part, tokens) in [
        (
            format!(
                "{{\"type\":\"image_url\",\"image_url\":{{\"url\":\"data:image/png;base64,{data}\"}}}}"
            ),
            1_000,
        ),
        (
            format!(
                "{{\"input_audio\":{{\"data\":\"{data}\",\"format\":\"wav\"}},\"type\":\"input_audio\"}}"
            ),
            1_000,
        ),
        (
            format!("{{\"type\":\"input_image\",\"image_url\":\"data:image/png;base64,{data}\"}}"),
            1_000,
        ),
        (
            format!("{{\"type\":\"video_url\",\"video_url\":{{\"url\":\"{data}\"}}}}"),
            1_000,
        ),
        (
            format!("{{\"type\":\"file\",\"file\":{{\"file_data\":\"{data}\"}}}}"),
            1_000,
        ),
        (
            format!("{{\"type\":\"image\",\"source\":{{\"data\":\"{data}\"}}}}"),
            1_000,
        ),
        (
            "{\"type\":\"image_url\",\"image_url\":{}},{\"type\":\"image_url\",\"image_url\":{}}"
                .to_owned(),
            2_000,
        ),
        ("{\"type\":\"text\",\"text\":\"1234\"}".to_owned(), 1),
    ] {
        let text = "{\"type\":\"text\",\"text\":\"what is it?!\"}";
        let messages = format!("[{{\"role\":\"user\",\"content\":[{text},{part}]}}]");
        let body = format!("{{\"max_tokens\":100000,\"messages\":{messages}}}");
        let request = format!("{HEAD}Content-Length: {}\r\n\r\n{body}", body.len());
        let shown = &part[..part.len().min(60)];
        assert_eq!(tokens_of(&deployment, &[request]), 3 + tokens, "{shown}");
    }
    // As a form, or as the bare file.
    let mirror = Deployment::start(&[mirror()], &["--workers=1", "--max-tokens", "10000"]);
    for kind in ["multipart/form-data; boundary=x", "Audio/wav", "image/png"] {
        let request = format!(
            "{HEAD}Content-Type: {kind}\r\nContent-Length: {}\r\n\r\n{data}",
            data.len()
        );
        assert_eq!(Stream::send(mirror.address, &request).status(), 200);
    }
    // An estimate above every cap does not refuse a request for ever: it gets an engine to itself.
    let text = format!("{{\"max_tokens\":100000,\"unknown\":\"{data}\"}}");
    let text = format!("{HEAD}Content-Length: {}\r\n\r\n{text}", text.len());
    assert_eq!(tokens_of(&deployment, &[text]), 10_000);
}

/// The head of a request whose body is longer than the 1,000 bytes that are held.
const LONG: &str = "POST /v1/completions HTTP/1.1\r\nHost: t\r\nConnection: close\r\nContent-Length: 100000\r\n\r\n";

#[test]
fn a_client_that_keeps_an_engine_waiting_is_cut_off_and_the_engine_not_blamed() {
    // The engine answers when the whole body is there. It comes in many pieces, a byte a line.
    let engine = odd_engine(|connection| {
        read_head(connection);
        while !read_head(connection).is_empty() {}
    });
    let options = [
        "--workers=1",
        "--max-held",
        "1000",
        "--client-idle-timeout",
        "2",
        // Less than the limit of the client.
        "--first-byte-timeout",
        "0.5",
    ];
    let deployment = Deployment::start(&[engine], &options);
    // The client sends nothing more, or a byte now and then: the sum of its pauses counts.
    for drips in [false, true] {
        let mut stream = Stream::send(deployment.address, &format!("{LONG}{}", "x".repeat(2_000)));
        eventually("the request's place", || deployment.total() == 1);
        let start = Instant::now();
        while drips && deployment.total() == 1 {
            let _ = stream.more("x");
            thread::sleep(Duration::from_millis(100));
            assert!(
                start.elapsed() < Duration::from_secs(60),
                "it holds its place"
            );
        }
        assert_eq!(stream.status(), 408, "{}", stream.rest().0);
        deployment.settles();
    }
}

#[test]
fn an_engine_that_is_slow_when_all_is_there_is_to_blame() {
    let engine = odd_engine(|connection| {
        read_head(connection);
        while !read_head(connection).is_empty() {}
    });
    let options = [
        "--workers=1",
        "--max-held",
        "1000",
        "--first-byte-timeout",
        "1",
    ];
    let deployment = Deployment::start(&[engine], &options);
    let mut stream = Stream::send(deployment.address, &format!("{LONG}{}", "x".repeat(2_000)));
    thread::sleep(Duration::from_millis(300));
    stream.more(&"x".repeat(98_000)).unwrap();
    assert_eq!(stream.status(), 504);
    assert!(stream.rest().0.contains(&format!("http://{engine}")));
    deployment.settles();
}

#[test]
fn a_body_of_unknown_length_that_is_longer_than_what_is_held_needs_one_if_tokens_count() {
    let held = ["--workers=1", "--max-held", "1000"];
    let chunks = format!("7d0\r\n{}\r\n0\r\n\r\n", "x".repeat(2_000));
    let request = format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n{chunks}");
    let with_length = format!("{HEAD}Content-Length: 2000\r\n\r\n{}", "x".repeat(2_000));
    let plain = Deployment::start(&[mirror()], &held);
    assert_eq!(Stream::send(plain.address, &request).status(), 200);
    let counting = [&held[..], &["--max-tokens", "10000"]].concat();
    let counting = Deployment::start(&[mirror()], &counting);
    let mut stream = Stream::send(counting.address, &request);
    assert_eq!(stream.status(), 411);
    assert!(stream.rest().0.contains("length_required"));
    assert_eq!(Stream::send(counting.address, &with_length).status(), 200);
    counting.settles();
}

#[test]
fn a_body_longer_than_what_is_held_counts_with_all_its_bytes() {
    let engines = MockEngine::several(1, "0.05");
    let options = ["--workers=1", "--max-held", "1000", "--policy", "tokens"];
    let deployment = Deployment::start(&addresses(&engines), &options);
    let body = format!(
        "{{\"max_tokens\":100000,\"prompt\":\"{}\"}}",
        "x".repeat(40_000)
    );
    let head = format!("{HEAD}Content-Length: {}\r\n\r\n", body.len());
    let expected = body.len().div_ceil(4) as u32;
    assert_eq!(tokens_of(&deployment, &[format!("{head}{body}")]), expected);
    let (first, second) = body.split_at(2_000);
    let pieces = [head, first.to_owned(), second.to_owned()];
    assert_eq!(tokens_of(&deployment, &pieces), expected);
}

#[test]
fn a_body_is_asked_for_only_if_there_is_a_place() {
    let engines = MockEngine::several(1, "0.02");
    let options = ["--workers=1", "--max-in-flight", "1", "--max-body", "1000"];
    let deployment = Deployment::start(&addresses(&engines), &options);
    let body = "{\"max_tokens\":1}";
    let head =
        |length: usize| format!("{HEAD}Content-Length: {length}\r\nExpect: 100-continue\r\n\r\n");
    // Too large, even with room at an engine.
    let mut large = Stream::send(deployment.address, &head(1_001));
    assert_eq!(large.status(), 413);
    // With room: 100, the body, the answer.
    let mut asks = Stream::send(deployment.address, &head(body.len()));
    assert_eq!(asks.status(), 100);
    assert_eq!(deployment.total(), 0, "the body is not there yet");
    asks.again(body);
    assert_eq!(asks.status(), 200);
    deployment.settles();
    // Without room: 503 at once.
    let stays = deployment.stream(1_000_000);
    let mut asks = Stream::send(deployment.address, &head(body.len()));
    assert_eq!(asks.status(), 503);
    assert!(asks.head().to_lowercase().contains("retry-after: 1"));
    assert!(asks.rest().0.contains("engines_saturated"));
    drop(stays);
    deployment.settles();
    let table = headcount::Table::open(deployment.table_path()).unwrap();
    table.drain(0).unwrap();
    let mut asks = Stream::send(deployment.address, &head(body.len()));
    assert_eq!(asks.status(), 503);
    assert!(asks.rest().0.contains("no_engine"));
}

#[test]
fn a_client_that_does_not_wait_for_100_is_served_too() {
    let engine = odd_engine(|connection| {
        let head = read_head(connection).to_lowercase();
        let length = if head.contains("expect") { 9 } else { 0 };
        say(
            connection,
            &format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n"),
        );
    });
    let deployment = Deployment::start(&[engine], &["--workers=1"]);
    let request = format!("{HEAD}Content-Length: 2\r\nExpect: 100-continue\r\n\r\n{{}}");
    let mut stream = Stream::send(deployment.address, &request);
    let said = format!("{}{}", stream.head().to_owned(), stream.rest().0);
    assert!(said.contains("HTTP/1.1 200 OK"), "{said}");
    assert!(
        said.contains("content-length: 0"),
        "the engine is not asked: {said}"
    );
}
