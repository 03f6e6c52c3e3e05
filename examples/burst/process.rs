//! A child process: this program again, with a part to play.

use std::env;
use std::fmt;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command as Program, Stdio};
use std::sync::mpsc::Sender;

use crate::error::Error;
use crate::inbox;
use crate::roles::Assignment;
use crate::wire::{self, Command, Event};

/// Which process of a deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Process {
    Coordinator,
    Engine(usize),
    Frontend(usize),
}

/// A running process. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    commands: ChildStdin,
}

impl Running {
    /// Starts the process. Its messages go to the inbox.
    pub(crate) fn start(
        process: Process,
        assignment: &Assignment,
        inbox: Sender<(Process, Event)>,
    ) -> Result<Self, Error> {
        let start = || {
            let mut child = Program::new(env::current_exe()?)
                .arg("--role")
                .arg(serde_json::to_string(assignment)?)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                // Ctrl-C is for the parent alone, which then ends its children in order.
                .process_group(0)
                .spawn()?;
            let pipes = child.stdin.take().zip(child.stdout.take());
            let (commands, events) = pipes.ok_or(io::ErrorKind::BrokenPipe)?;
            let input = move |event| (process, event);
            inbox::forward(events, inbox, input, (process, Event::Gone));
            Ok(Self { child, commands })
        };
        start().map_err(|source| Error::Start { process, source })
    }

    pub(crate) fn command(&mut self, command: &Command) -> io::Result<()> {
        wire::send(&mut self.commands, command)
    }
}

impl Drop for Running {
    /// SIGKILL, and gone when this returns.
    fn drop(&mut self) {
        // Both fail only for a process that has been waited for, which happens nowhere else.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Coordinator => write!(f, "the coordinator"),
            Self::Engine(index) => write!(f, "engine {index}"),
            Self::Frontend(index) => write!(f, "frontend {index}"),
        }
    }
}
