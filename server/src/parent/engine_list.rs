//! Reads the list of engines from the command line or a file, and applies it to the table.

use crate::engine::entry::EngineEntry;
use crate::error::Error;
use crate::list_file;
use crate::options::Options;
use headcount::{Deployment, Difference, Engine, EngineState, Table};

/// Reads the list that the options give. `None` if they give none.
pub(crate) fn read(options: &Options) -> Result<Option<Vec<EngineEntry>>, Error> {
    let (entries, place) = match &options.engines_file {
        None if options.engines.is_empty() => return Ok(None),
        None => (options.engines.clone(), "--engine".to_owned()),
        Some(path) => {
            let lines = list_file::read(path).map_err(|source| Error::EnginesUnreadable {
                path: path.clone(),
                source,
            })?;
            let entry = |(line, text): (usize, String)| {
                text.parse().map_err(|reason| Error::EnginesMalformed {
                    path: path.clone(),
                    line,
                    reason,
                })
            };
            let entries = lines.into_iter().map(entry).collect::<Result<_, _>>()?;
            (entries, path.display().to_string())
        }
    };
    if !options.counts_tokens() && entries.iter().any(|entry| entry.max_tokens.is_some()) {
        return Err(Error::TokensNotCounted { place });
    }
    if entries.is_empty() {
        return Err(Error::NoEngines { place });
    }
    for (number, entry) in entries.iter().enumerate() {
        if entries[..number].iter().any(|e| e.is_same_engine(entry)) {
            let name = entry.name.clone();
            return Err(Error::Twice { place, name });
        }
    }
    Ok(Some(entries))
}

/// Returns the configuration of the table: the engines of the list with their caps, the cap of all together, and the
/// queue.
pub(crate) fn configuration(list: &[EngineEntry], options: &Options) -> headcount::Options {
    let mut table = Table::options();
    for entry in list {
        let mut engine = Engine::named(&entry.name).weight(entry.weight);
        if let Some(cap) = entry.max_in_flight.or(options.max_in_flight) {
            engine = engine.max_in_flight(cap);
        }
        if let Some(cap) = entry.max_tokens.or(options.max_tokens) {
            engine = engine.max_tokens(cap);
        }
        table = table.engine(engine);
    }
    if let Some(cap) = options.max_in_flight_total {
        table = table.max_in_flight(cap);
    }
    match options.queue {
        Some(bound) => with_queue(table, bound, options),
        None => table,
    }
}

/// Gives the table a queue. Tenants share what the deployment counts.
fn with_queue(table: headcount::Options, bound: u32, options: &Options) -> headcount::Options {
    let table = (table.max_waiting(bound)).share_tokens(options.counts_tokens());
    let of_classes = options.queue_of_class.iter();
    of_classes.fold(table, |table, bound| {
        table.max_waiting_of_class(bound.class, bound.requests)
    })
}

/// Makes the engines of the table those of the list, without disturbing a request: requests on an engine
/// that leaves finish as they would have. An engine of the list that was drained takes requests again; one
/// that is down is left to the probes. Returns what was changed, a line for each change.
pub(crate) fn apply(
    deployment: &Deployment,
    list: &[EngineEntry],
    options: &Options,
) -> Result<Vec<String>, Error> {
    let table = deployment.table();
    let room = table.dimensions().max_engines;
    if list.len() > room {
        let asked = list.len();
        return Err(Error::TooManyEngines { asked, room });
    }
    let wanted = configuration(list, options);
    let before = table.differences(&wanted);
    let changes = match deployment.apply(&wanted) {
        Err(headcount::Error::EnginesFull { .. }) => {
            return Err(in_part(&before, &table.differences(&wanted)));
        }
        changes => changes?,
    };
    let mut lines: Vec<_> = changes.differences.iter().map(line).collect();
    for engine in table.view().engines {
        if engine.state == EngineState::Draining {
            table.up(engine.id)?;
            lines.push(format!("engine {}: takes requests again", engine.name));
        }
    }
    Ok(lines)
}

/// Says which of the wanted changes were made, and which were not.
fn in_part(wanted: &[Difference], left: &[Difference]) -> Error {
    let (left_of_it, changed): (Vec<_>, Vec<_>) =
        (wanted.iter()).partition(|change| left.contains(change));
    let say = |changes: Vec<_>| changes.into_iter().map(line).collect::<Vec<_>>().join(", ");
    Error::InPart {
        changed: say(changed),
        left: say(left_of_it),
    }
}

/// Writes a change. A cap of all engines together has the name that it has in the options and in the command.
fn line(change: &Difference) -> String {
    let (option, found, asked) = (change.option, &change.found, &change.asked);
    match (&change.engine, option) {
        (None, "max_in_flight" | "max_tokens") => format!("{option}_total {found}, now {asked}"),
        _ => change.change(),
    }
}
