//! The parent: keeps the workers alive and the table true.

use crate::engine_list::{self, Entry};
use crate::error::Error;
use crate::keepalive::Keepalive;
use crate::lifeline::End;
use crate::notice::{say, tell};
use crate::options::Options;
use crate::{child, listener, mock_engine, probe, table_path};
use headcount::Table;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::process::{Child, ChildStdin};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// How many engines a table has room for, those included that were removed and still finish.
const MAX_ENGINES: usize = 256;
/// How many workers: those of this deployment, and of one before it that still finish.
const MAX_FRONTENDS: usize = 256;
/// Workers that end sooner than this after their start, again and again, wait as long before the next.
const SHORT_LIFE: Duration = Duration::from_secs(1);
const MOCK_ENGINES: usize = 4;

pub(crate) async fn serve(options: Options) -> Result<(), Error> {
    // First, so that no signal finds the process without an answer.
    let mut end = End::watch(false)?;
    let mut reloads =
        signal(SignalKind::hangup()).map_err(|source| Error::system("watch for SIGHUP", source))?;
    let (list, mocks) = match engine_list::read(&options)? {
        Some(list) => (list, Vec::new()),
        None => mock_engine::start(MOCK_ENGINES).await?,
    };
    let table = open(&options)?;
    engine_list::put_into(&table, &list, &options)?;
    // After the mock engines, which shall not inherit it.
    let socket = listener::bind(options.listen, Keepalive::of_clients(&options))?;
    let address = socket
        .local_addr()
        .map_err(|source| Error::system("ask for the address of the socket", source))?;
    let parent = Arc::new(Parent {
        socket: listener::number(&socket),
        table,
        options,
    });

    let (stop, stopping) = watch::channel(false);
    let mut workers = JoinSet::new();
    for _ in 0..parent.options.workers {
        workers.spawn(Arc::clone(&parent).keep_worker(stopping.clone()));
    }
    let probes = tokio::spawn(probe::probe(parent.table.clone(), parent.options.clone()));
    let every = parent.options.probe_every;
    let looks = tokio::spawn(table_path::watch(parent.table.clone(), every));
    tell(format_args!("listening on http://{address}"));
    for engine in &list {
        tell(format_args!("engine {}", engine.name));
    }

    let why = loop {
        tokio::select! {
            why = end.comes() => break why,
            _ = reloads.recv() => match parent.reload() {
                Ok(engines) => say(format_args!("SIGHUP: {engines} engines")),
                Err(error) => say(format_args!("SIGHUP: {error}; the engines stay as they were")),
            }
        }
    };
    say(format_args!("{why}: finishing what is in flight"));
    // Workers empty the queue before they go; what comes after that is refused, not left waiting.
    drop(socket);
    let _ = stop.send(true);
    while workers.join_next().await.is_some() {}
    probes.abort();
    looks.abort();
    mock_engine::end(mocks).await;
    Ok(())
}

/// The table of this deployment, or the one that the last has left.
fn open(options: &Options) -> Result<Table, Error> {
    let mut table = Table::options()
        .max_engines(MAX_ENGINES)
        .max_frontends(MAX_FRONTENDS)
        .lanes(1); // a worker has one thread
    if let Some(cap) = options.max_in_flight_total {
        table = table.max_in_flight(cap);
    }
    Ok(match &options.table {
        Some(path) => table.open_or_create(path)?,
        None => table.memfd()?,
    })
}

#[derive(Debug)]
struct Parent {
    socket: String,
    table: Table,
    options: Options,
}

impl Parent {
    /// Starts a worker, and another whenever it ends, until all shall stop.
    async fn keep_worker(self: Arc<Self>, mut stopping: watch::Receiver<bool>) {
        let mut short_lives = 0;
        loop {
            let started = Instant::now();
            match self.start_worker() {
                Ok((mut worker, lifeline)) => {
                    let pid = worker.id().unwrap_or_default();
                    tokio::select! {
                        status = worker.wait() => match status {
                            Ok(status) => say(format_args!("worker {pid}: {status}; starting another")),
                            Err(error) => say(format_args!("worker {pid}: {error}; starting another")),
                        },
                        () = told(&mut stopping) => {
                            drop(lifeline);
                            child::finish(worker, self.options.drain_timeout).await;
                        }
                    }
                    self.reap();
                }
                Err(error) => say(format_args!("cannot start a worker: {error}")),
            }
            let is_short = started.elapsed() < SHORT_LIFE;
            short_lives = if is_short { short_lives + 1 } else { 0 };
            let pause = if short_lives > 1 {
                SHORT_LIFE
            } else {
                Duration::ZERO
            };
            // Once told, it is told for ever, so this returns at once then.
            if timeout(pause, told(&mut stopping)).await.is_ok() {
                return;
            }
        }
    }

    /// Worker and lifeline. The lifeline is apart because waiting for a child closes its input.
    fn start_worker(&self) -> io::Result<(Child, Option<ChildStdin>)> {
        let mut command = child::this_program();
        command
            .args(std::env::args_os().skip(1))
            .args(["--lifeline", "--listener", &self.socket]);
        self.table.pass_to(&mut command);
        child::start(command)
    }

    /// What a worker held that has died is free again when this returns.
    fn reap(&self) {
        match self.table.reap() {
            Ok(reaped) if reaped.requests > 0 => {
                say(format_args!(
                    "{} requests of dead workers returned",
                    reaped.requests
                ));
            }
            Ok(_) => {}
            Err(error) => say(format_args!("{error}; trying again soon")),
        }
    }

    fn reload(&self) -> Result<usize, Error> {
        let list: Vec<Entry> = engine_list::read(&self.options)?.ok_or(Error::NoEngines {
            place: "this deployment, which has mock engines,".to_owned(),
        })?;
        engine_list::put_into(&self.table, &list, &self.options)?;
        Ok(list.len())
    }
}

/// Returns when all shall stop.
async fn told(stopping: &mut watch::Receiver<bool>) {
    // Fails if nobody is left to tell, which comes to the same.
    let _ = stopping.wait_for(|stop| *stop).await;
}
