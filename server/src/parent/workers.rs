//! Starts the workers, and starts each again when it ends, until all are to end.

use crate::client::listener;
use crate::log::{requests, say};
use crate::options::Options;
use crate::process::child;
use crate::process::shutdown::{DRAIN, RELOAD};
use crate::report::counters;
use headcount::{FrontendView, Reaped, Table};
use rustix::process::{Pid, kill_process};
use std::collections::HashSet;
use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// When a worker ends sooner than this after its start, and the one before it did too, the parent waits this long
/// before the next start.
const SHORT_LIFE: Duration = Duration::from_secs(1);

/// How far the deployment has come.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Stage {
    Serving,
    /// Serving still, and announcing the end.
    Draining,
    /// Finishing the requests in flight.
    Finishing,
    /// Cutting the requests in flight.
    Ending,
}

/// All workers of the deployment.
#[derive(Debug)]
pub(crate) struct Workers {
    stage: watch::Sender<Stage>,
    keepers: JoinSet<()>,
    shared: Arc<Shared>,
}

/// What the tasks that keep the workers running share.
#[derive(Debug)]
struct Shared {
    table: Table,
    options: Options,
    socket: String,
    counters: String,
    /// The workers that run.
    pids: Mutex<HashSet<u32>>,
}

impl Workers {
    /// Starts the workers with this socket and these counters, which have to stay open until the end begins.
    pub(crate) fn start(
        table: &Table,
        options: &Options,
        socket: &TcpListener,
        counts: &OwnedFd,
    ) -> Self {
        let shared = Arc::new(Shared {
            table: table.clone(),
            options: options.clone(),
            socket: listener::number(socket),
            counters: counters::number(counts),
            pids: Mutex::default(),
        });
        let (stage, stages) = watch::channel(Stage::Serving);
        let mut keepers = JoinSet::new();
        for number in 0..options.workers {
            keepers.spawn(Arc::clone(&shared).keep(number, stages.clone()));
        }
        Self {
            stage,
            keepers,
            shared,
        }
    }

    /// Moves all workers to a later stage.
    pub(crate) fn enter(&self, stage: Stage) {
        let _ = self.stage.send(stage);
    }

    /// Returns when all workers have ended, once they were told to.
    pub(crate) async fn end(&mut self) {
        while self.keepers.join_next().await.is_some() {}
    }

    /// Tells the workers to read their files again. Those that have not joined the table yet read them after that.
    pub(crate) fn reload(&self) {
        for frontend in self.frontends() {
            if let Some(pid) = Pid::from_raw(frontend.pid.cast_signed()) {
                // Fails if it is dead.
                let _ = kill_process(pid, RELOAD);
            }
        }
    }

    /// Returns how many requests the workers have in flight, in words, and how many wait there, if some do.
    pub(crate) fn unfinished(&self) -> String {
        let (mut in_flight, mut waiting) = (0, 0);
        for frontend in self.frontends() {
            in_flight += frontend.in_flight;
            waiting += frontend.waiting;
        }
        let in_flight = format!("{} in flight", requests(in_flight));
        match waiting {
            0 => in_flight,
            1 => format!("{in_flight} and 1 that waits"),
            several => format!("{in_flight} and {several} that wait"),
        }
    }

    /// Whether any worker serves.
    pub(crate) fn are_up(&self) -> bool {
        self.frontends().next().is_some()
    }

    /// Returns the workers that live and have joined the table.
    fn frontends(&self) -> impl Iterator<Item = FrontendView> {
        let pids = self.shared.pids().clone();
        let frontends = self.shared.table.view().frontends.into_iter();
        frontends.filter(move |f| f.alive && pids.contains(&f.pid))
    }
}

impl Shared {
    /// Starts a worker, and another whenever it ends, until all are to end.
    async fn keep(self: Arc<Self>, number: u16, mut stages: watch::Receiver<Stage>) {
        let mut short_lives = 0;
        loop {
            let started = Instant::now();
            match self.start(number) {
                Ok((worker, lifeline)) => self.watch(worker, lifeline, &mut stages).await,
                Err(error) => say(format_args!("cannot start a worker: {error}")),
            }
            let is_short = started.elapsed() < SHORT_LIFE;
            short_lives = if is_short { short_lives + 1 } else { 0 };
            let pause = if short_lives > 1 {
                SHORT_LIFE
            } else {
                Duration::ZERO
            };
            let told = stages.wait_for(|stage| *stage >= Stage::Finishing);
            // The stages only advance, so this returns at once from then on.
            if timeout(pause, told).await.is_ok() {
                return;
            }
        }
    }

    /// Starts a worker. Returns its lifeline apart, because waiting for a child closes its input.
    fn start(&self, number: u16) -> io::Result<(Child, Option<ChildStdin>)> {
        let mut command = child::this_program();
        command
            .args(std::env::args_os().skip(1))
            .args(["--lifeline", "--listener", &self.socket])
            .args(["--counters", &self.counters])
            .args(["--number", &number.to_string()]);
        self.table.pass_to(&mut command);
        child::start(command)
    }

    /// Returns when a worker has ended, and its requests are no longer counted.
    async fn watch(
        &self,
        mut worker: Child,
        mut lifeline: Option<ChildStdin>,
        stages: &mut watch::Receiver<Stage>,
    ) {
        let pid = worker.id().unwrap_or_default();
        self.pids().insert(pid);
        let mut stage = *stages.borrow_and_update();
        let status = loop {
            match stage {
                Stage::Serving => {}
                Stage::Draining => {
                    if let Some(lifeline) = &mut lifeline {
                        // Fails if it is dead already.
                        let _ = lifeline.write_all(DRAIN).await;
                    }
                }
                Stage::Finishing => {
                    drop(lifeline.take());
                    let limit = self.options.drain_timeout;
                    tokio::select! {
                        () = child::finish(&mut worker, limit) => break None,
                        // The last stage has come, or the parent is gone.
                        _ = stages.changed() => {}
                    }
                    stage = Stage::Ending;
                    continue;
                }
                Stage::Ending => {
                    child::cut(&mut worker).await;
                    break None;
                }
            }
            tokio::select! {
                status = worker.wait() => break Some(status),
                changed = stages.changed() => {
                    stage = match changed {
                        Ok(()) => *stages.borrow_and_update(),
                        Err(_) => Stage::Ending,
                    };
                }
            }
        };
        match status {
            Some(Ok(status)) => say(format_args!("worker {pid}: {status}; starting another")),
            Some(Err(error)) => say(format_args!("worker {pid}: {error}; starting another")),
            None => {}
        }
        self.pids().remove(&pid);
        self.reap();
    }

    /// Returns to the table what a dead worker held.
    fn reap(&self) {
        match self.table.reap() {
            Ok(Reaped {
                requests: in_flight,
                waiting,
                ..
            }) => {
                if in_flight > 0 {
                    let freed = requests(in_flight);
                    say(format_args!(
                        "freed {freed} that dead workers had in flight"
                    ));
                }
                if waiting > 0 {
                    let left = requests(waiting);
                    say(format_args!("{left} of dead workers left the queue"));
                }
            }
            Err(error) => say(format_args!("{error}; trying again soon")),
        }
    }

    fn pids(&self) -> MutexGuard<'_, HashSet<u32>> {
        self.pids.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
