//! The parent: keeps the workers alive and the table true.

use crate::counters::Counters;
use crate::engine_list::{self, Entry};
use crate::error::Error;
use crate::keepalive::Keepalive;
use crate::lifeline::End;
use crate::notice::{say, tell};
use crate::options::Options;
use crate::workers::{Stage, Workers};
use crate::{listener, mock_engine, probe, systemd, table_path};
use headcount::Table;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{interval, sleep};

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
    engine_list::put_into(&table, &list, &options)?;
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

    let why = run(&mut end, &mut reloads, &workers, &table, &options).await;
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
                "{why}: finishing {} requests in flight, for at most {} s; a second signal ends them at once",
                workers.in_flight(),
                options.drain_timeout.as_secs_f32()
            ));
            // Workers empty the queue before they go; what comes after that is refused, not left waiting.
            drop(socket);
            workers.enter(Stage::Finishing);
            workers.end().await;
        };
        tokio::select! {
            () = finish => false,
            _ = end.comes() => true,
        }
    };
    if is_forced {
        let left = workers.in_flight();
        say(format_args!(
            "a second signal: ending with {left} requests in flight"
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
    table: &Table,
    options: &Options,
) -> &'static str {
    let mut looks = interval(LOOK);
    let mut is_up = false;
    loop {
        tokio::select! {
            why = end.comes() => return why,
            _ = reloads.recv() => match reload(table, options) {
                Ok(engines) => say(format_args!("SIGHUP: {engines} engines")),
                Err(error) => say(format_args!("SIGHUP: {error}; the engines stay as they were")),
            },
            _ = looks.tick(), if !is_up => if workers.are_up() {
                is_up = true;
                systemd::notify(systemd::READY);
            }
        }
    }
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

fn reload(table: &Table, options: &Options) -> Result<usize, Error> {
    let list: Vec<Entry> = engine_list::read(options)?.ok_or(Error::NoEngines {
        place: "this deployment, which has mock engines,".to_owned(),
    })?;
    engine_list::put_into(table, &list, options)?;
    Ok(list.len())
}
