//! The processes of one strategy's run, from start to end.

use std::collections::BTreeMap;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use headcount::Table;

use crate::error::Error;
use crate::interrupt;
use crate::options::Options;
use crate::process::{Process, Running};
use crate::roles::{Assignment, Role};
use crate::scratch::Scratch;
use crate::strategy::{Counters, Seat, Strategy};
use crate::wire::{Command, Entry, Event};

/// How often a wait looks whether Ctrl-C was pressed.
const GLANCE: Duration = Duration::from_millis(50);

/// How long the processes may take to start or to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Running processes. Dropping it kills them, and removes the table and the sockets.
#[derive(Debug)]
pub(crate) struct Deployment {
    // First, so that no process is left when its files go.
    running: BTreeMap<Process, Running>,
    events: Receiver<(Process, Event)>,
    inbox: Sender<(Process, Event)>,
    engines: usize,
    table: Option<Table>,
    counters: Option<Counters>,
    frontend: Frontend,
    scratch: Scratch,
}

/// How the next frontend is started.
#[derive(Debug, Clone, Copy)]
struct Frontend {
    seat: Seat,
    strategy: Strategy,
}

impl Deployment {
    /// Starts all processes, and the table for a strategy that shares one. Returns when all are
    /// connected.
    pub(crate) fn start(options: &Options, strategy: Strategy) -> Result<Self, Error> {
        let (engines, frontends) = (options.engines as usize, options.frontends as usize);
        let scratch = Scratch::new()?;
        let seat = Seat {
            index: 0,
            frontends: options.frontends,
            engines,
            cap: options.cap,
            has_queue: strategy.has_queue(),
            tells_places: options.queue,
        };
        let table = if strategy.shares_a_table() {
            let options = seat.table_options().max_frontends(frontends);
            Some(options.open_or_create(scratch.places().table())?)
        } else {
            None
        };
        let counters = (strategy == Strategy::Shared)
            .then(|| Counters::open(&scratch.places().counters(), engines))
            .transpose()?;
        let (inbox, events) = mpsc::channel();
        let running = BTreeMap::new();
        let mut deployment = Self {
            running,
            events,
            inbox,
            engines,
            table,
            counters,
            frontend: Frontend { seat, strategy },
            scratch,
        };

        let publish_every = Duration::from_millis(options.publish_ms);
        let coordinator = Role::Coordinator {
            engines,
            publish_every,
        };
        let engine = |index| (Process::Engine(index), Role::Engine { index });
        // Each connects to those before it.
        deployment.launch([(Process::Coordinator, coordinator)])?;
        deployment.launch((0..engines).map(engine))?;
        let frontends: Vec<_> = (0..frontends).map(|_| deployment.next_frontend()).collect();
        deployment.launch(frontends)?;
        Ok(deployment)
    }

    /// The table, if the strategy shares one.
    pub(crate) fn table(&self) -> Option<&Table> {
        self.table.as_ref()
    }

    /// The requests in flight by the count that the frontends share. `None` if they share none.
    pub(crate) fn counted(&self) -> Option<u64> {
        let by_table = |table: &Table| {
            let engines = table.view().engines;
            engines
                .iter()
                .map(|engine| u64::from(engine.in_flight))
                .sum()
        };
        (self.table.as_ref().map(by_table)).or(self.counters.as_ref().map(Counters::sum))
    }

    /// Starts one more frontend, and does not wait until it is ready.
    pub(crate) fn start_frontend(&mut self) -> Result<(), Error> {
        let (process, role) = self.next_frontend();
        self.start_process(process, role)
    }

    fn next_frontend(&mut self) -> (Process, Role) {
        let Frontend { seat, strategy } = self.frontend;
        self.frontend.seat.index += 1;
        (
            Process::Frontend(seat.index),
            Role::Frontend { seat, strategy },
        )
    }

    /// The frontends that live, by their index.
    pub(crate) fn frontends(&self) -> Vec<usize> {
        let index = |process: &Process| match process {
            Process::Frontend(index) => Some(*index),
            _ => None,
        };
        self.running.keys().filter_map(index).collect()
    }

    pub(crate) fn command(&mut self, process: Process, command: &Command) -> Result<(), Error> {
        if let Some(running) = self.running.get_mut(&process)
            && running.command(command).is_ok()
        {
            return Ok(());
        }
        // It has ended. If it said why, that is the error.
        while self.event_before(Instant::now() + GLANCE)?.is_some() {}
        Err(Error::Ended { process })
    }

    /// The next event, or none if there is none before `deadline`. A process that fails or ends is
    /// an error.
    pub(crate) fn event_before(
        &self,
        deadline: Instant,
    ) -> Result<Option<(Process, Event)>, Error> {
        loop {
            interrupt::check()?;
            let left = deadline.saturating_duration_since(Instant::now());
            match self.events.recv_timeout(left.min(GLANCE)) {
                Ok((process, Event::Failed(reason))) => {
                    return Err(Error::Failed { process, reason });
                }
                Ok((process, Event::Gone)) if self.running.contains_key(&process) => {
                    return Err(Error::Ended { process });
                }
                // Killed on purpose.
                Ok((_, Event::Gone)) => {}
                Ok(event) => return Ok(Some(event)),
                Err(RecvTimeoutError::Timeout) if left > GLANCE => {}
                Err(_) => return Ok(None),
            }
        }
    }

    /// SIGKILL. Returns when the process is gone.
    pub(crate) fn kill(&mut self, process: Process) {
        self.running.remove(&process);
    }

    /// All changes at each engine since the last call.
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

    fn launch(&mut self, parts: impl IntoIterator<Item = (Process, Role)>) -> Result<(), Error> {
        let mut count = 0;
        for (process, role) in parts {
            self.start_process(process, role)?;
            count += 1;
        }
        let ready = |event| matches!(event, Event::Ready).then_some(());
        self.answers("processes to start", count, ready).map(drop)
    }

    fn start_process(&mut self, process: Process, role: Role) -> Result<(), Error> {
        let assignment = Assignment {
            role,
            places: self.scratch.places(),
        };
        let running = Running::start(process, &assignment, self.inbox.clone())?;
        self.running.insert(process, running);
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
}
