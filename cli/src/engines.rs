//! Commands that change engines: drain, undrain, down, up, remove, add, weight.

use crate::create::described;
use crate::engine_form::{EachCaps, TypedEngine, a_weight, each_once};
use crate::failure::{Failure, Outcome};
use crate::find::{find, find_all, not_there};
use crate::output::{print, printable};
use crate::table_arg::{Owner, TableArg};
use clap::Args;
use headcount::{EngineId, Error, Table};
use std::ffi::OsString;

/// Engines of a table.
#[derive(Args, Debug)]
pub(crate) struct EngineArgs {
    /// The table (unless HEADCOUNT_TABLE names it), then engines by name, or by number as @0.
    #[arg(value_name = "PATH|ENGINE")]
    arguments: Vec<OsString>,
    #[command(flatten)]
    owner: Owner,
}

/// A change to each of the engines.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    Drain,
    Down,
    Up,
    Remove,
}

impl EngineArgs {
    pub(crate) fn run(self, change: Change) -> Result<Outcome, Failure> {
        let (table_arg, names) = TableArg::split(&self.arguments, self.owner)?;
        if names.is_empty() {
            return Err(Failure::usage(
                "which engine? give its name, or its number as @0",
            ));
        }
        let table = table_arg.open()?;
        // All of them are found before any is changed.
        let engines = find_all(&table, &names)?;
        each_once(engines.iter().map(|engine| engine.name.as_str()))?;
        let mut changed = Vec::new();
        let failed = engines.into_iter().find_map(|engine| {
            let done = change.apply(&table, engine.id);
            done.map(|()| changed.push(engine)).err()
        });
        let view = table.view();
        let mut said = String::new();
        for engine in changed {
            // A removed engine without requests in flight is gone.
            let left = view.engine(engine.id).map_or(0, |e| e.in_flight);
            let (name, done) = (printable(&engine.name), change.done());
            said += &format!("{name}: {done}, {left} in flight\n");
        }
        print(&said)?;
        failed.map_or(Ok(Outcome::Fine), |error| Err(error.into()))
    }
}

impl Change {
    fn apply(self, table: &Table, engine: EngineId) -> Result<(), Error> {
        match self {
            Self::Drain => table.drain(engine),
            Self::Down => table.down(engine),
            Self::Up => table.up(engine),
            Self::Remove => table.remove(engine).map(drop),
        }
    }

    fn done(self) -> &'static str {
        match self {
            Self::Drain => "drains",
            Self::Down => "is down",
            Self::Up => "takes requests",
            Self::Remove => "removed",
        }
    }
}

/// Add engines to a table.
#[derive(Args, Debug)]
#[command(override_usage = "headcount add [PATH] ENGINE... [--max-in-flight N] [--max-tokens N]")]
pub(crate) struct Add {
    /// The table (unless HEADCOUNT_TABLE names it), then engines, each as NAME, NAME=WEIGHT or
    /// "NAME [weight=W] [max_in_flight=N] [max_tokens=N]".
    #[arg(value_name = "PATH|ENGINE")]
    arguments: Vec<OsString>,
    #[command(flatten)]
    caps: EachCaps,
    #[command(flatten)]
    owner: Owner,
}

impl Add {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        let (table_arg, words) = TableArg::split(&self.arguments, self.owner)?;
        if words.is_empty() {
            return Err(Failure::usage(
                "which engine? give its name, as NAME or NAME=WEIGHT",
            ));
        }
        let typed: Result<Vec<TypedEngine>, _> = words.iter().map(|word| word.parse()).collect();
        let typed = typed.map_err(Failure::usage)?;
        each_once(typed.iter().map(|typed| typed.name.as_str()))?;
        let table = table_arg.open()?;
        // None is added if the table has one of the names already.
        not_there(&table, typed.iter().map(|typed| typed.name.as_str()))?;
        for typed in typed {
            let id = table.add(typed.engine(self.caps))?;
            let view = table.view();
            // Another process may have removed it already.
            let described = view.engine(id).map_or("and gone".to_owned(), described);
            let name = printable(&typed.name);
            print(&format!("{name}: added as {id}, {described}\n"))?;
        }
        Ok(Outcome::Fine)
    }
}

/// Change an engine's weight: its capacity, compared with the other engines.
#[derive(Args, Debug)]
#[command(override_usage = "headcount weight [PATH] ENGINE WEIGHT")]
pub(crate) struct Weight {
    /// The table (unless HEADCOUNT_TABLE names it), the engine, and its weight, a number above 0.
    #[arg(value_name = "PATH|ENGINE|WEIGHT", allow_negative_numbers = true)]
    arguments: Vec<OsString>,
    #[command(flatten)]
    owner: Owner,
}

impl Weight {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        let (table_arg, words) = TableArg::split(&self.arguments, self.owner)?;
        let [name, text] = words.as_slice() else {
            return Err(Failure::usage(
                "which weight? give one engine and its weight, a number above 0",
            ));
        };
        let weight = a_weight(text).map_err(Failure::usage)?;
        let table = table_arg.open()?;
        let engine = find(&table, name)?;
        table.set_weight(engine.id, weight)?;
        print(&format!("{}: weight {weight}\n", printable(&engine.name)))?;
        Ok(Outcome::Fine)
    }
}
