//! A reader of the output that stops reading or is gone stops no process.

use crate::deployment::{Deployment, agent, complete, signal};
use crate::engine::{MockEngine, addresses};
use crate::server::{Server, lines_of, next};
use headcount_tests::eventually;
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Read, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;
use std::thread;
use std::time::Duration;

/// Answers requests with these numbers, whose lines have a kilobyte each.
fn answers(server: &Server, numbers: Range<u64>) {
    let client = agent();
    for number in numbers {
        let long = "x".repeat(1000);
        let url = format!("http://{}/live?{number}&{long}", server.address);
        assert_eq!(client.get(&url).call().unwrap().status(), 200);
    }
}

/// Returns how many lines of standard output are reported as left out.
fn left_out(errors: &[String]) -> u64 {
    let said = errors.iter().filter_map(|line| {
        let (_, line) = line.split_once(": standard output: ")?;
        let line = line.strip_prefix("the last ").unwrap_or(line);
        let (number, rest) = line.split_once(' ')?;
        assert!(
            rest.starts_with("lines were left out") || rest.starts_with("line was left out"),
            "{rest}"
        );
        Some(number.parse::<u64>().unwrap())
    });
    said.sum()
}

/// Returns the numbers of the requests in the log, whose lines are whole.
fn numbers(output: &[String]) -> Vec<u64> {
    let number = |line: &String| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["status"], 200);
        let target = line["target"].as_str().unwrap();
        let number = target.strip_prefix("/live?").unwrap().split('&').next();
        number.unwrap().parse().unwrap()
    };
    output.iter().map(number).collect()
}

/// More lines than a pipe and a worker keep.
const MANY: u64 = 2500;

#[test]
fn an_access_log_that_is_not_read_stops_no_worker_and_says_what_is_missing() {
    let engine = MockEngine::start("0.001");
    let mut server = Server::start(engine.address, &[]);
    answers(&server, 0..MANY);
    // It is read again.
    let errors = lines_of(server.errors.take().unwrap());
    let output = lines_of(server.output.take().unwrap());
    let missing = left_out(&[next(&errors)]);
    assert!(missing > 0);
    answers(&server, MANY..MANY + 100);
    assert!(server.ends().success());
    let numbers = numbers(&output.iter().collect::<Vec<_>>());
    let kept = MANY - missing;
    assert!(kept > 1000, "what it keeps is written: {kept}");
    assert!(
        numbers
            .iter()
            .copied()
            .eq((0..kept).chain(MANY..MANY + 100)),
        "{missing} are missing: {numbers:?}"
    );
    assert_eq!(left_out(&errors.iter().collect::<Vec<_>>()), 0);
}

#[test]
fn the_end_does_not_wait_for_a_log_that_is_not_read_and_says_what_is_missing() {
    let engine = MockEngine::start("0.001");
    let mut server = Server::start(engine.address, &[]);
    answers(&server, 0..500);
    let errors = lines_of(server.errors.take().unwrap());
    assert!(server.ends().success());
    let output: Vec<_> = lines_of(server.output.take().unwrap()).iter().collect();
    let kept = 500 - left_out(&errors.iter().collect::<Vec<_>>());
    assert!(kept < 500, "the pipe is full");
    assert!(numbers(&output).into_iter().eq(0..kept), "{kept}");
}

#[test]
fn the_end_loses_no_line_of_a_log_that_is_read_slowly() {
    let engine = MockEngine::start("0.001");
    let mut server = Server::start(engine.address, &[]);
    answers(&server, 0..500);
    let output = server.output.take().unwrap();
    let reader = thread::spawn(move || {
        let slowly = |line: Result<String, _>| {
            thread::sleep(Duration::from_millis(2));
            line.unwrap()
        };
        output.lines().map(slowly).collect::<Vec<_>>()
    });
    let errors = lines_of(server.errors.take().unwrap());
    assert!(server.ends().success());
    let output = reader.join().unwrap();
    let errors: Vec<_> = errors.iter().collect();
    assert!(numbers(&output).into_iter().eq(0..500), "{errors:?}");
}

#[test]
fn streams_whose_readers_are_gone_stop_no_process() {
    let engine = MockEngine::start("0.001");
    let mut server = Server::start(engine.address, &[]);
    drop(server.output.take());
    let errors = lines_of(server.errors.take().unwrap());
    answers(&server, 0..10);
    let line = next(&errors);
    assert!(
        line.contains(": standard output: Broken pipe") && line.contains("its lines are left out"),
        "{line}"
    );
    answers(&server, 0..10);
    assert!(server.ends().success());
    let rest: Vec<_> = errors.iter().collect();
    assert!(
        rest.iter().all(|line| !line.contains("standard output")),
        "{rest:?}"
    );

    let mut server = Server::start(engine.address, &[]);
    drop((server.output.take(), server.errors.take()));
    answers(&server, 0..10);
    assert!(server.ends().success());
}

/// Returns a full pipe, and what is in it.
fn full_pipe(waits: bool) -> (PipeReader, PipeWriter, usize) {
    let (reader, writer) = std::io::pipe().unwrap();
    let set = |flags: i32| {
        // SAFETY: changes flags of a descriptor that is open.
        let result = unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_SETFL, flags) };
        assert_eq!(result, 0);
    };
    set(libc::O_NONBLOCK);
    let mut length = 0;
    while (&writer).write(b"\n").is_ok() {
        length += 1;
    }
    if waits {
        set(0);
    }
    (reader, writer, length)
}

#[test]
fn a_full_standard_error_stops_no_parent_and_loses_no_line() {
    for waits in [true, false] {
        let (mut reader, writer, length) = full_pipe(waits);
        let engines = MockEngine::several(1, "0.002");
        let options = ["--workers=1"];
        let mut deployment = Deployment::start_logging(&addresses(&engines), &options, |command| {
            command.stderr(writer);
        });
        let mut workers = Vec::new();
        for _ in 0..3 {
            let worker = deployment.workers()[0];
            workers.push(worker);
            signal(worker, libc::SIGKILL);
            eventually("another worker", || {
                deployment.workers().first().is_some_and(|w| *w != worker)
            });
        }
        reader.read_exact(&mut vec![0; length]).unwrap();
        let said = lines_of(BufReader::new(reader));
        signal(deployment.pid(), libc::SIGTERM);
        eventually("the end of the server", || deployment.ended().is_some());
        let said: Vec<_> = said.iter().collect();
        let killed: Vec<_> = (workers.iter())
            .map(|worker| {
                format!("headcount-server: worker {worker}: signal: 9 (SIGKILL); starting another")
            })
            .collect();
        assert_eq!(said[..3], killed, "{said:?}");
        assert!(
            said[3].starts_with("headcount-server: SIGTERM: finishing 0 requests"),
            "{said:?}"
        );
        assert_eq!(said.len(), 4, "{said:?}");
    }
}

#[test]
fn lines_of_the_access_log_are_in_one_piece_whatever_is_in_a_request() {
    let engine = MockEngine::start("0.001");
    let mut server = Server::start(engine.address, &[]);
    let output = server.output.as_mut().unwrap();
    let mut line = String::new();
    for (method, id) in [
        ("GET".to_owned(), "\u{fc}\"\\".repeat(20_000)),
        ("M".repeat(100_000), "\"".repeat(50_000)),
    ] {
        let mut client = TcpStream::connect(&server.address).unwrap();
        let target = format!("/v1/models?{}", "%22".repeat(15_000));
        let request = format!(
            "{method} {target} HTTP/1.1\r\nHost: t\r\nConnection: close\r\nX-Request-Id: {id}\r\n\r\n"
        );
        client.write_all(request.as_bytes()).unwrap();
        client.read_to_end(&mut Vec::new()).unwrap();
        line.clear();
        output.read_line(&mut line).unwrap();
        assert!(line.len() <= libc::PIPE_BUF, "{} bytes", line.len());
        let logged: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert!(method.starts_with(logged["method"].as_str().unwrap()));
        assert!(logged["id"].as_str().unwrap().len() > 100);
        assert!(target.starts_with(logged["target"].as_str().unwrap()));
    }
}

#[test]
fn a_supervisor_that_does_not_read_stops_no_parent_and_hears_of_the_readiness_later() {
    let directory = headcount_tests::directory();
    let path = directory.path().join("notify");
    let supervisor = UnixDatagram::bind(&path).unwrap();
    let patience = Some(Duration::from_secs(60));
    supervisor.set_read_timeout(patience).unwrap();
    let other = UnixDatagram::unbound().unwrap();
    other.set_nonblocking(true).unwrap();
    let mut queued = 0;
    while other.send_to(b"another", &path).is_ok() {
        queued += 1;
    }
    let engines = MockEngine::several(1, "0.002");
    let mut deployment = Deployment::start_logging(&addresses(&engines), &[], |command| {
        command.env("NOTIFY_SOCKET", &path);
    });
    let post = || {
        complete(&agent(), &deployment.url("/v1/completions"), 1)
            .unwrap()
            .0
    };
    assert_eq!(post(), 200);
    // The parent still does its work: it starts another worker.
    let worker = deployment.workers()[0];
    signal(worker, libc::SIGKILL);
    eventually("another worker", || {
        let workers = deployment.workers();
        workers.len() == 4 && !workers.contains(&worker)
    });
    let mut text = [0; 64];
    for _ in 0..queued {
        assert_eq!(supervisor.recv(&mut text).unwrap(), 7);
    }
    let length = supervisor.recv(&mut text).unwrap();
    assert_eq!(&text[..length], b"READY=1");
    while other.send_to(b"another", &path).is_ok() {}
    signal(deployment.pid(), libc::SIGTERM);
    eventually("the end of the server", || deployment.ended().is_some());
}
