//! What is left of the old and the new configuration when a process was killed in an apply.

use crate::Result;
use crate::operation::{CAP, Operation, asked};
use headcount::{EngineState, Error, Options, Table};
use std::path::Path;

/// Fails unless what is there is valid, processes that open the table are told of it as the documentation
/// says, and another apply does the rest. Not to be asked while another process may be changing the table.
pub(crate) fn is_completed(table: &Table, path: &Path, has_ended: bool) -> Result<()> {
    let created = Operation::Apply.created();
    has_no_faults(table)?;
    let found = Shown::of(table);
    // Whether or not the apply had begun, what is there fits; what it has changed in part fits neither.
    fits(&created, path, found == Shown::of(&created.memfd()?))?;
    fits(&asked(), path, found == Shown::of(&asked().memfd()?))?;
    if has_ended {
        fits(&asked(), path, true)?;
    }
    table.apply(&asked())?;
    match table.apply(&asked())? {
        changes if changes.is_empty() => {}
        changes => return Err(format!("to apply once more changed something: {changes}").into()),
    }
    fits(&created, path, false)?;
    fits(&asked(), path, true)?;
    // What an operator changes keeps no process out.
    table.set_total_max_in_flight(Some(CAP - 1))?;
    fits(&asked(), path, true)?;
    table.apply(&asked())?;
    has_no_faults(table)
}

fn has_no_faults(table: &Table) -> Result<()> {
    match table.verify()?.faults.as_slice() {
        [] => Ok(()),
        faults => Err(format!("the table has faults: {faults:?}").into()),
    }
}

/// Fails unless a process with these options opens the table, or is told of a difference.
fn fits(options: &Options, path: &Path, expected: bool) -> Result<()> {
    match (options.open_or_create(path), expected) {
        (Ok(_), true) | (Err(Error::Differs { .. }), false) => Ok(()),
        (Ok(_), false) => Err(format!("{options:?} should differ").into()),
        (Err(error), _) => Err(error.into()),
    }
}

/// A table as a process that opens it may ask for it.
#[derive(PartialEq)]
struct Shown {
    /// Name, weight and caps of each engine that is not removed.
    engines: Vec<(String, f32, Option<u32>, Option<u32>)>,
    max_in_flight: Option<u32>,
    max_tokens: Option<u32>,
}

impl Shown {
    fn of(table: &Table) -> Self {
        let view = table.view();
        let mut engines: Vec<_> = (view.engines.into_iter())
            .filter(|engine| engine.state == EngineState::Active)
            .map(|engine| {
                let caps = (engine.max_in_flight, engine.max_tokens);
                (engine.name, engine.weight, caps.0, caps.1)
            })
            .collect();
        engines.sort_by(|a, b| a.0.cmp(&b.0));
        Self {
            engines,
            max_in_flight: view.max_in_flight,
            max_tokens: view.max_tokens,
        }
    }
}
