//! A process of its own that acts on a table, one task after the other.

mod methods;
mod task;

pub(crate) use task::Timed;
pub use task::{Answer, CameAndWent, CoreDump, ForkedAmid, ForkedUse, Task, WorkDone};

use serde::de::DeserializeOwned;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A running actor. Killed when dropped.
///
/// There is a method for each [`Task`]. It waits for the answer, and panics if the actor could not do it.
#[derive(Debug)]
pub struct Actor {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Actor {
    /// Starts an actor that has opened the table at `path` and joined.
    pub fn joined(path: &Path) -> Self {
        let mut actor = Self::opened(path);
        actor.join();
        actor
    }

    /// Starts an actor that has opened the table at `path`.
    pub fn opened(path: &Path) -> Self {
        let mut actor = Self::start();
        actor.open(path);
        actor
    }

    /// Starts an actor that has no table.
    pub fn start() -> Self {
        Self::start_by(&mut Self::command())
    }

    /// Starts an actor by a command, which may differ from [`command`](Self::command) in all but the program.
    pub fn start_by(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("starts an actor");
        let input = child.stdin.take().expect("its input is a pipe");
        let output = BufReader::new(child.stdout.take().expect("its output is a pipe"));
        Self {
            child,
            input,
            output,
        }
    }

    /// The command that starts an actor.
    pub fn command() -> Command {
        Command::new(Self::program())
    }

    /// The path of the program, which cargo puts beside the directory of the tests.
    pub fn program() -> PathBuf {
        let own = std::env::current_exe().expect("the path of this program");
        let directories = own.ancestors().skip(1).take(2);
        let mut candidates = directories.map(|directory| directory.join("actor"));
        let found = candidates.find(|program| program.is_file());
        found.expect("an actor that is built: cargo build --package headcount-tests")
    }

    /// Sends a task, to be answered later.
    pub fn tell(&mut self, task: &Task) {
        let task = serde_json::to_string(task).expect("a task can be written");
        writeln!(self.input, "{task}").expect("the actor listens");
    }

    /// Waits for the answer to a task. Returns the debug form of the error if the actor could not do it.
    pub fn result<T: DeserializeOwned>(&mut self) -> Result<T, String> {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the actor speaks");
        let answer: Answer = serde_json::from_str(&line)
            .unwrap_or_else(|_| panic!("expected an answer, got {line:?}"));
        read(answer)
    }

    /// Waits for the answer to a task, which the actor can do.
    pub fn answer<T: DeserializeOwned>(&mut self) -> T {
        self.result()
            .unwrap_or_else(|error| panic!("an actor failed: {error}"))
    }

    /// Sends a task and waits for the result.
    pub fn attempt<T: DeserializeOwned>(&mut self, task: &Task) -> Result<T, String> {
        self.tell(task);
        self.result()
    }

    /// Sends a task that the actor cannot do, and returns the debug form of the error.
    pub fn refused(&mut self, task: &Task) -> String {
        self.attempt::<serde_json::Value>(task)
            .expect_err("the table refuses the task")
    }

    /// Sends a task that ends the program of the actor, and waits until it has closed its output.
    fn ends_by(&mut self, task: &Task) {
        self.tell(task);
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the output closes");
        assert_eq!(line, "", "the program has gone");
    }

    /// The pipe by which it answers.
    pub(crate) fn output_fd(&self) -> RawFd {
        self.output.get_ref().as_raw_fd()
    }

    /// The process.
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Sends SIGKILL and waits until the process is gone.
    pub fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Sends SIGSTOP and waits until the process has stopped.
    pub fn stop(&self) {
        self.signal(libc::SIGSTOP);
        let mut status = 0;
        // SAFETY: waits for a child of ours; writes to the integer only.
        let waited = unsafe { libc::waitpid(self.pid(), &raw mut status, libc::WUNTRACED) };
        assert!(
            waited == self.pid() && libc::WIFSTOPPED(status),
            "the actor stops"
        );
    }

    /// Sends SIGCONT.
    pub fn resume(&self) {
        self.signal(libc::SIGCONT);
    }

    fn signal(&self, signal: i32) {
        // SAFETY: the process is a child of ours that was not waited for, so the number is its own.
        assert_eq!(unsafe { libc::kill(self.pid(), signal) }, 0);
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The answer as the task has it.
pub(crate) fn read<T: DeserializeOwned>(answer: Answer) -> Result<T, String> {
    let answer = answer?;
    let said = answer.to_string();
    Ok(serde_json::from_value(answer)
        .unwrap_or_else(|_| panic!("an answer of another task: {said}")))
}

/// Starts `count` actors that have joined the table at `path`.
pub fn spawn_all(path: &Path, count: usize) -> Vec<Actor> {
    (0..count).map(|_| Actor::joined(path)).collect()
}

/// The permits of all actors together, engine by engine, for a table of `engines`.
pub fn held(actors: &mut [Actor], engines: usize) -> Vec<u32> {
    sum(engines, actors.iter_mut().map(Actor::held))
}

/// The tokens of these permits.
pub fn held_tokens(actors: &mut [Actor], engines: usize) -> Vec<u32> {
    sum(engines, actors.iter_mut().map(Actor::held_tokens))
}

/// Adds up numbers of `engines` engines.
pub fn sum(engines: usize, numbers: impl IntoIterator<Item = Vec<u32>>) -> Vec<u32> {
    let mut sums = vec![0; engines];
    for own in numbers {
        sums.iter_mut().zip(own).for_each(|(sum, n)| *sum += n);
    }
    sums
}
