//! The processes of a measurement: the engines, and the front end before them.

use super::{ENGINES, Front, PATIENCE, Programs, WORKERS, failed, haproxy, nginx};
use crate::step::Failed;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The engines, and the front end before them. Dropping it ends them.
#[derive(Debug)]
pub(super) struct Stage {
    front: Option<Running>,
    address: Option<SocketAddr>,
    engines: Vec<(Running, SocketAddr)>,
    directory: PathBuf,
}

impl Stage {
    pub(super) fn set(
        front: Front,
        programs: &Programs,
        cap: usize,
        step: &str,
    ) -> Result<Self, Failed> {
        Self::set_with_queue(front, programs, cap, step, 0)
    }

    /// Sets it up so that at most so many requests wait, in the front end. HAProxy bounds them by its connections.
    pub(super) fn set_with_queue(
        front: Front,
        programs: &Programs,
        cap: usize,
        step: &str,
        queue: usize,
    ) -> Result<Self, Failed> {
        let mut engines = Vec::new();
        for _ in 0..ENGINES {
            let mut command = Command::new(server());
            command.args(["--mock-engine", "127.0.0.1:0", "--mock-step", step]);
            command.args(["--mock-step-per-request", "0"]);
            engines.push(Running::start(command)?);
        }
        let name = format!("headcount-http-bench-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).map_err(|error| failed("making a directory", &error))?;
        let mut stage = Self {
            front: None,
            address: None,
            engines,
            directory,
        };
        let engines: Vec<_> = stage.engines.iter().map(|(_, engine)| *engine).collect();
        let directory = &stage.directory;
        let started = match (front, &programs.haproxy) {
            (Front::None, _) => return Ok(stage),
            (Front::Headcount, _) => headcount(&engines, cap, queue)?,
            (Front::Nginx, _) => nginx::start(&programs.nginx, directory, &engines, cap)?,
            (Front::Haproxy, Some(haproxy)) => haproxy::start(haproxy, directory, &engines, cap)?,
            (Front::Haproxy, None) => return Err(Failed("there is no HAProxy here".to_owned())),
        };
        (stage.front, stage.address) = (Some(started.0), Some(started.1));
        // The workers of HAProxy are threads.
        let workers = WORKERS * usize::from(front != Front::Haproxy);
        wait_for("the workers", || {
            Ok(stage.workers()?.len() == workers && stage.ask("{\"max_tokens\":0}").is_ok())
        })?;
        Ok(stage)
    }

    /// Runs the load, and returns its report.
    pub(super) fn load(&self, options: &[&str]) -> Result<Value, Failed> {
        let mut command = Command::new(example("http_load"));
        command.arg("--json").args(options);
        let addresses = match self.address {
            Some(front) => vec![front],
            None => self.engines.iter().map(|(_, engine)| *engine).collect(),
        };
        for address in addresses {
            command.args(["--url", &format!("http://{address}/v1/completions")]);
        }
        let output = command.stderr(Stdio::inherit()).output();
        let output = output.map_err(|error| failed("starting the load", &error))?;
        serde_json::from_slice(&output.stdout).map_err(|error| failed("reading the load", &error))
    }

    /// Starts so many streams at once. Returns how many are admitted, and the streams.
    pub(super) fn admitted(&self, asked: usize) -> Result<(usize, Vec<TcpStream>), Failed> {
        let mut held = Vec::new();
        for _ in 0..asked {
            let (status, stream) = self.ask("{\"max_tokens\":100000000,\"stream\":true}")?;
            if status == 200 {
                held.push(stream);
            }
        }
        Ok((held.len(), held))
    }

    /// Sends one request, and returns the status of the answer and the connection.
    fn ask(&self, body: &str) -> Result<(u16, TcpStream), Failed> {
        let address = self
            .address
            .ok_or_else(|| Failed("there is no front end".to_owned()))?;
        exchange(address, "POST", "/v1/completions", body)
            .map(|(status, stream)| (status, stream.into_inner()))
            .map_err(|error| failed("asking the front end", &error))
    }

    /// Connects to the front end.
    pub(super) fn connect(&self) -> Result<TcpStream, Failed> {
        let address = self
            .address
            .ok_or_else(|| Failed("there is no front end".to_owned()))?;
        TcpStream::connect(address).map_err(|error| failed("connecting to the front end", &error))
    }

    /// Sends one request on a connection, and returns the status of the answer when all of it is there.
    pub(super) fn ask_on(stream: TcpStream, body: &str) -> std::io::Result<u16> {
        let to = stream.peer_addr()?;
        let (status, mut answer) = exchange_on(stream, to, "POST", "/v1/completions", body)?;
        answer.read_to_string(&mut String::new())?;
        Ok(status)
    }

    pub(super) fn served(&self) -> Result<Vec<u64>, Failed> {
        self.stats("served")
    }

    /// Returns a figure of each engine.
    pub(super) fn stats(&self, name: &str) -> Result<Vec<u64>, Failed> {
        let ask = |engine: SocketAddr| -> std::io::Result<u64> {
            let (_, mut answer) = exchange(engine, "GET", "/stats", "")?;
            let mut text = String::new();
            answer.read_to_string(&mut text)?;
            let body = text.split("\r\n\r\n").last().unwrap_or_default();
            let stats: Value = serde_json::from_str(body)?;
            Ok(stats[name].as_u64().unwrap_or_default())
        };
        let stats = self.engines.iter().map(|(_, engine)| ask(*engine));
        stats
            .collect::<Result<_, _>>()
            .map_err(|error| failed("asking an engine", &error))
    }

    /// All processes of the front end.
    pub(super) fn processes(&self) -> Result<Vec<u32>, Failed> {
        let mut all = self.workers()?;
        all.extend(self.front.as_ref().map(|front| front.0.id()));
        Ok(all)
    }

    /// The worker processes: the children of the one that was started.
    pub(super) fn workers(&self) -> Result<Vec<u32>, Failed> {
        let pid = self.front.as_ref().map_or(0, |front| front.0.id());
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let children = children.map_err(|error| failed("looking for workers", &error))?;
        Ok(children
            .split_whitespace()
            .filter_map(|pid| pid.parse().ok())
            .collect())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.front = None;
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// A process. Dropping it ends it in order.
#[derive(Debug)]
pub(super) struct Running(pub(super) Child);

impl Running {
    /// Starts a program and waits until it says where it listens.
    fn start(mut command: Command) -> Result<(Self, SocketAddr), Failed> {
        let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = child.map_err(|error| failed("starting the example", &error))?;
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            let mut output = BufReader::new(output);
            let read = output.read_line(&mut line);
            read.map_err(|error| failed("reading from the example", &error))?;
            // The rest of its output is dropped: a full pipe must not stop it.
            thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        }
        let address = line.trim().strip_prefix("listening on http://");
        let address = address.and_then(|address| address.parse().ok());
        let running = Self(child);
        match address {
            Some(address) => Ok((running, address)),
            None => Err(Failed(format!("the example says {line:?}"))),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = signal("TERM", self.0.id());
        let start = Instant::now();
        while matches!(self.0.try_wait(), Ok(None)) && start.elapsed() < Duration::from_secs(3) {
            thread::sleep(Duration::from_millis(10));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts `headcount-server` in front of these engines.
fn headcount(
    engines: &[SocketAddr],
    cap: usize,
    queue: usize,
) -> Result<(Running, SocketAddr), Failed> {
    let mut command = Command::new(server());
    command.args(["--listen", "127.0.0.1:0"]);
    command.args(["--max-in-flight", &cap.to_string()]);
    command.args(["--workers", &WORKERS.to_string()]);
    if queue > 0 {
        command.args(["--queue", &queue.to_string()]);
    }
    for engine in engines {
        command.args(["--engine", &format!("http://{engine}")]);
    }
    Running::start(command)
}

/// Sends a request and reads the first line of the answer.
fn exchange(
    to: SocketAddr,
    method: &str,
    path: &str,
    body: &str,
) -> std::io::Result<(u16, BufReader<TcpStream>)> {
    exchange_on(TcpStream::connect(to)?, to, method, path, body)
}

fn exchange_on(
    mut stream: TcpStream,
    to: SocketAddr,
    method: &str,
    path: &str,
    body: &str,
) -> std::io::Result<(u16, BufReader<TcpStream>)> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let length = body.len();
    let head = format!("{method} {path} HTTP/1.1\r\nHost: {to}\r\nConnection: close\r\n");
    stream.write_all(format!("{head}Content-Length: {length}\r\n\r\n{body}").as_bytes())?;
    let mut answer = BufReader::new(stream);
    let mut line = String::new();
    answer.read_line(&mut line)?;
    let status = line
        .split_whitespace()
        .nth(1)
        .and_then(|word| word.parse().ok());
    Ok((status.unwrap_or(0), answer))
}

pub(super) fn wait_for(
    what: &str,
    mut happened: impl FnMut() -> Result<bool, Failed>,
) -> Result<(), Failed> {
    let start = Instant::now();
    while !happened()? {
        if start.elapsed() > PATIENCE {
            return Err(Failed(format!("waited in vain for {what}")));
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

pub(super) fn kill(pid: u32) -> Result<(), Failed> {
    signal("KILL", pid)
}

fn signal(signal: &str, pid: u32) -> Result<(), Failed> {
    let status = Command::new("kill")
        .args(["-s", signal, &pid.to_string()])
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(failed("sending a signal", &status)),
        Err(error) => Err(failed("sending a signal", &error)),
    }
}

fn server() -> PathBuf {
    release().join("headcount-server")
}

fn example(name: &str) -> PathBuf {
    release().join("examples").join(name)
}

fn release() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    PathBuf::from(target).join("release")
}
