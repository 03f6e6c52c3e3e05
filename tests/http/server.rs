//! A server with an access log, whose streams the test reads.

use crate::deployment::{program, signal};
use headcount_tests::eventually;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
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
        let mut process = Command::new(program())
            .args(["--engine", &format!("http://{engine}")])
            .args(["--listen", "127.0.0.1:0", "--access-log", "--workers=1"])
            .args(options)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut errors = BufReader::new(process.stderr.take().unwrap());
        let mut server = Self {
            address: engine,
            output: process.stdout.take().map(BufReader::new),
            errors: None,
            process,
        };
        let line = line_of(&mut errors);
        let address = line
            .trim()
            .strip_prefix("headcount-server: listening on http://");
        let address = address.unwrap_or_else(|| panic!("{line:?}"));
        server.address = address.parse().unwrap();
        let line = line_of(&mut errors);
        assert!(line.starts_with("headcount-server: engine "), "{line}");
        server.errors = Some(errors);
        server
    }

    pub(crate) fn pid(&self) -> i32 {
        self.process.id() as i32
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The next line of the access log.
    pub(crate) fn logged(&mut self) -> serde_json::Value {
        let line = line_of(self.output.as_mut().unwrap());
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// Ends the server in order.
    pub(crate) fn ends(&mut self) -> ExitStatus {
        signal(self.pid(), libc::SIGTERM);
        self.ended()
    }

    /// Waits for the end of the server.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let mut ended = None;
        eventually("the end of the server", || {
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

/// The next line of a pipe, which comes soon.
fn line_of<P: Read + AsRawFd>(pipe: &mut BufReader<P>) -> String {
    if pipe.buffer().is_empty() {
        let mut wanted = libc::pollfd {
            fd: pipe.get_ref().as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: there is one of them, which outlives the call.
        let ready = unsafe { libc::poll(&raw mut wanted, 1, 60_000) };
        assert_eq!(ready, 1, "a line within a minute");
    }
    let mut line = String::new();
    pipe.read_line(&mut line).unwrap();
    line
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
