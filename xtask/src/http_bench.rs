//! The API servers of the example and nginx, under the same load in front of the same engines.

use crate::step::{Failed, cargo};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const ENGINES: usize = 4;
const WORKERS: usize = 4;
const CONNECTIONS: usize = 64;
/// So far above what the load needs that nobody is refused.
const NO_CAP: usize = 4096;
/// The cap of an engine in the part that kills workers.
const CAP: usize = 8;
/// How long to wait for what has to happen, and how long after that nginx is given a second chance:
/// longer than the 10 s for which it shuns a server by default.
const PATIENCE: Duration = Duration::from_secs(20);
const SECOND_CHANCE: Duration = Duration::from_secs(15);

/// Who stands between clients and engines.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Front {
    /// Nobody: clients take the engines in turn. What load and engines allow at most.
    Nobody,
    Nginx,
    Headcount,
}

impl Front {
    fn name(self) -> &'static str {
        match self {
            Self::Nobody => "none (engines in turn)",
            Self::Nginx => "nginx",
            Self::Headcount => "api_server",
        }
    }
}

/// Runs all of it and prints tables in Markdown.
pub(crate) fn run(rounds: usize, seconds: u64, rate: usize) -> Result<(), Failed> {
    let nginx = nginx()?;
    let build = [
        "build",
        "--release",
        "--example",
        "api_server",
        "--example",
        "http_load",
    ];
    cargo("the examples", &build).run()?;
    println!(
        "\n{ENGINES} mock engines (1 token a request, steps of 1 ms), {WORKERS} workers, medians of {rounds} rounds of {seconds} s.\n\
         {}, `least_conn`, `zone`, `max_conns`, keep-alive to the engines, no buffering.\n",
        version(&nginx)?
    );
    println!(
        "| in front | closed, {CONNECTIONS} connections: requests/s | p50 ms | p99 ms | open, {rate}/s: p50 ms | p99 ms | p99.9 ms | not answered with 200 | served by each engine, open |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let fronts = [Front::Nobody, Front::Nginx, Front::Headcount];
    let mut measured = vec![Vec::new(); fronts.len()];
    for _ in 0..rounds {
        for (front, measured) in fronts.iter().zip(&mut measured) {
            measured.push(load(*front, &nginx, seconds, rate)?);
        }
    }
    for (front, measured) in fronts.iter().zip(&measured) {
        row(*front, measured);
    }
    let full = ENGINES * CAP;
    println!(
        "\nAt the cap: {CAP} on each engine, {full} in all, held by streams; then workers are killed with SIGKILL.\n"
    );
    println!(
        "| in front | admitted of {} before | workers killed | admitted once new workers run and engines are idle | {} s later |",
        full + 8,
        SECOND_CHANCE.as_secs()
    );
    println!("|---|---|---|---|---|");
    for front in [Front::Nginx, Front::Headcount] {
        for killed in [2, WORKERS] {
            capacity(front, &nginx, killed)?;
        }
    }
    Ok(())
}

/// One round of one front.
#[derive(Clone, Debug)]
struct Round {
    closed: Value,
    open: Value,
    served: Vec<u64>,
}

fn load(front: Front, nginx: &Path, seconds: u64, rate: usize) -> Result<Round, Failed> {
    let stage = Stage::set(front, nginx, NO_CAP)?;
    let seconds = seconds.to_string();
    // To open connections, and to fill caches.
    stage.load(&["--seconds", "1"])?;
    let connections = CONNECTIONS.to_string();
    let closed = stage.load(&["--seconds", &seconds, "--connections", &connections])?;
    let before = stage.served()?;
    let open = stage.load(&["--seconds", &seconds, "--rate", &rate.to_string()])?;
    let after = stage.served()?;
    let served = after
        .iter()
        .zip(before)
        .map(|(after, before)| after - before)
        .collect();
    Ok(Round {
        closed,
        open,
        served,
    })
}

fn row(front: Front, rounds: &[Round]) {
    let median = |value: &dyn Fn(&Round) -> f64| {
        let mut values: Vec<f64> = rounds.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let field = |round: &Value, name: &str| round[name].as_f64().unwrap_or(f64::NAN);
    let closed = |name: &'static str| median(&|round| field(&round.closed, name));
    let open = |name: &'static str| median(&|round| field(&round.open, name));
    let bad: u64 = rounds
        .iter()
        .map(|r| not_fine(&r.closed) + not_fine(&r.open))
        .sum();
    let served: Vec<_> = rounds
        .last()
        .iter()
        .flat_map(|r| &r.served)
        .map(u64::to_string)
        .collect();
    println!(
        "| {} | {:.0} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {bad} | {} |",
        front.name(),
        closed("requests_per_second"),
        closed("p50_ms"),
        closed("p99_ms"),
        open("p50_ms"),
        open("p99_ms"),
        open("p999_ms"),
        served.join(" "),
    );
}

/// Requests that were not answered as they should have been.
fn not_fine(result: &Value) -> u64 {
    let statuses = result["statuses"].as_object().into_iter().flatten();
    let other = statuses.filter(|(status, _)| *status != "200");
    let other: u64 = other.filter_map(|(_, count)| count.as_u64()).sum();
    let broken = ["failed", "unanswered"].map(|field| result[field].as_u64().unwrap_or(0));
    other + broken.iter().sum::<u64>()
}

/// What can be admitted before workers are killed that hold requests at the cap, and after.
fn capacity(front: Front, nginx: &Path, killed: usize) -> Result<(), Failed> {
    let stage = Stage::set(front, nginx, CAP)?;
    let asked = ENGINES * CAP + 8;
    // Twice: what had just been admitted is counted once it is over.
    let (before, held) = stage.admitted(asked)?;
    let workers = stage.workers()?;
    for worker in &workers[..killed] {
        kill(*worker)?;
    }
    wait_for("new workers", || {
        let now = stage.workers()?;
        let old = &workers[..killed];
        Ok(now.len() == WORKERS && !now.iter().any(|worker| old.contains(worker)))
    })?;
    drop(held);
    wait_for("the engines to be idle", || {
        let running = stage.stats("running")?;
        Ok(running.iter().sum::<u64>() == 0)
    })?;
    let (after, held) = stage.admitted(asked)?;
    drop(held);
    thread::sleep(SECOND_CHANCE);
    let (later, _held) = stage.admitted(asked)?;
    println!(
        "| {} | {before} | {killed} of {WORKERS} | {after} | {later} |",
        front.name()
    );
    Ok(())
}

/// Engines, and whoever is in front of them. Gone when dropped.
#[derive(Debug)]
struct Stage {
    front: Option<Running>,
    address: Option<SocketAddr>,
    engines: Vec<(Running, SocketAddr)>,
    directory: PathBuf,
}

impl Stage {
    fn set(front: Front, nginx: &Path, cap: usize) -> Result<Self, Failed> {
        let mut engines = Vec::new();
        for _ in 0..ENGINES {
            let mut command = Command::new(example("api_server"));
            command.args(["--mock-engine", "127.0.0.1:0", "--mock-step", "0.001"]);
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
        match front {
            Front::Nobody => {}
            Front::Headcount => {
                let mut command = Command::new(example("api_server"));
                command.args([
                    "--listen",
                    "127.0.0.1:0",
                    "--max-in-flight",
                    &cap.to_string(),
                ]);
                command.args(["--workers", &WORKERS.to_string()]);
                for (_, engine) in &stage.engines {
                    command.args(["--engine", &format!("http://{engine}")]);
                }
                let (running, address) = Running::start(command)?;
                stage.front = Some(running);
                stage.address = Some(address);
            }
            Front::Nginx => stage.start_nginx(nginx, cap)?,
        }
        if front != Front::Nobody {
            wait_for("the workers", || {
                Ok(stage.workers()?.len() == WORKERS && stage.ask("{\"max_tokens\":0}").is_ok())
            })?;
        }
        Ok(stage)
    }

    fn start_nginx(&mut self, nginx: &Path, cap: usize) -> Result<(), Failed> {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
        let address = free.map_err(|error| failed("finding a free port", &error))?;
        let servers = self
            .engines
            .iter()
            .map(|(_, engine)| format!("        server {engine} max_conns={cap};\n"));
        let configuration = format!(
            "daemon off;\nworker_processes {WORKERS};\npid nginx.pid;\nerror_log error.log;\n\
             events {{ worker_connections 8192; }}\n\
             http {{\n    access_log off;\n    client_body_temp_path body;\n    proxy_temp_path proxy;\n\
             fastcgi_temp_path fastcgi;\n    uwsgi_temp_path uwsgi;\n    scgi_temp_path scgi;\n\
             upstream engines {{\n        zone engines 256k;\n        least_conn;\n{}        keepalive 64;\n    }}\n\
             server {{\n        listen {address} backlog=4096;\n        location / {{\n\
             proxy_pass http://engines;\n            proxy_http_version 1.1;\n\
             proxy_set_header Connection \"\";\n            proxy_buffering off;\n        }}\n    }}\n}}\n",
            servers.collect::<String>()
        );
        let file = self.directory.join("nginx.conf");
        fs::write(&file, configuration).map_err(|error| failed("configuring nginx", &error))?;
        let mut command = Command::new(nginx);
        command.arg("-p").arg(&self.directory).arg("-c").arg(&file);
        command.arg("-e").arg(self.directory.join("error.log"));
        let child = command
            .spawn()
            .map_err(|error| failed("starting nginx", &error))?;
        self.front = Some(Running(child));
        self.address = Some(address);
        Ok(())
    }

    /// Runs the load, and returns what it says.
    fn load(&self, options: &[&str]) -> Result<Value, Failed> {
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

    /// How many of so many streams are admitted at once, and these.
    fn admitted(&self, asked: usize) -> Result<(usize, Vec<TcpStream>), Failed> {
        let mut held = Vec::new();
        for _ in 0..asked {
            let (status, stream) = self.ask("{\"max_tokens\":100000000,\"stream\":true}")?;
            if status == 200 {
                held.push(stream);
            }
        }
        Ok((held.len(), held))
    }

    /// Status and connection of a request of its own.
    fn ask(&self, body: &str) -> Result<(u16, TcpStream), Failed> {
        let address = self
            .address
            .ok_or_else(|| Failed("nobody is in front".to_owned()))?;
        exchange(address, "POST", "/v1/completions", body)
            .map(|(status, stream)| (status, stream.into_inner()))
            .map_err(|error| failed("asking whoever is in front", &error))
    }

    fn served(&self) -> Result<Vec<u64>, Failed> {
        self.stats("served")
    }

    /// A figure of each engine.
    fn stats(&self, name: &str) -> Result<Vec<u64>, Failed> {
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

    /// The worker processes: the children of the one that was started.
    fn workers(&self) -> Result<Vec<u32>, Failed> {
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

/// A process, ended in order when dropped.
#[derive(Debug)]
struct Running(Child);

impl Running {
    /// Starts a part of the example and waits until it says where it listens.
    fn start(mut command: Command) -> Result<(Self, SocketAddr), Failed> {
        let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = child.map_err(|error| failed("starting the example", &error))?;
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            let mut output = BufReader::new(output);
            let read = output.read_line(&mut line);
            read.map_err(|error| failed("reading from the example", &error))?;
            // What else it says is for nobody, and must not stop it.
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

/// Sends a request and reads the first line of the answer.
fn exchange(
    to: SocketAddr,
    method: &str,
    path: &str,
    body: &str,
) -> std::io::Result<(u16, BufReader<TcpStream>)> {
    let mut stream = TcpStream::connect(to)?;
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

fn wait_for(what: &str, mut happened: impl FnMut() -> Result<bool, Failed>) -> Result<(), Failed> {
    let start = Instant::now();
    while !happened()? {
        if start.elapsed() > PATIENCE {
            return Err(Failed(format!("waited in vain for {what}")));
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn kill(pid: u32) -> Result<(), Failed> {
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

fn example(name: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    PathBuf::from(target).join("release/examples").join(name)
}

/// nginx, also where its directory is on root's path only.
fn nginx() -> Result<PathBuf, Failed> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&path).chain(["/usr/sbin".into()]);
    let found = places.find_map(|place| Some(place.join("nginx")).filter(|file| file.exists()));
    found.ok_or_else(|| Failed("there is no nginx here; apt-get install nginx-light".to_owned()))
}

fn version(nginx: &Path) -> Result<String, Failed> {
    let output = Command::new(nginx).arg("-v").output();
    let output = output.map_err(|error| failed("asking nginx for its version", &error))?;
    let text = String::from_utf8_lossy(&output.stderr);
    Ok(text.trim().replace("nginx version: ", ""))
}

fn failed(doing: &str, why: &dyn std::fmt::Display) -> Failed {
    Failed(format!("{doing}: {why}"))
}
