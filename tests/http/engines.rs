//! Engines that die in mid-answer, that send nonsense, that send nothing.

use crate::deployment::{Deployment, agent, complete, signal, stop};
use crate::engine::{MockEngine, addresses, odd_engine, read_head, say};
use crate::stream::Stream;
use headcount::{EngineState, Table};
use headcount_tests::eventually;
use std::net::Shutdown;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

#[test]
fn an_engine_that_dies_in_mid_answer_cuts_the_answer() {
    // Answers in part, dies when it is told to, and reports that.
    let (asked, is_asked) = mpsc::channel::<()>();
    let (told, dies) = mpsc::channel::<()>();
    let (died, has_died) = mpsc::channel::<()>();
    let ends = Mutex::new((asked, dies, died));
    let engine = odd_engine(move |connection| {
        if read_head(connection).is_empty() {
            return;
        }
        let (asked, dies, died) = &*ends.lock().unwrap();
        let _ = asked.send(());
        let _ = dies.recv();
        say(
            connection,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\ndata: \r\n",
        );
        let _ = connection.get_ref().shutdown(Shutdown::Both);
        let _ = died.send(());
    });
    let deployment = Deployment::start(&[engine], &["--workers=1"]);
    let worker = deployment.workers()[0];
    for stopped in [false, true] {
        let mut stream = Stream::post(deployment.address, "{}");
        is_asked.recv().unwrap();
        // A worker that learns of the answer and of the death at the same time passes both on.
        if stopped {
            stop(worker);
        }
        told.send(()).unwrap();
        has_died.recv().unwrap();
        signal(worker, libc::SIGCONT);
        assert_eq!(stream.status(), 200);
        let (got, whole) = stream.rest();
        assert!(
            got.contains("data: ") && !whole,
            "{got:?}: a client can tell that it is not whole"
        );
        deployment.settles();
    }
    assert_eq!(
        deployment.state(engine),
        Some(EngineState::Active),
        "it may only have failed here"
    );
}

#[test]
fn an_engine_that_answers_garbage_is_a_bad_gateway() {
    let garbage = [
        "\u{1}\u{2}\u{3} no HTTP at all\r\n\r\n",
        "HTTP/1.1 999999 What\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: tls\r\nConnection: upgrade\r\n\r\nxx",
        "",
    ];
    for garbage in garbage {
        let engine = odd_engine(move |connection| {
            if !read_head(connection).is_empty() {
                say(connection, garbage);
            }
        });
        let deployment = Deployment::start(&[engine], &[]);
        let (status, body) = complete(&agent(), &deployment.url("/v1/completions"), 1).unwrap();
        assert_eq!(status, 502, "{garbage:?}: {body}");
        assert!(body.contains("engine_broke_off"), "{body}");
        deployment.settles();
    }
}

#[test]
fn an_engine_that_never_answers_is_given_up() {
    let engine = odd_engine(|connection| while !read_head(connection).is_empty() {});
    let options = ["--first-byte-timeout", "0.3"];
    let deployment = Deployment::start(&[engine], &options);
    let (status, body) = complete(&agent(), &deployment.url("/v1/completions"), 1).unwrap();
    assert_eq!(status, 504, "{body}");
    deployment.settles();
}

#[test]
fn an_engine_that_stops_in_mid_answer_is_given_up() {
    let engine = odd_engine(|connection| {
        while !read_head(connection).is_empty() {
            say(
                connection,
                "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
            );
        }
    });
    let options = ["--engine-idle-timeout", "0.3"];
    let deployment = Deployment::start(&[engine], &options);
    let mut stream = Stream::post(deployment.address, "{}");
    assert_eq!(stream.status(), 200);
    assert_eq!(stream.rest().0, "half");
    deployment.settles();
}

#[test]
fn an_engine_that_closes_the_connection_with_its_answer_to_a_probe_is_back() {
    // Answers and closes when it is told.
    let (asked, is_asked) = mpsc::channel::<()>();
    let (told, answers) = mpsc::channel::<()>();
    let (closed, has_closed) = mpsc::channel::<()>();
    let ends = Mutex::new((asked, answers, closed));
    let engine = odd_engine(move |connection| {
        if !read_head(connection).is_empty() {
            let (asked, answers, closed) = &*ends.lock().unwrap();
            let _ = asked.send(());
            let _ = answers.recv();
            say(connection, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
            let _ = connection.get_ref().shutdown(Shutdown::Both);
            let _ = closed.send(());
        }
    });
    let deployment = Deployment::start(&[engine], &["--connect-timeout", "60"]);
    let table = Table::open(deployment.table_path()).unwrap();
    table.down(0).unwrap();
    is_asked.recv().unwrap();
    // The parent learns of the answer and of the end at the same time.
    stop(deployment.pid());
    told.send(()).unwrap();
    has_closed.recv().unwrap();
    signal(deployment.pid(), libc::SIGCONT);
    eventually("the engine's return", || {
        assert!(is_asked.try_recv().is_err(), "once is enough");
        deployment.state(engine) == Some(EngineState::Active)
    });
}

#[test]
fn an_engine_may_pause_again_and_again() {
    // Longer in all than a single pause may last.
    let engine = odd_engine(|connection| {
        if !read_head(connection).is_empty() {
            say(connection, "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n");
            for _ in 0..12 {
                thread::sleep(Duration::from_millis(400));
                say(connection, "x");
            }
        }
    });
    let deployment = Deployment::start(&[engine], &["--engine-idle-timeout", "3"]);
    let mut stream = Stream::post(deployment.address, "{}");
    assert_eq!(stream.rest().0, "x".repeat(12));
    deployment.settles();
}

#[test]
fn a_connection_that_is_not_used_is_closed() {
    let (ended, has_ended) = mpsc::channel::<()>();
    let ended = Mutex::new(ended);
    let engine = odd_engine(move |connection| {
        while !read_head(connection).is_empty() {
            say(connection, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        }
        let _ = ended.lock().unwrap().send(());
    });
    let deployment = Deployment::start(&[engine], &["--workers=1"]);
    assert_eq!(
        complete(&agent(), &deployment.url("/v1/completions"), 1)
            .unwrap()
            .0,
        200
    );
    assert!(has_ended.recv_timeout(Duration::from_secs(60)).is_ok());
    assert_eq!(deployment.workers().len(), 1);
}

#[test]
fn an_engine_that_broke_off_is_not_asked_again_though_it_is_the_least_loaded() {
    let fails = odd_engine(|connection| drop(read_head(connection)));
    let good = MockEngine::start("0.02");
    let deployment = Deployment::start(&[fails, good.address], &[]);
    let table = Table::open(deployment.table_path()).unwrap();
    table.drain(0).unwrap();
    let streams: Vec<_> = (0..3).map(|_| deployment.stream(1_000_000)).collect();
    table.up(0).unwrap();
    let request = "GET /stats HTTP/1.1\r\nHost: t\r\n\r\n";
    let mut stream = Stream::send(deployment.address, request);
    assert_eq!(stream.status(), 200);
    let from = format!("x-headcount-engine: http://{}", good.address);
    assert!(
        stream.head().to_lowercase().contains(&from),
        "{}",
        stream.head()
    );
    drop(streams);
    deployment.settles();
}

#[test]
fn want_of_descriptors_is_no_fault_of_an_engine() {
    // Each request needs a connection of its own.
    let engine = odd_engine(|connection| {
        if !read_head(connection).is_empty() {
            let head = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            say(connection, head);
        }
    });
    let deployment = Deployment::start(&[engine], &["--workers=1"]);
    let request = "POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 0\r\n\r\n";
    let mut client = Stream::send(deployment.address, request);
    assert_eq!(client.status(), 200);
    let worker = deployment.workers()[0];
    // The process keeps its open descriptors, and no lower number is free.
    let before = descriptors(worker, 3);
    client.again(request);
    assert_eq!(client.status(), 503);
    assert_eq!(deployment.state(engine), Some(EngineState::Active));
    deployment.settles();
    descriptors(worker, before);
    let length = client.head().to_lowercase();
    let length = length.split("content-length: ").nth(1).unwrap();
    let length = length.lines().next().unwrap().parse().unwrap();
    let said = client.bytes(length);
    assert!(String::from_utf8(said).unwrap().contains("no_connection"));
    client.again(request);
    assert_eq!(client.status(), 200);
    deployment.settles();
}

/// Limits the descriptors of a process, which sees no number from `limit` on. Returns the limit before.
pub(crate) fn descriptors(pid: i32, limit: u64) -> u64 {
    let mut before = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: writes the limits only.
    let read =
        unsafe { libc::prlimit(pid, libc::RLIMIT_NOFILE, std::ptr::null(), &raw mut before) };
    let new = libc::rlimit {
        rlim_cur: limit,
        ..before
    };
    // SAFETY: reads the new limits only; the process is one that the test has started.
    let set = unsafe {
        libc::prlimit(
            pid,
            libc::RLIMIT_NOFILE,
            &raw const new,
            std::ptr::null_mut(),
        )
    };
    assert_eq!((read, set), (0, 0));
    before.rlim_cur
}

/// An engine that breaks off its first request before it answers, and serves all later ones.
fn fails_once(seen: &Arc<AtomicU32>) -> std::net::SocketAddr {
    let seen = Arc::clone(seen);
    odd_engine(move |connection| {
        while !read_head(connection).is_empty() {
            if seen.fetch_add(1, Relaxed) == 0 {
                return;
            }
            say(connection, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        }
    })
}

#[test]
fn only_requests_that_may_be_repeated_are_when_an_engine_breaks_off() {
    for (options, method, statuses) in [
        (&[][..], "GET", [200, 200]),
        (&[], "POST", [502, 200]),
        (&["--repeat-posts"], "POST", [200, 200]),
    ] {
        // Both share the count, so whichever is chosen first fails.
        let seen = Arc::default();
        let deployment = Deployment::start(&[fails_once(&seen), fails_once(&seen)], options);
        for status in statuses {
            let request = format!("{method} /x HTTP/1.1\r\nHost: t\r\nContent-Length: 0\r\n\r\n");
            assert_eq!(
                Stream::send(deployment.address, &request).status(),
                status,
                "{method}"
            );
        }
        deployment.settles();
    }
}

#[test]
fn an_engine_that_closes_idle_connections_loses_no_request() {
    // Answers once, and closes the connection without notice when it is told to.
    let (told, closes) = mpsc::channel::<()>();
    let (closed, has_closed) = mpsc::channel::<()>();
    let closes = Mutex::new((closes, closed));
    let engine = odd_engine(move |connection| {
        if !read_head(connection).is_empty() {
            say(connection, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
            let (closes, closed) = &*closes.lock().unwrap();
            let _ = closes.recv();
            let _ = connection.get_ref().shutdown(Shutdown::Both);
            let _ = closed.send(());
        }
    });
    let deployment = Deployment::start(&[engine], &["--workers=1"]);
    let worker = deployment.workers()[0];
    let request = "POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 0\r\n\r\n";
    let mut client = Stream::send(deployment.address, request);
    for _ in 0..30 {
        assert_eq!(client.status(), 200);
        // When the worker wakes, the next request is there, and the connection that it would go out
        // on is closed; it learns of both in this order.
        stop(worker);
        client.again(request);
        told.send(()).unwrap();
        has_closed.recv().unwrap();
        signal(worker, libc::SIGCONT);
    }
    assert_eq!(client.status(), 200);
    drop(told);
    deployment.settles();
}

#[test]
fn a_body_that_could_not_be_delivered_is_delivered_elsewhere_whole() {
    let good = MockEngine::start("0.001");
    let dead = MockEngine::start("0.001").kill();
    let deployment = Deployment::start(&[dead, good.address], &[]);
    // Larger than the buffers, so most of it is unread when the first engine refuses.
    let body = format!(
        "{{\"max_tokens\":3,\"prompt\":\"{}\"}}",
        "x".repeat(3 << 20)
    );
    for _ in 0..4 {
        let mut answer = agent()
            .post(deployment.url("/v1/completions"))
            .send(&body)
            .unwrap();
        assert_eq!(answer.status(), 200);
        let text = answer.body_mut().read_to_string().unwrap();
        assert_eq!(text.matches(" token").count(), 3);
    }
    assert_eq!(deployment.state(dead), Some(EngineState::Down));
    deployment.settles();
}

#[test]
fn a_row_that_is_no_address_is_marked_down_and_said_once() {
    let engines = MockEngine::several(1, "0.002");
    let deployment = Deployment::start_with_log(&addresses(&engines));
    let table = Table::open(deployment.table_path()).unwrap();
    let added = table.add(headcount::Engine::named("gpu-7")).unwrap();
    let is_down = || table.view().engine(added).unwrap().state == EngineState::Down;
    let ask = || {
        complete(&agent(), &deployment.url("/v1/completions"), 1)
            .unwrap()
            .0
    };
    eventually("the engine's state down", || {
        assert_eq!(ask(), 200, "the other one answers");
        is_down()
    });
    let why = "gpu-7 is down: \"gpu-7\" does not start with http://; an engine is http://HOST:PORT";
    eventually("a log line about the engine", || {
        deployment.log().contains(why)
    });
    for _ in 0..20 {
        assert_eq!(ask(), 200);
    }
    assert_eq!(deployment.log().matches("gpu-7 is down").count(), 1);
    let stays =
        "gpu-7: active, now down; its name is not an address, so it stays down until it is removed";
    eventually("a log line about its fate", || {
        deployment.log().contains(stays)
    });
    assert!(is_down(), "probes do not bring it up");
}
