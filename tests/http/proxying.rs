//! What users of a proxy expect: heads, bodies that are passed on as they come, metrics of the table.

use crate::deployment::{Deployment, agent, signal, stop};
use crate::engine::{MockEngine, addresses, odd_engine, read_head, say};
use crate::stream::Stream;
use headcount::Table;
use headcount_tests::{eventually, prometheus_approves};
use std::io::{BufRead, Read};
use std::net::SocketAddr;

/// An engine that answers with the head that it got, under a head with all fields that must not be passed on.
fn mirror() -> SocketAddr {
    odd_engine(|connection| {
        loop {
            let head = read_head(connection);
            if head.is_empty() {
                return;
            }
            let length = head.len();
            let own = "HTTP/1.1 201 Made\r\nConnection: X-Private\r\nX-Private: 1\r\nX-Kept: 2\r\n\
                       Keep-Alive: timeout=5\r\nProxy-Authenticate: Basic\r\n";
            say(
                connection,
                &format!("{own}Content-Length: {length}\r\n\r\n{head}"),
            );
        }
    })
}

#[test]
fn heads_lose_what_concerns_one_connection_and_keep_the_rest() {
    let engine = mirror();
    let deployment = Deployment::start(&[engine], &[]);
    let mut stream = Stream::send(
        deployment.address,
        "PUT /a/b?c=d HTTP/1.1\r\nHost: api.example\r\nConnection: close, X-Hop, Content-Length\r\n\
         X-Hop: 1\r\nKeep-Alive: 5\r\nTE: trailers\r\nProxy-Authorization: secret\r\n\
         Proxy-Connection: close\r\nAuthorization: Bearer key\r\nX-Request-Id: mine-1\r\n\
         X-Forwarded-For: 10.1.2.3\r\nUpgrade: h2c\r\nContent-Length: 0\r\n\r\n",
    );
    assert_eq!(stream.status(), 201);
    let answer = stream.head().to_lowercase();
    assert!(
        answer.contains("x-kept: 2") && answer.contains("x-request-id: mine-1"),
        "{answer}"
    );
    assert!(
        answer.contains(&format!("x-headcount-engine: http://{engine}")),
        "{answer}"
    );
    for gone in ["x-private", "keep-alive", "proxy-authenticate"] {
        assert!(!answer.contains(gone), "{gone} in {answer}");
    }
    let asked = stream.rest().0.to_lowercase();
    assert!(asked.starts_with("put /a/b?c=d http/1.1\r\n"), "{asked}");
    for kept in [
        "authorization: bearer key",
        "x-request-id: mine-1",
        "x-forwarded-for: 10.1.2.3, 127.0.0.1",
        "x-forwarded-host: api.example",
        "x-forwarded-proto: http",
        "content-length: 0",
        &format!("host: {engine}"),
    ] {
        assert!(asked.contains(kept), "no {kept} in {asked}");
    }
    for gone in [
        "x-hop",
        "keep-alive",
        "te:",
        "proxy-",
        "upgrade",
        "connection:",
    ] {
        assert!(!asked.contains(&format!("\r\n{gone}")), "{gone} in {asked}");
    }
    deployment.settles();
}

#[test]
fn fields_of_another_proxy_are_kept_and_a_target_with_a_host_loses_it() {
    let engine = mirror();
    let deployment = Deployment::start(&[engine], &[]);
    let mut stream = Stream::send(
        deployment.address,
        "GET http://api.example/a/b?c=d HTTP/1.1\r\nHost: api.example\r\nConnection: close\r\n\
         X-Forwarded-Host: first.example\r\nX-Forwarded-Proto: https\r\nX-Request-Id:\r\n\r\n",
    );
    assert_eq!(stream.status(), 201);
    let asked = stream.rest().0.to_lowercase();
    assert!(asked.starts_with("get /a/b?c=d http/1.1\r\n"), "{asked}");
    for kept in [
        "x-forwarded-host: first.example",
        "x-forwarded-proto: https",
        &format!("host: {engine}"),
    ] {
        assert!(
            asked.contains(&format!("\r\n{kept}\r\n")),
            "no {kept} in {asked}"
        );
    }
    let id = asked.split("x-request-id: ").nth(1).unwrap_or_default();
    assert!(
        !id.starts_with('\r') && !id.is_empty(),
        "an id that is empty is none: {asked}"
    );
}

#[test]
fn a_request_without_an_id_gets_one_that_no_other_has() {
    let deployment = Deployment::start(&[mirror()], &[]);
    let mut ids = std::collections::BTreeSet::new();
    for _ in 0..20 {
        let mut answer = agent()
            .get(deployment.url("/v1/completions"))
            .call()
            .unwrap();
        let id = answer.headers()["x-request-id"]
            .to_str()
            .unwrap()
            .to_owned();
        let asked = answer.body_mut().read_to_string().unwrap();
        assert!(asked.contains(&id), "the engine knows it too");
        assert!(ids.insert(id));
    }
}

#[test]
fn other_protocols_are_refused_clearly() {
    let deployment = Deployment::start(&[mirror()], &[]);
    for request in [
        "GET / HTTP/1.1\r\nHost: t\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        "CONNECT t:443 HTTP/1.1\r\nHost: t:443\r\n\r\n",
    ] {
        assert_eq!(
            Stream::send(deployment.address, request).status(),
            501,
            "{request}"
        );
    }
    assert_eq!(deployment.total(), 0);
}

#[test]
fn a_target_of_a_host_alone_is_its_root() {
    let deployment = Deployment::start(&[mirror()], &["--workers=1"]);
    for target in ["http://x", "http://x#f", "http://x/#f", "http://x#/a?b"] {
        let request = format!("GET {target} HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n");
        let mut stream = Stream::send(deployment.address, &request);
        let asked = stream.rest().0;
        assert!(asked.starts_with("GET / HTTP/1.1\r\n"), "{target}: {asked}");
    }
}

#[test]
fn bodies_go_both_ways_piece_by_piece_if_none_is_held() {
    // Answers each line of the body before it reads the next.
    let engine = odd_engine(|connection| {
        if read_head(connection).is_empty() {
            return;
        }
        say(
            connection,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        );
        loop {
            let mut size = String::new();
            let _ = connection.read_line(&mut size);
            let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
            let mut chunk = vec![0; size + 2];
            if connection.read_exact(&mut chunk).is_err() || size == 0 {
                say(connection, "0\r\n\r\n");
                return;
            }
            let chunk = String::from_utf8_lossy(&chunk).into_owned();
            say(connection, &format!("{size:x}\r\n{chunk}"));
        }
    });
    let deployment = Deployment::start(&[engine], &["--max-held", "0"]);
    let head = "POST /v1/completions HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut stream = Stream::send(deployment.address, head);
    for _ in 0..5 {
        // If the server held back one direction, this would wait for ever.
        stream.more("5\r\nhello\r\n").unwrap();
        stream.head();
        assert_eq!(stream.bytes(10), b"5\r\nhello\r\n");
    }
    assert_eq!(deployment.total(), 1);
    stream.more("0\r\n\r\n").unwrap();
    assert_eq!(stream.bytes(5), b"0\r\n\r\n");
    deployment.settles();
}

#[test]
fn any_worker_tells_of_the_whole_table() {
    let engines = MockEngine::several(2, "0.02");
    let deployment = Deployment::start(&addresses(&engines), &["--max-in-flight", "7"]);
    for _ in 0..2 {
        let short: Vec<_> = (0..2).map(|_| deployment.stream(1_000_000)).collect();
        drop(short);
        deployment.settles();
    }
    let streams: Vec<_> = (0..6).map(|_| deployment.stream(1_000_000)).collect();
    for _ in 0..12 {
        let get = |path| {
            let mut answer = agent().get(deployment.url(path)).call().unwrap();
            assert_eq!(answer.status(), 200);
            answer.body_mut().read_to_string().unwrap()
        };
        let metrics = get("/metrics");
        for engine in &engines {
            let table = deployment.table_path();
            let labels = format!(
                "{{engine=\"http://{}\",table=\"{}\"}}",
                engine.address,
                table.display()
            );
            for expected in [
                ("in_flight_requests", 3),
                ("in_flight_tokens", 0),
                ("max_in_flight_requests", 7),
                ("requests_admitted_total", 5),
                ("requests_finished_total", 2),
            ] {
                let line = format!("headcount_engine_{}{labels} {}\n", expected.0, expected.1);
                assert!(metrics.contains(&line), "no {line} in {metrics}");
            }
        }
        for counter in ["admitted", "finished"] {
            let kind = format!("# TYPE headcount_engine_requests_{counter}_total counter\n");
            assert!(metrics.contains(&kind), "no {kind} in {metrics}");
        }
        let workers = metrics
            .lines()
            .filter(|l| l.starts_with("headcount_frontend_in_flight_requests{"));
        let held = workers.map(|line| line.rsplit(' ').next().unwrap().parse::<u32>().unwrap());
        assert_eq!(held.sum::<u32>(), 6);
        let health: serde_json::Value = serde_json::from_str(&get("/health")).unwrap();
        assert_eq!(health["status"], "ok");
        assert_eq!(health["workers"], 4);
        assert_eq!(health["engines"][1]["in_flight"], 3);
    }
    drop(streams);
    deployment.settles();
}

#[test]
fn health_is_good_while_one_engine_takes_requests_and_tells_of_workers_that_live() {
    let engines = MockEngine::several(2, "0.02");
    let deployment = Deployment::start(&addresses(&engines), &[]);
    // No process is there to reap, to probe, or to start another worker.
    stop(deployment.pid());
    let table = Table::open(deployment.table_path()).unwrap();
    table.down(1).unwrap();
    let dead = deployment.workers()[0];
    signal(dead, libc::SIGKILL);
    eventually("the death of the worker", || {
        deployment.workers().len() == 3
    });
    let mut answer = agent().get(deployment.url("/health")).call().unwrap();
    let health = answer.body_mut().read_to_string().unwrap();
    assert_eq!(
        deployment.table.view().frontends.len(),
        4,
        "it is there still"
    );
    signal(deployment.pid(), libc::SIGCONT);
    assert_eq!(answer.status(), 200);
    let health: serde_json::Value = serde_json::from_str(&health).unwrap();
    assert_eq!(health["status"], "ok");
    assert_eq!(health["engines"][1]["state"], "down");
    assert_eq!(health["workers"], 3);
}

#[test]
fn metrics_are_as_prometheus_wants_them() {
    let deployment = Deployment::start(&[mirror()], &["--max-in-flight", "7"]);
    let mut answer = agent().get(deployment.url("/metrics")).call().unwrap();
    let metrics = answer.body_mut().read_to_string().unwrap();
    prometheus_approves(&metrics);
}
