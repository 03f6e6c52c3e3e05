//! The parent: keeps the workers running and the table right.

mod engine_list;
mod outside_changes;
mod probe;
mod systemd;
mod table_path;
mod workers;

use crate::client::listener;
use crate::error::Error;
use crate::keepalive::Keepalive;
use crate::log::{hurry, say, tell};
use crate::mock;
use crate::options::Options;
use crate::parent::outside_changes::{Configuration, lock};
use crate::parent::workers::{Stage, Workers};
use crate::process::shutdown::Shutdown;
use crate::report::counters::Counters;
use crate::route::tenants::Tenants;
use headcount::{Deployment, Table};
use std::fmt::Arguments;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval, sleep};

/// How many engines a table has room for, including those that were removed and still finish.
const MAX_ENGINES: usize = 256;
/// How many workers a table has room for: those of this deployment, and of one before it that still finish.
const MAX_FRONTENDS: usize = 256;
const MOCK_ENGINES: usize = 4;
/// How often to check whether the first worker serves.
const READY_CHECK: Duration = Duration::from_millis(10);

pub(crate) async fn serve(options: Options) -> Result<(), Error> {
    // First, so that the process is prepared for every signal.
    let mut shutdown = Shutdown::watch(false)?;
    let mut reloads =
        signal(SignalKind::hangup()).map_err(|source| Error::system("watch for SIGHUP", source))?;
    if let Some(path) = &options.tenants {
        // The workers read it for themselves.
        drop(Tenants::read(path)?);
    }
    let (list, mocks) = match engine_list::read(&options)? {
        Some(list) => (list, Vec::new()),
        None => mock::start(MOCK_ENGINES).await?,
    };
    let (table, is_new) = open(&options)?;
    let dimensions = table.dimensions();
    if usize::from(options.workers) > dimensions.max_frontends {
        return Err(Error::TooManyWorkers {
            workers: options.workers,
            room: dimensions.max_frontends,
        });
    }
    // One deployment a table: two with different lists would undo each other's engines.
    let deployment = table.deploy()?;
    let changes = engine_list::apply(&deployment, &list, &options)?;
    if !is_new {
        for change in changes {
            say(format_args!(
                "brought the table to the configuration of this deployment: {change}"
            ));
        }
    }
    // After the mock engines, which must not inherit these.
    let socket = listener::bind(options.listen, Keepalive::of_clients(&options))?;
    let counts = Counters::create()?;
    let address = socket
        .local_addr()
        .map_err(|source| Error::system("ask for the address of the socket", source))?;
    let mut workers = Workers::start(&table, &options, &socket, &counts);
    let configuration = Arc::new(Mutex::new(Configuration::of(&table)));
    let probes = probe::probe(table.clone(), options.clone(), Arc::clone(&configuration));
    let probes = tokio::spawn(probes);
    let path_watch = tokio::spawn(table_path::watch(table.clone(), options.probe_every));
    announce(&options, format_args!("listening on http://{address}"));
    for engine in &list {
        announce(&options, format_args!("engine {}", engine.name));
    }

    let running = Running {
        workers: &workers,
        deployment: &deployment,
        options: &options,
        configuration: &configuration,
    };
    let why = running.run(&mut shutdown, &mut reloads).await;
    systemd::notify(systemd::STOPPING);
    let is_forced = {
        let finish = async {
            if !options.shutdown_delay.is_zero() {
                say(format_args!(
                    "{why}: still serving for {} s, while /health says 503",
                    options.shutdown_delay.as_secs_f32()
                ));
                workers.enter(Stage::Draining);
                sleep(options.shutdown_delay).await;
            }
            say(format_args!(
                "{why}: finishing {}, for at most {} s; a second signal ends them at once",
                workers.unfinished(),
                options.drain_timeout.as_secs_f32()
            ));
            // Workers empty the queue of connections before they end; later connections are refused.
            drop(socket);
            workers.enter(Stage::Finishing);
            // The next deployment may start. Both count in this table while this one finishes its requests.
            drop(deployment);
            workers.end().await;
        };
        tokio::select! {
            () = finish => false,
            _ = shutdown.requested() => true,
        }
    };
    if is_forced {
        let left = workers.unfinished();
        say(format_args!("a second signal: ending with {left}"));
        hurry();
        workers.enter(Stage::Ending);
        workers.end().await;
    }
    probes.abort();
    path_watch.abort();
    mock::end(mocks, is_forced).await;
    Ok(())
}

/// A deployment that is running, from its start to the signal that ends it.
struct Running<'a> {
    workers: &'a Workers,
    deployment: &'a Deployment,
    options: &'a Options,
    configuration: &'a Mutex<Configuration>,
}

impl Running<'_> {
    /// Returns when the deployment is to end, with the reason.
    async fn run(&self, shutdown: &mut Shutdown, reloads: &mut Signal) -> &'static str {
        let mut checks = interval(self.options.probe_every);
        checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut ready_checks = interval(READY_CHECK);
        let mut is_ready = false;
        loop {
            tokio::select! {
                why = shutdown.requested() => return why,
                _ = reloads.recv() => self.reload(),
                _ = checks.tick() => self.log_changes(),
                _ = ready_checks.tick(), if !is_ready => if self.workers.are_up() {
                    is_ready = systemd::notify(systemd::READY);
                }
            }
        }
    }

    /// Reads the files again.
    fn reload(&self) {
        if let Some(path) = &self.options.tenants {
            match Tenants::read(path) {
                Ok(_) => {
                    self.workers.reload();
                    say("SIGHUP: read the tenants again");
                }
                Err(error) => say(format_args!(
                    "SIGHUP: {error}; the tenants stay as they were"
                )),
            }
        }
        if self.options.engines_file.is_some() || self.options.tenants.is_none() {
            self.reload_engines();
        }
    }

    fn reload_engines(&self) {
        // Changes up to now are not those of this reload.
        self.log_changes();
        let changes = match self.options.engines_file {
            Some(_) => engine_list::read(self.options).and_then(|list| {
                engine_list::apply(self.deployment, &list.unwrap_or_default(), self.options)
            }),
            None => Err(Error::NoFile),
        };
        match changes {
            Ok(changes) if changes.is_empty() => say("SIGHUP: nothing has changed"),
            Ok(changes) => {
                for change in changes {
                    say(format_args!("SIGHUP: {change}"));
                }
            }
            Err(error @ Error::InPart { .. }) => say(format_args!("SIGHUP: {error}")),
            Err(error) => say(format_args!(
                "SIGHUP: {error}; the engines stay as they were"
            )),
        }
        *lock(self.configuration) = Configuration::of(self.deployment.table());
    }

    /// Logs what other processes have changed in the table.
    fn log_changes(&self) {
        let table = self.deployment.table();
        for line in lock(self.configuration).renew(table, self.options.counts_tokens()) {
            say(line);
        }
    }
}

/// Writes a line to standard output, or to standard error if standard output is for the access log.
fn announce(options: &Options, line: Arguments<'_>) {
    if options.access_log {
        say(line)
    } else {
        tell(line)
    }
}

/// Opens the table that an earlier deployment or an operator has left, whatever its sizes, or makes a new one.
/// Returns whether it is new.
fn open(options: &Options) -> Result<(Table, bool), Error> {
    let new = Table::options()
        .max_engines(MAX_ENGINES)
        .max_frontends(MAX_FRONTENDS)
        .threads(0); // a worker has one thread
    Ok(match &options.table {
        None => (new.memfd()?, true),
        Some(path) => match Table::open(path) {
            Err(headcount::Error::NotFound { .. }) => (new.open_or_create(path)?, true),
            opened => (opened?, false),
        },
    })
}
