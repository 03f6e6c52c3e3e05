//! A server with an access log, whose streams are read by the test.

use crate::deployment::{PROGRAM, signal};
use headcount_tests::eventually;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

/// A server with one worker and an access log, whose streams are pipes. Ended when dropped.
pub(crate) struct Server {
    process: Child,
    pub(crate) address: SocketAddr,
    pub(crate) output: Option<BufReader<ChildStdout>>,
    pub(crate) errors: Option<BufReader<ChildStderr>>,
}

impl Server {
    pub(crate) fn start(engine: SocketAddr, options: &[&str]) -> Self {
        let mut process = Command::new(PROGRAM)
            .args(["--engine", &format!("http://{engine}")])
            .args(["--listen", "127.0.0.1:0", "--access-log", "--workers=1"])
            .args(options)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut errors = BufReader::new(process.stderr.take().unwrap());
        let mut line = String::new();
        errors.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on http://");
        let address = address.unwrap_or_else(|| panic!("{line:?}"));
        let address = address.parse().unwrap();
        line.clear();
        errors.read_line(&mut line).unwrap();
        assert!(line.starts_with("engine "), "{line}");
        Self {
            address,
            output: process.stdout.take().map(BufReader::new),
            errors: Some(errors),
            process,
        }
    }

    pub(crate) fn pid(&self) -> i32 {
        self.process.id() as i32
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The next line of the access log.
    pub(crate) fn logged(&mut self) -> serde_json::Value {
        let mut line = String::new();
        let output = self.output.as_mut().unwrap();
        output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// Ends it in order.
    pub(crate) fn ends(&mut self) -> ExitStatus {
        signal(self.pid(), libc::SIGTERM);
        self.ended()
    }

    /// Waits for its end.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let mut ended = None;
        eventually("its end", || {
            ended = self.process.try_wait().unwrap();
            ended.is_some()
        });
        ended.unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Ok(None) = self.process.try_wait() {
            signal(self.pid(), libc::SIGTERM);
            let _ = self.process.wait();
        }
    }
}

/// The lines of a stream, read by a thread of its own up to the stream's end.
pub(crate) fn lines_of(stream: impl BufRead + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    thread::spawn(move || {
        for line in stream.lines() {
            sender.send(line.unwrap()).unwrap();
        }
    });
    lines
}

/// The next line, which comes soon.
pub(crate) fn next(lines: &Receiver<String>) -> String {
    lines.recv_timeout(Duration::from_secs(60)).unwrap()
}
