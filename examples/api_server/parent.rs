//! The parent: keeps the workers alive and the table true.

use crate::configuration::Configuration;
use crate::counters::Counters;
use crate::engine_list::{self, Entry};
use crate::error::Error;
use crate::keepalive::Keepalive;
use crate::lifeline::End;
use crate::notice::{requests, say, tell};
use crate::options::Options;
use crate::workers::{Stage, Workers};
use crate::{listener, mock_engine, probe, systemd, table_path};
use headcount::{Deployment, Table};
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval, sleep};

/// How many engines a table has room for, those included that were removed and still finish.
const MAX_ENGINES: usize = 256;
/// How many workers: those of this deployment, and of one before it that still finish.
const MAX_FRONTENDS: usize = 256;
const MOCK_ENGINES: usize = 4;
/// How often the first worker is looked for.
const LOOK: Duration = Duration::from_millis(10);

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
    // One deployment a table: with another one's engines this one would serve what it does not know.
    let deployment = table.deploy()?;
    let had_engines = !table.snapshot().engines.is_empty();
    let changes = engine_list::apply(&deployment, &list, &options)?;
    if had_engines {
        for change in changes {
            say(format_args!("the table has changed: {change}"));
        }
    }
    // After the mock engines, which shall not inherit them.
    let socket = listener::bind(options.listen, Keepalive::of_clients(&options))?;
    let counts = Counters::create()?;
    let address = socket
        .local_addr()
        .map_err(|source| Error::system("ask for the address of the socket", source))?;
    let mut workers = Workers::start(&table, &options, &socket, &counts);
    let probes = tokio::spawn(probe::probe(table.clone(), options.clone()));
    let looks = tokio::spawn(table_path::watch(table.clone(), options.probe_every));
    tell(format_args!("listening on http://{address}"));
    for engine in &list {
        tell(format_args!("engine {}", engine.name));
    }

    let why = run(&mut end, &mut reloads, &workers, &deployment, &options).await;
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
                "{why}: finishing {} in flight, for at most {} s; a second signal ends them at once",
                requests(workers.in_flight()),
                options.drain_timeout.as_secs_f32()
            ));
            // Workers empty the queue before they go; what comes after that is refused, not left waiting.
            drop(socket);
            workers.enter(Stage::Finishing);
            // The next one may come, and has the same table for what this one still finishes.
            drop(deployment);
            workers.end().await;
        };
        tokio::select! {
            () = finish => false,
            _ = end.comes() => true,
        }
    };
    if is_forced {
        let left = requests(workers.in_flight());
        say(format_args!(
            "a second signal: ending with {left} in flight"
        ));
        workers.enter(Stage::Ending);
        workers.end().await;
    }
    probes.abort();
    looks.abort();
    mock_engine::end(mocks, is_forced).await;
    Ok(())
}

/// Returns when it is time to end, and says why.
async fn run(
    end: &mut End,
    reloads: &mut Signal,
    workers: &Workers,
    deployment: &Deployment,
    options: &Options,
) -> &'static str {
    let mut configuration = Configuration::of(deployment.table());
    let mut glances = interval(options.probe_every);
    glances.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut looks = interval(LOOK);
    let mut is_up = false;
    loop {
        tokio::select! {
            why = end.comes() => return why,
            _ = reloads.recv() => {
                match reload(deployment, options) {
                    Ok(changes) if changes.is_empty() => say("SIGHUP: nothing has changed"),
                    Ok(changes) => {
                        for change in changes {
                            say(format_args!("SIGHUP: {change}"));
                        }
                    }
                    Err(error) => say(format_args!("SIGHUP: {error}; the engines stay as they were")),
                }
                configuration = Configuration::of(deployment.table());
            }
            _ = glances.tick() => {
                for change in configuration.renew(deployment.table()) {
                    say(format_args!("another process has changed the table: {change}"));
                }
            }
            _ = looks.tick(), if !is_up => if workers.are_up() {
                is_up = systemd::notify(systemd::READY);
            }
        }
    }
}

/// The table of this deployment, or the one that the last has left, whatever its sizes.
fn open(options: &Options) -> Result<Table, Error> {
    let new = Table::options()
        .max_engines(MAX_ENGINES)
        .max_frontends(MAX_FRONTENDS)
        .lanes(1); // a worker has one thread
    Ok(match &options.table {
        None => new.memfd()?,
        Some(path) => match Table::open(path) {
            Err(headcount::Error::NotFound { .. }) => new.open_or_create(path)?,
            opened => opened?,
        },
    })
}

fn reload(deployment: &Deployment, options: &Options) -> Result<Vec<String>, Error> {
    let list: Vec<Entry> = engine_list::read(options)?.ok_or(Error::NoEngines {
        place: "this deployment, which has mock engines,".to_owned(),
    })?;
    engine_list::apply(deployment, &list, options)
}
