//! A running deployment: a parent, its workers and their table.

use crate::stream::Stream;
use headcount::{EngineState, Table};
use headcount_tests::{built, eventually, state};
use std::env;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};
use std::time::Duration;
use tempfile::TempDir;
use ureq::Agent;

/// The variable that names the program for a test that restarts itself in a network of its own, without
/// cargo's files.
pub(crate) const PROGRAM: &str = "HEADCOUNT_TEST_SERVER";

/// Builds the server once for all tests, and returns its path.
pub(crate) fn program() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| match env::var_os(PROGRAM) {
        Some(path) => path.into(),
        None => built("headcount-server", "headcount-server"),
    })
}

/// A deployment of four workers, or of one with `--workers=1`. Ended when dropped.
#[derive(Debug)]
pub(crate) struct Deployment {
    parent: Child,
    pub(crate) address: SocketAddr,
    /// Opened for reading only, so the test does not reap.
    pub(crate) table: Table,
    directory: TempDir,
    /// How many workers there are to be.
    count: usize,
}

impl Deployment {
    /// Starts workers in front of these engines.
    pub(crate) fn start(engines: &[SocketAddr], options: &[&str]) -> Self {
        Self::start_at(&free_address(), engines, options)
    }

    /// The same at an address of the test's choice.
    pub(crate) fn start_at(listen: &str, engines: &[SocketAddr], options: &[&str]) -> Self {
        let mut command = Command::new(program());
        for engine in engines {
            command.args(["--engine", &format!("http://{engine}")]);
        }
        command.args(options);
        Self::start_in(headcount_tests::directory(), listen, command)
    }

    /// Starts workers whose standard error goes to the file `log`.
    pub(crate) fn start_with_log(engines: &[SocketAddr]) -> Self {
        Self::start_logging(engines, &[], |_| {})
    }

    /// The same with options, and with other changes to the command.
    pub(crate) fn start_logging(
        engines: &[SocketAddr],
        options: &[&str],
        change: impl FnOnce(&mut Command),
    ) -> Self {
        let directory = headcount_tests::directory();
        let mut command = Command::new(program());
        for engine in engines {
            command.args(["--engine", &format!("http://{engine}")]);
        }
        command.args(options);
        command.stderr(File::create(directory.path().join("log")).unwrap());
        change(&mut command);
        Self::start_in(directory, &free_address(), command)
    }

    /// Returns the content of the file `log`.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap()
    }

    /// Starts workers by a list of engines in a file.
    pub(crate) fn start_with_file(list: &str) -> Self {
        Self::start_by_file(list, &[])
    }

    /// The same, with a minute for each probe.
    pub(crate) fn start_slowly_probing(list: &str) -> Self {
        Self::start_by_file(list, &["--connect-timeout", "60"])
    }

    /// Starts workers by a list of engines in a file, with options.
    pub(crate) fn start_by_file(list: &str, options: &[&str]) -> Self {
        let directory = headcount_tests::directory();
        let file = directory.path().join("engines");
        std::fs::write(&file, list).unwrap();
        let mut command = Command::new(program());
        command.arg("--engines-file").arg(&file).args(options);
        command.stderr(File::create(directory.path().join("log")).unwrap());
        Self::start_in(directory, &free_address(), command)
    }

    fn start_in(directory: TempDir, listen: &str, command: Command) -> Self {
        let table = directory.path().join("table");
        Self::start_with_table(directory, listen, command, table)
    }

    fn start_with_table(
        directory: TempDir,
        listen: &str,
        mut command: Command,
        path: PathBuf,
    ) -> Self {
        let count = if command.get_args().any(|option| option == "--workers=1") {
            1
        } else {
            4
        };
        if !command.get_args().any(|option| option == "--drain-timeout") {
            command.args(["--drain-timeout", "5"]);
        }
        let parent = command.args(["--listen", listen]).arg("--table").arg(&path);
        let (parent, address) = start(parent);
        let deployment = Self {
            parent,
            address,
            table: Table::open_read_only(&path).unwrap(),
            directory,
            count,
        };
        deployment.wait_for_workers();
        deployment
    }

    /// Kills the parent with SIGKILL, waits for the end of its workers, and starts the same deployment again, on
    /// the same port and the same table.
    pub(crate) fn replace(self, engines: &[SocketAddr]) -> Self {
        let address = self.address.to_string();
        let directory = self.kill_parent();
        let mut command = Command::new(program());
        for engine in engines {
            command.args(["--engine", &format!("http://{engine}")]);
        }
        Self::start_in(directory, &address, command)
    }

    /// Starts another deployment at the same address and on the same table, as soon as this one, which is ending,
    /// has given up the address.
    pub(crate) fn next_on_its_table(&self, engines: &[SocketAddr]) -> Self {
        eventually("the end of listening", || {
            TcpStream::connect(self.address).is_err()
        });
        let directory = headcount_tests::directory();
        std::os::unix::fs::symlink(self.directory.path(), directory.path().join("last")).unwrap();
        let table = directory.path().join("last/table");
        let mut command = Command::new(program());
        for engine in engines {
            command.args(["--engine", &format!("http://{engine}")]);
        }
        Self::start_with_table(directory, &self.address.to_string(), command, table)
    }

    /// Starts another deployment, with a log, on the table of this one, which has ended.
    pub(crate) fn next_with(&mut self, engines: &[SocketAddr], options: &[&str]) -> Self {
        let elsewhere = headcount_tests::directory();
        let directory = std::mem::replace(&mut self.directory, elsewhere);
        Self::start_on(directory, engines, options)
    }

    /// Starts workers, with a log, on the table in this directory.
    pub(crate) fn start_on(directory: TempDir, engines: &[SocketAddr], options: &[&str]) -> Self {
        let mut command = Command::new(program());
        for engine in engines {
            command.args(["--engine", &format!("http://{engine}")]);
        }
        command.args(options);
        command.stderr(File::create(directory.path().join("log")).unwrap());
        Self::start_in(directory, &free_address(), command)
    }

    fn kill_parent(mut self) -> TempDir {
        self.parent.kill().unwrap();
        self.parent.wait().unwrap();
        eventually("the end of the workers without a parent", || {
            self.workers().is_empty()
        });
        let elsewhere = headcount_tests::directory();
        std::mem::replace(&mut self.directory, elsewhere)
    }

    /// Whether the parent has ended, and how.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.parent.try_wait().unwrap()
    }

    pub(crate) fn pid(&self) -> i32 {
        self.parent.id() as i32
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.directory.path().join("engines")
    }

    pub(crate) fn table_path(&self) -> PathBuf {
        self.directory.path().join("table")
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns the pids of the workers that live and have joined.
    pub(crate) fn workers(&self) -> Vec<i32> {
        let frontends = self.table.view().frontends.into_iter();
        frontends
            .filter(|f| f.alive)
            .map(|f| f.pid as i32)
            .collect()
    }

    /// Returns the living worker with the most requests in flight.
    pub(crate) fn busiest(&self) -> i32 {
        let mut busiest = None;
        eventually("a worker", || {
            let frontends = self.table.view().frontends.into_iter();
            busiest = frontends.filter(|f| f.alive).max_by_key(|f| f.in_flight);
            busiest.is_some()
        });
        busiest.unwrap().pid as i32
    }

    pub(crate) fn wait_for_workers(&self) {
        // Workers of an earlier deployment may still finish.
        let is_own = |worker: &i32| {
            let stat = std::fs::read_to_string(format!("/proc/{worker}/stat")).unwrap_or_default();
            // Behind the name, in brackets: the state, and the parent.
            let parent = stat
                .rsplit(") ")
                .next()
                .and_then(|rest| rest.split(' ').nth(1));
            parent == Some(&self.pid().to_string())
        };
        eventually("all workers", || {
            self.workers().into_iter().filter(is_own).count() == self.count
        });
    }

    pub(crate) fn in_flight(&self) -> Vec<u32> {
        headcount_tests::in_flight(&self.table)
    }

    pub(crate) fn total(&self) -> u32 {
        self.in_flight().iter().sum()
    }

    pub(crate) fn state(&self, engine: SocketAddr) -> Option<EngineState> {
        let name = format!("http://{engine}");
        let engines = self.table.view().engines;
        engines.iter().find(|e| e.name == name).map(|e| e.state)
    }

    /// Returns how many requests are in flight on one engine.
    pub(crate) fn on(&self, engine: SocketAddr) -> u32 {
        let name = format!("http://{engine}");
        let engines = self.table.view().engines;
        (engines.iter().find(|e| e.name == name)).map_or(0, |e| e.in_flight)
    }

    /// Waits until every count is zero: of engines, tokens and frontends.
    pub(crate) fn settles(&self) {
        eventually("the return of every count to zero", || {
            let view = self.table.view();
            view.engines
                .iter()
                .all(|e| (e.in_flight, e.tokens) == (0, 0))
                && view
                    .frontends
                    .iter()
                    .all(|f| f.alive && (f.in_flight, f.tokens) == (0, 0))
        });
    }

    /// Begins a stream of so many tokens, and waits for the first of them.
    pub(crate) fn stream(&self, tokens: u64) -> Stream {
        let mut stream = Stream::ask(self.address, tokens);
        assert_eq!(stream.status(), 200);
        assert!(stream.token(), "a first token");
        stream
    }
}

impl Drop for Deployment {
    fn drop(&mut self) {
        if matches!(self.parent.try_wait(), Ok(Some(_))) {
            return;
        }
        signal(self.pid(), libc::SIGTERM);
        let start = std::time::Instant::now();
        while start.elapsed() < Duration::from_secs(30) {
            if matches!(self.parent.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.parent.kill();
        let _ = self.parent.wait();
    }
}

/// Starts the program, and waits until it says where it listens.
pub(crate) fn start(command: &mut Command) -> (Child, SocketAddr) {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    output.read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("listening on http://");
    let address = address.unwrap_or_else(|| panic!("{command:?} says {line:?}"));
    let address = address.parse().unwrap();
    // Later lines are discarded, so that they do not fill the pipe.
    std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
    (child, address)
}

pub(crate) fn signal(pid: i32, signal: i32) {
    // SAFETY: changes nothing in this process; the process is one that the test has started.
    let result = unsafe { libc::kill(pid, signal) };
    assert_eq!(result, 0, "signal {signal} to {pid}");
}

/// Tells clients to stop when it is dropped, also by a test that fails.
#[derive(Debug)]
pub(crate) struct StopClients<'a>(pub(crate) &'a AtomicBool);

impl Drop for StopClients<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Stops a process with SIGSTOP, and waits until it has stopped.
pub(crate) fn stop(pid: i32) {
    signal(pid, libc::SIGSTOP);
    eventually("the stop of the process", || state(pid) == Some('T'));
}

/// Returns a loopback address of its own with port 0. No other process takes the port when it is given
/// up, so a test can take it again.
pub(crate) fn free_address() -> String {
    static NUMBER: AtomicU8 = AtomicU8::new(1);
    let [.., high, low] = std::process::id().to_be_bytes();
    let number = NUMBER.fetch_add(1, Relaxed);
    format!("{}:0", Ipv4Addr::new(127, high | 0x40, low, number))
}

/// Returns a client that keeps its connections and returns errors as answers.
pub(crate) fn agent() -> Agent {
    Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(Duration::from_secs(60)))
        .proxy(None)
        .build()
        .into()
}

/// Asks for so many tokens in one piece. Returns status and body.
pub(crate) fn complete(
    agent: &Agent,
    url: &str,
    tokens: u64,
) -> Result<(u16, String), ureq::Error> {
    let mut answer = agent
        .post(url)
        .send(format!("{{\"max_tokens\":{tokens}}}"))?;
    let body = answer.body_mut().read_to_string()?;
    Ok((answer.status().as_u16(), body))
}
