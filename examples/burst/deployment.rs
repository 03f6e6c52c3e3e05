//! The processes of one strategy's run, from start to end.

use std::collections::BTreeMap;
use std::env;
use std::fmt;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command as Program, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use headcount::Table;

use crate::error::Error;
use crate::inbox;
use crate::interrupt;
use crate::options::Options;
use crate::roles::{Assignment, Role};
use crate::scratch::Scratch;
use crate::strategy::{Seat, Strategy};
use crate::wire::{self, Command, Entry, Event};

/// How often a wait looks whether Ctrl-C was pressed.
const GLANCE: Duration = Duration::from_millis(50);

/// How long a process may take to start or to answer.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Process {
    Coordinator,
    Engine(usize),
    Frontend(usize),
}

/// Running processes. Dropping it kills them, and removes the table and the sockets.
#[derive(Debug)]
pub(crate) struct Deployment {
    // First, so that no process is left when its files go.
    members: BTreeMap<Process, Member>,
    events: Receiver<(Process, Event)>,
    inbox: Sender<(Process, Event)>,
    engines: usize,
    table: Option<Table>,
    scratch: Scratch,
}

#[derive(Debug)]
struct Member {
    process: Child,
    commands: ChildStdin,
}

impl Deployment {
    /// Starts all processes, and the table for a strategy that shares one. Returns when all are
    /// connected.
    pub(crate) fn start(options: &Options, strategy: Strategy) -> Result<Self, Error> {
        let scratch = Scratch::new()?;
        let engines = options.engines as usize;
        let table = strategy
            .shares_a_table()
            .then(|| {
                Table::options()
                    .engines(engines)
                    .open_or_create(scratch.places().table())
            })
            .transpose()?;
        let (inbox, events) = mpsc::channel();
        let members = BTreeMap::new();
        let mut deployment = Self {
            members,
            events,
            inbox,
            engines,
            table,
            scratch,
        };

        let publish_every = Duration::from_millis(options.publish_ms);
        deployment.spawn(
            Process::Coordinator,
            Role::Coordinator {
                engines,
                publish_every,
            },
        )?;
        deployment.all_ready(1)?;

        for index in 0..engines {
            deployment.spawn(Process::Engine(index), Role::Engine { index })?;
        }
        deployment.all_ready(engines)?;

        for index in 0..options.frontends as usize {
            let seat = Seat {
                index,
                frontends: options.frontends,
                engines,
            };
            deployment.spawn(Process::Frontend(index), Role::Frontend { seat, strategy })?;
        }
        deployment.all_ready(options.frontends as usize)?;
        Ok(deployment)
    }

    /// The table, if the strategy shares one.
    pub(crate) fn table(&self) -> Option<&Table> {
        self.table.as_ref()
    }

    /// The frontends that live, by their index.
    pub(crate) fn frontends(&self) -> Vec<usize> {
        let index = |process: &Process| match process {
            Process::Frontend(index) => Some(*index),
            _ => None,
        };
        self.members.keys().filter_map(index).collect()
    }

    pub(crate) fn command(&mut self, process: Process, command: &Command) -> Result<(), Error> {
        let Some(member) = self.members.get_mut(&process) else {
            return Err(Error::Ended {
                process: process.to_string(),
            });
        };
        if wire::send(&mut member.commands, command).is_ok() {
            return Ok(());
        }
        // It has ended. If it said why, that is the error.
        while self.event_before(Instant::now() + GLANCE)?.is_some() {}
        Err(Error::Ended {
            process: process.to_string(),
        })
    }

    /// The next event, or none if there is none before `deadline`. A process that fails or ends is
    /// an error.
    pub(crate) fn event_before(
        &self,
        deadline: Instant,
    ) -> Result<Option<(Process, Event)>, Error> {
        loop {
            interrupt::check()?;
            let wait = deadline.saturating_duration_since(Instant::now());
            match self.events.recv_timeout(wait.min(GLANCE)) {
                Ok((process, Event::Failed(reason))) => {
                    return Err(Error::Failed {
                        process: process.to_string(),
                        reason,
                    });
                }
                Ok((process, Event::Gone)) if self.members.contains_key(&process) => {
                    return Err(Error::Ended {
                        process: process.to_string(),
                    });
                }
                // Killed on purpose.
                Ok((_, Event::Gone)) => {}
                Ok(event) => return Ok(Some(event)),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected)
                    if wait <= GLANCE =>
                {
                    return Ok(None);
                }
                Err(_) => {}
            }
        }
    }

    /// SIGKILL. Returns when the process is gone.
    pub(crate) fn kill(&mut self, process: Process) -> Result<(), Error> {
        let member = self.members.remove(&process);
        member
            .map_or(Ok(()), |mut member| member.end())
            .map_err(|source| Error::Socket {
                what: format!("kill {process}"),
                source,
            })
    }

    /// What has happened at each engine since the last call.
    pub(crate) fn logs(&mut self) -> Result<Vec<Vec<Entry>>, Error> {
        for index in 0..self.engines {
            self.command(Process::Engine(index), &Command::Log)?;
        }
        self.answers(
            "the engines to hand over their logs",
            self.engines,
            |event| match event {
                Event::Log(entries) => Some(entries),
                _ => None,
            },
        )
    }

    /// The requests that the living frontends still wait for.
    pub(crate) fn counted_by_frontends(&mut self) -> Result<u64, Error> {
        let frontends = self.frontends();
        for &index in &frontends {
            self.command(Process::Frontend(index), &Command::Count)?;
        }
        let counts = self.answers(
            "the frontends to count",
            frontends.len(),
            |event| match event {
                Event::Counted(requests) => Some(requests),
                _ => None,
            },
        )?;
        Ok(counts.into_iter().sum())
    }

    fn all_ready(&self, count: usize) -> Result<(), Error> {
        self.answers("the processes to start", count, |event| {
            matches!(event, Event::Ready).then_some(())
        })?;
        Ok(())
    }

    /// One answer of each of `count` processes, in the order of the processes.
    fn answers<T>(
        &self,
        what: &str,
        count: usize,
        pick: impl Fn(Event) -> Option<T>,
    ) -> Result<Vec<T>, Error> {
        let deadline = Instant::now() + PATIENCE;
        let mut answers = BTreeMap::new();
        while answers.len() < count {
            let Some((process, event)) = self.event_before(deadline)? else {
                return Err(Error::Stalled {
                    what: what.to_owned(),
                    seconds: PATIENCE.as_secs(),
                });
            };
            if let Some(answer) = pick(event) {
                answers.insert(process, answer);
            }
        }
        Ok(answers.into_values().collect())
    }

    fn spawn(&mut self, process: Process, role: Role) -> Result<(), Error> {
        let member = self
            .start_member(process, role)
            .map_err(|source| Error::Start {
                process: process.to_string(),
                source,
            })?;
        self.members.insert(process, member);
        Ok(())
    }

    fn start_member(&self, process: Process, role: Role) -> io::Result<Member> {
        let assignment = Assignment {
            role,
            places: self.scratch.places(),
        };
        let mut child = Program::new(env::current_exe()?)
            .arg("--role")
            .arg(serde_json::to_string(&assignment)?)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C is for the parent alone, which then ends its children in order.
            .process_group(0)
            .spawn()?;
        let (Some(commands), Some(events)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        inbox::forward(
            events,
            self.inbox.clone(),
            move |event| (process, event),
            (process, Event::Gone),
        );
        Ok(Member {
            process: child,
            commands,
        })
    }
}

impl Member {
    fn end(&mut self) -> io::Result<()> {
        self.process.kill()?;
        self.process.wait().map(drop)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // One that has ended already needs no more.
        let _ = self.end();
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
