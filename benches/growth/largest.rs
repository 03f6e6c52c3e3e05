//! A table of 4,096 engines and 1,024 frontends, each a process, which is created, joined, used, shown, killed and
//! reaped.

use headcount::Table;
use headcount_yardstick::{MeasureError, Processes};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};
use std::time::Instant;

const ENGINES: usize = 4096;
const FRONTENDS: usize = 1024;
/// The most that a table of so many frontends allows.
const LANES: usize = 3;
/// What each frontend has in flight.
const EACH: usize = 8;

pub(crate) fn used() -> Result<Value, MeasureError> {
    allow_files()?;
    let directory = tempfile::tempdir_in("/dev/shm")?;
    let path = directory.path().join("largest");
    let options = Table::options()
        .engines(ENGINES)
        .max_frontends(FRONTENDS)
        .threads(LANES - 1);
    let (create, table) = timed(|| Ok(options.create(&path)?))?;
    let bytes = std::fs::metadata(&path)?.len();
    let (start_and_join, mut frontends) = timed(|| {
        Processes::start(FRONTENDS, |_| {
            let frontend = table.join()?;
            let mut permits = Vec::new();
            Ok(move |_: &[u64]| -> Result<Vec<u64>, MeasureError> {
                permits.extend(frontend.route_many(EACH)?);
                Ok(vec![permits.len() as u64])
            })
        })
    })?;
    let (route, _) = timed(|| frontends.ask(&[]))?;
    let (show, view) = timed(|| Ok(table.view()))?;
    let in_flight: Vec<_> = view.engines.iter().map(|e| e.in_flight as usize).collect();
    expect("frontends", view.frontends.len(), FRONTENDS)?;
    expect(
        "requests in flight",
        in_flight.iter().sum(),
        FRONTENDS * EACH,
    )?;
    let even = FRONTENDS * EACH / ENGINES;
    for count in in_flight {
        expect("requests on each engine", count, even)?;
    }
    drop(frontends); // which kills them
    let (reap, reaped) = timed(|| Ok(table.reap()?))?;
    expect("reaped frontends", reaped.frontends, FRONTENDS)?;
    expect(
        "reaped requests",
        reaped.requests as usize,
        FRONTENDS * EACH,
    )?;
    Ok(json!({
        "engines": ENGINES,
        "frontends": FRONTENDS,
        "lanes": LANES,
        "bytes": bytes,
        "in_flight_on_each_engine": even,
        "milliseconds": {
            "create": create,
            "start_and_join_all": start_and_join,
            "route_8_in_each": route,
            "show": show,
            "reap_all": reap,
        },
    }))
}

/// What something returns, and how many milliseconds it took.
fn timed<T>(what: impl FnOnce() -> Result<T, MeasureError>) -> Result<(f64, T), MeasureError> {
    let start = Instant::now();
    let result = what()?;
    Ok((start.elapsed().as_secs_f64() * 1e3, result))
}

fn expect(what: &str, found: usize, expected: usize) -> Result<(), MeasureError> {
    if found == expected {
        return Ok(());
    }
    Err(MeasureError(format!(
        "the largest table shows {found} {what} instead of {expected}"
    )))
}

/// A line to each frontend is an open file.
fn allow_files() -> Result<(), MeasureError> {
    let needed = FRONTENDS as u64 * 2 + 100;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|files| files >= needed) {
        return Ok(());
    }
    let raised = Rlimit {
        current: Some(needed),
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, raised).map_err(|error| {
        MeasureError(format!(
            "{FRONTENDS} processes need {needed} open files here, which the limit forbids: {error}; \
             see `ulimit -Hn`"
        ))
    })
}
