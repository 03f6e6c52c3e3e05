//! The example `api_server`, as its readers run it: real workers, real sockets, real signals.

use headcount::Table;
use headcount_tests::{built_example, directory, eventually, in_flight};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

const ENGINES: usize = 4;
const WORKERS: usize = 4;

/// The example in front of its own mock engines. Killed when dropped.
struct Example {
    parent: Child,
    address: SocketAddr,
    /// Opened for reading only, so this test reaps nothing.
    table: Table,
    _directory: TempDir,
}

impl Example {
    fn start(options: &[&str]) -> Self {
        let directory = directory();
        let path = directory.path().join("table");
        let mut parent = Command::new(built_example("headcount-examples", "api_server"))
            .args(["--listen", "127.0.0.1:0", "--table"])
            .arg(&path)
            .args(options)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(parent.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on http://");
        let example = Self {
            address: address.unwrap_or_else(|| panic!("{line}")).parse().unwrap(),
            table: Table::open_read_only(path).unwrap(),
            parent,
            _directory: directory,
        };
        example.wait_for_workers();
        example
    }

    /// Living workers: pid and requests in flight.
    fn workers(&self) -> Vec<(u32, u64)> {
        let frontends = self.table.view().frontends.into_iter();
        (frontends.filter(|f| f.alive).map(|f| (f.pid, f.in_flight))).collect()
    }

    fn wait_for_workers(&self) {
        eventually("all workers", || self.workers().len() == WORKERS);
    }

    fn in_flight(&self) -> Vec<u32> {
        in_flight(&self.table)
    }

    /// Asks for so many tokens, on a connection of its own, and reads the head of the answer.
    fn ask(&self, tokens: u64) -> Answer {
        let mut connection = TcpStream::connect(self.address).unwrap();
        let minute = Duration::from_secs(60);
        connection.set_read_timeout(Some(minute)).unwrap();
        let body = format!("{{\"max_tokens\":{tokens}}}");
        let length = body.len();
        let request = format!(
            "POST /v1/completions HTTP/1.1\r\nHost: test\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        connection.write_all(request.as_bytes()).unwrap();
        let mut connection = BufReader::new(connection);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(connection.read_line(&mut head).unwrap() > 0, "{head}");
        }
        Answer { head, connection }
    }

    /// Streams that do not end by themselves.
    fn streams(&self, count: usize) -> Vec<Answer> {
        let streams: Vec<_> = (0..count).map(|_| self.ask(1_000_000)).collect();
        assert!(streams.iter().all(|stream| stream.status() == "200"));
        streams
    }

    /// Opens streams, one on each engine at a time, until several workers have some. Returns how many are
    /// on each engine.
    fn streams_over_workers(&self, streams: &mut Vec<Answer>) -> u32 {
        eventually("requests at several workers", || {
            streams.extend(self.streams(ENGINES));
            self.workers().iter().filter(|(_, some)| *some > 0).count() > 1
        });
        (streams.len() / ENGINES) as u32
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.parent.kill();
        let _ = self.parent.wait();
    }
}

struct Answer {
    head: String,
    connection: BufReader<TcpStream>,
}

impl Answer {
    fn status(&self) -> &str {
        self.head.split(' ').nth(1).unwrap()
    }
}

fn signal(pid: u32, signal: i32) {
    // SAFETY: changes nothing in this process; the process is one that the test has started.
    let result = unsafe { libc::kill(pid.cast_signed(), signal) };
    assert_eq!(result, 0, "signal {signal} to {pid}");
}

#[test]
fn requests_of_several_workers_split_evenly_and_those_of_a_killed_worker_come_back() {
    let example = Example::start(&["--max-in-flight", "1000"]);
    let mut streams = Vec::new();
    let each = example.streams_over_workers(&mut streams);
    assert_eq!(example.in_flight(), [each; ENGINES]);

    let workers = example.workers();
    let (pid, lost) = *workers.iter().max_by_key(|(_, some)| *some).unwrap();
    let rest = u64::from(each) * ENGINES as u64 - lost;
    assert!(lost > 0 && rest > 0, "{workers:?}");
    signal(pid, libc::SIGKILL);
    eventually("the return of what the killed worker had", || {
        example
            .in_flight()
            .iter()
            .map(|n| u64::from(*n))
            .sum::<u64>()
            == rest
    });
    example.wait_for_workers();
    assert!(example.workers().iter().all(|(alive, _)| *alive != pid));
    // New streams fill the gaps first, so all engines have the same again.
    streams.extend(example.streams(lost as usize));
    assert_eq!(example.in_flight(), [each; ENGINES]);
}

#[test]
fn clients_that_disconnect_are_no_longer_counted() {
    let example = Example::start(&[]);
    let streams = example.streams(8);
    assert_eq!(example.in_flight(), [2; ENGINES]);
    drop(streams);
    eventually("counts of zero", || example.in_flight() == [0; ENGINES]);
}

#[test]
fn a_request_above_all_caps_is_told_to_try_again() {
    let example = Example::start(&["--max-in-flight", "2"]);
    let streams = example.streams(2 * ENGINES);
    let refused = example.ask(1);
    assert_eq!(refused.status(), "503");
    let head = refused.head.to_lowercase();
    assert!(head.contains("\r\nretry-after: 1\r\n"), "{head}");
    assert_eq!(example.in_flight(), [2; ENGINES]);
    drop(streams);
    eventually("room", || example.ask(1).status() == "200");
}

#[test]
fn sigterm_ends_it_when_its_answers_are_complete() {
    let mut example = Example::start(&[]);
    let mut stream = example.ask(20);
    assert_eq!(stream.status(), "200");
    signal(example.parent.id(), libc::SIGTERM);
    eventually("the end of listening", || {
        TcpStream::connect(example.address).is_err()
    });
    // The last chunk has no bytes. Behind it, the connection ends.
    let mut rest = String::new();
    stream.connection.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("token 19\n") && rest.ends_with("\r\n0\r\n\r\n"));
    assert!(example.parent.wait().unwrap().success());
    assert_eq!(example.in_flight(), [0; ENGINES]);
}

#[test]
fn workers_end_with_their_parent() {
    let mut example = Example::start(&[]);
    example.parent.kill().unwrap();
    example.parent.wait().unwrap();
    eventually("the end of the workers", || example.workers().is_empty());
}

#[test]
fn workers_end_with_a_parent_that_dies_while_they_start() {
    for _ in 0..10 {
        let directory = directory();
        let mut parent = Command::new(built_example("headcount-examples", "api_server"))
            .args(["--listen", "127.0.0.1:0", "--table"])
            .arg(directory.path().join("table"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(parent.stdout.take().unwrap());
        output.read_line(&mut String::new()).unwrap();
        parent.kill().unwrap();
        parent.wait().unwrap();
        // Workers have it from their parent, so it ends with the last of them.
        let end = thread::spawn(move || output.read_to_end(&mut Vec::new()).unwrap());
        eventually("the end of the workers", || end.is_finished());
    }
}
