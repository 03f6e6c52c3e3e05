//! A process of its own that acts on a table, one command a line.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A running actor. Killed when dropped.
#[derive(Debug)]
pub struct Actor {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Actor {
    /// Starts an actor that has opened the table at `path` and joined.
    pub fn join(program: &str, path: &Path) -> Self {
        let mut actor = Self::open(program, path);
        assert!(actor.ask("join").starts_with("slot"), "the actor joins");
        actor
    }

    /// Starts an actor that has opened the table at `path`.
    pub fn open(program: &str, path: &Path) -> Self {
        let mut actor = Self::start(&mut Command::new(program));
        assert_eq!(actor.ask(&format!("open {}", path.display())), "ok");
        actor
    }

    /// Starts an actor by a command of one's own.
    pub fn start(command: &mut Command) -> Self {
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

    /// Sends a command, to be answered later.
    pub fn tell(&mut self, command: &str) {
        writeln!(self.input, "{command}").expect("the actor listens");
    }

    /// Waits for the answer to a command.
    pub fn answer(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the actor speaks");
        line.trim_end().to_owned()
    }

    /// Sends a command and waits for the answer.
    pub fn ask(&mut self, command: &str) -> String {
        self.tell(command);
        self.answer()
    }

    /// Sends a command and waits for numbers in answer.
    pub fn numbers(&mut self, command: &str) -> Vec<u32> {
        self.tell(command);
        self.answered_numbers()
    }

    /// Waits for an answer of numbers.
    pub fn answered_numbers(&mut self) -> Vec<u32> {
        let answer = self.answer();
        let numbers = answer.split_whitespace().map(str::parse);
        numbers
            .collect::<Result<_, _>>()
            .unwrap_or_else(|_| panic!("expected numbers, got {answer:?}"))
    }

    /// The process.
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// SIGKILL, and waits until the process is gone.
    pub fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// SIGSTOP, and waits until the process has stopped.
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

    /// SIGCONT.
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

/// Starts so many actors that have joined the table at `path`.
pub fn spawn_all(program: &str, path: &Path, count: usize) -> Vec<Actor> {
    (0..count).map(|_| Actor::join(program, path)).collect()
}
