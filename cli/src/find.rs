//! Engines by name or number.

use crate::failure::Failure;
use crate::output::printable;
use headcount::{EngineId, EngineState, EngineView, Table, View};
use std::collections::HashMap;

/// An engine that was found: its id, and its name in the table.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Found {
    pub(crate) id: EngineId,
    pub(crate) name: String,
}

/// Finds the engine of that name, or number 3 for `@3`, which is no valid name.
pub(crate) fn find(table: &Table, name: &str) -> Result<Found, Failure> {
    find_all(table, &[name]).map(|mut found| found.remove(0))
}

/// Finds the engines of these names in one view. A later change by their ids changes these engines, or fails if an
/// engine is gone: another one may have its number by then.
pub(crate) fn find_all(table: &Table, names: &[impl AsRef<str>]) -> Result<Vec<Found>, Failure> {
    let view = table.view();
    let ids: HashMap<&str, EngineId> = present(&view).map(|e| (e.name.as_str(), e.id)).collect();
    let find = |name: &str| {
        let by_number = || {
            let number: usize = name.strip_prefix('@')?.parse().ok()?;
            view.engine(number).map(|engine| engine.id)
        };
        ids.get(name).copied().or_else(by_number)
    };
    let found = names.iter().map(AsRef::as_ref).map(|name| {
        let leaving = view
            .engines
            .iter()
            .find(|e| e.state == EngineState::Leaving && e.name == name);
        let found = find(name).and_then(|id| view.engine(id)).or(leaving);
        let found = found.ok_or_else(|| unknown(table, &view, name))?;
        if found.state == EngineState::Leaving {
            return Err(is_leaving(found));
        }
        Ok(Found {
            id: found.id,
            name: found.name.clone(),
        })
    });
    found.collect()
}

/// Refuses names that engines of the table have.
pub(crate) fn not_there<'a>(
    table: &Table,
    names: impl IntoIterator<Item = &'a str>,
) -> Result<(), Failure> {
    let view = table.view();
    for name in names {
        if let Some(engine) = present(&view).find(|engine| engine.name == name) {
            return Err(Failure::name_taken(name, engine.id.index()));
        }
    }
    Ok(())
}

/// The failure of a change to an engine that was removed.
fn is_leaving(engine: &EngineView) -> Failure {
    Failure::failed(format!(
        "engine {:?} is leaving: it was removed, and is gone when what it has in flight ({}) has finished; `headcount add` brings it back",
        printable(&engine.name),
        engine.in_flight
    ))
}

/// The engines that a command can name.
fn present(view: &View) -> impl Iterator<Item = &EngineView> {
    let is_present = |engine: &&EngineView| engine.state != EngineState::Leaving;
    view.engines.iter().filter(is_present)
}

/// How many names a sentence lists.
const LISTED: usize = 8;
/// How alike two names have to be, 0 to 1, for one to be suggested for the other.
const ALIKE: f64 = 0.8;

fn unknown(table: &Table, view: &View, name: &str) -> Failure {
    let likeness = |e: &EngineView| strsim::jaro_winkler(&e.name, name);
    let nearest = present(view).max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    let meant = nearest.filter(|e| likeness(e) >= ALIKE);
    let meant = meant.map_or(String::new(), |e| {
        format!("did you mean {:?}? ", printable(&e.name))
    });
    let names: Vec<_> = present(view).map(|e| printable(&e.name)).collect();
    let listed = names[..names.len().min(LISTED)].join(", ");
    let all = match names.len() {
        0 => "it has no engines; `headcount add` gives it some".to_owned(),
        count if count > LISTED => format!(
            "its engines are {listed} and {} more; `headcount show` lists them",
            count - LISTED
        ),
        1 => format!("its only engine is {listed}"),
        _ => format!("its engines are {listed}"),
    };
    // It may have been meant as a path, which precedes the table that the environment names.
    let no_file = if name.starts_with('/') {
        ", and no file of that name"
    } else {
        ""
    };
    Failure::usage(format!(
        "there is no engine {:?} in {}{no_file}; {meant}{all}",
        printable(name),
        table.path().display()
    ))
}
