//! Engines for the tests: mock engines of `headcount-server`, and some that misbehave.

use crate::deployment::{agent, free_address, program, start};
use headcount_tests::eventually;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command};
use std::sync::Arc;
use std::thread;

/// A mock engine in a process of its own. Killed when dropped.
#[derive(Debug)]
pub(crate) struct MockEngine {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl MockEngine {
    /// Starts an engine that decodes a token every `step` seconds.
    pub(crate) fn start(step: &str) -> Self {
        Self::start_at(&free_address(), step)
    }

    /// The same at an address of the test's choice.
    pub(crate) fn start_at(address: &str, step: &str) -> Self {
        let mut command = Command::new(program());
        command.args(["--mock-engine", address, "--mock-step", step]);
        command.args(["--mock-step-per-request", "0"]);
        let (child, address) = start(&mut command);
        Self { child, address }
    }

    /// Starts several engines.
    pub(crate) fn several(count: usize, step: &str) -> Vec<Self> {
        (0..count).map(|_| Self::start(step)).collect()
    }

    /// Kills the engine. Returns its address, at which no process listens any more.
    pub(crate) fn kill(self) -> SocketAddr {
        self.address
    }

    /// Starts another engine at the address of one that was killed.
    pub(crate) fn again(address: SocketAddr, step: &str) -> Self {
        Self::start_at(&address.to_string(), step)
    }

    /// Returns a counter of the engine: running, peak, served, aborted.
    pub(crate) fn stat(&self, name: &str) -> u64 {
        let url = format!("http://{}/stats", self.address);
        let mut answer = agent().get(url).call().unwrap();
        let stats = answer.body_mut().read_to_string().unwrap();
        let stats: serde_json::Value = serde_json::from_str(&stats).unwrap();
        stats[name].as_u64().unwrap()
    }

    /// Waits until the engine runs so many requests: it learns with a delay of requests that are
    /// sent or cancelled.
    pub(crate) fn comes_to_run(&self, count: u64) {
        eventually("as many requests at the engine", || {
            self.stat("running") == count
        });
    }

    /// Waits until the engine has learned that all its clients have left.
    pub(crate) fn becomes_idle(&self) {
        self.comes_to_run(0);
    }
}

impl Drop for MockEngine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn addresses(engines: &[MockEngine]) -> Vec<SocketAddr> {
    engines.iter().map(|engine| engine.address).collect()
}

/// Starts an engine in this process that treats each connection as the closure says.
pub(crate) fn odd_engine(
    act: impl Fn(&mut BufReader<TcpStream>) + Send + Sync + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let act = Arc::new(act);
    // It ends with the test.
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let act = Arc::clone(&act);
            thread::spawn(move || act(&mut BufReader::new(connection)));
        }
    });
    address
}

/// Starts an engine that answers each request with these bytes, and closes the connection.
pub(crate) fn engine_that_says(answer: impl Into<String>) -> SocketAddr {
    let answer = answer.into();
    odd_engine(move |connection| {
        if !read_head(connection).is_empty() {
            say(connection, &answer);
        }
    })
}

/// Starts an engine that answers with the request that it got, head and body.
pub(crate) fn mirror() -> SocketAddr {
    odd_engine(|connection| {
        loop {
            let mut got = read_request(connection);
            if got.is_empty() {
                return;
            }
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", got.len());
            got.insert_str(0, &head);
            say(connection, &got);
        }
    })
}

/// Reads a request, head and body, as text. Empty if there is none.
pub(crate) fn read_request(connection: &mut BufReader<TcpStream>) -> String {
    let mut got = read_head(connection);
    let head = got.to_lowercase();
    if head.contains("transfer-encoding: chunked") {
        while !got.ends_with("0\r\n\r\n") {
            if !matches!(connection.read_line(&mut got), Ok(1..)) {
                return String::new();
            }
        }
    } else if let Some((_, length)) = head.split_once("content-length: ") {
        let length = length.lines().next().unwrap().parse().unwrap();
        let mut body = vec![0; length];
        if connection.read_exact(&mut body).is_err() {
            return String::new();
        }
        got.push_str(&String::from_utf8_lossy(&body));
    }
    got
}

/// Reads the head of a request, as text. Empty if there is none.
pub(crate) fn read_head(connection: &mut BufReader<TcpStream>) -> String {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if !matches!(connection.read_line(&mut head), Ok(1..)) {
            return String::new();
        }
    }
    head
}

/// Writes to a connection, whose other end may be gone.
pub(crate) fn say(connection: &mut BufReader<TcpStream>, text: &str) -> bool {
    connection.get_mut().write_all(text.as_bytes()).is_ok()
}
