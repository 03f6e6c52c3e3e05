//! `headcount apply`.

use crate::caps::TotalCaps;
use crate::engine_form::EngineList;
use crate::failure::{Failure, Outcome};
use crate::output::{print, printable};
use crate::table_arg::{Source, Which};
use clap::Args;
use headcount::{Difference, Error, Options, Table};

/// Bring a living table to a list of engines and caps, and print what was changed.
///
/// Engines that are not in the list are removed, and what is in flight on them finishes. Those that are in
/// both keep what is in flight, and their state: one that is drained or down stays so. A cap that is not
/// given is no cap. Refused while a deployment serves the table, unless there is nothing to change.
#[derive(Args, Debug)]
pub(crate) struct Apply {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    engines: EngineList,
    #[command(flatten)]
    totals: TotalCaps,
    /// Print what would be changed, and change nothing. Ends with 1 if a deployment refuses it.
    #[arg(long)]
    dry_run: bool,
}

impl Apply {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        let engines = self.engines.read()?;
        if engines.is_empty() {
            let advice = "; `headcount remove` takes engines away";
            return Err(self.engines.none(advice));
        }
        let mut options = self.totals.set_in(Table::options());
        for engine in engines {
            options = options.engine(engine);
        }
        let source = self.which.source()?;
        if self.dry_run {
            return dry_run(&source, &options);
        }
        let table = source.open()?;
        let wanted = table.differences(&options);
        // Also if there is nothing to be seen: another process may have died when it had come so far.
        let changed = match table.apply(&options) {
            Err(Error::Deployed { .. }) if wanted.is_empty() => Vec::new(),
            Err(Error::EnginesFull { .. }) => {
                return Err(changed_in_part(&table, &options, &wanted));
            }
            result => result?.differences,
        };
        match changed.is_empty() {
            true => print("nothing to change\n")?,
            false => print(&changed.iter().map(line).collect::<String>())?,
        }
        Ok(Outcome::Fine)
    }
}

/// Says what would be changed, and fails if that would be refused.
fn dry_run(source: &Source, options: &Options) -> Result<Outcome, Failure> {
    let table = source.look()?;
    let wanted = table.differences(options);
    if wanted.is_empty() {
        print("nothing to change\n")?;
        return Ok(Outcome::Fine);
    }
    let wanted: String = wanted.iter().map(line).collect();
    print(&format!("{wanted}nothing was changed: --dry-run\n"))?;
    match table.view().deployment {
        Some(pid) => Err(Failure::deployed(source.path(), pid)),
        None => Ok(Outcome::Fine),
    }
}

/// What was changed before there was no slot for the rest, and the rest.
fn changed_in_part(table: &Table, options: &Options, wanted: &[Difference]) -> Failure {
    let left = table.differences(options);
    let changed = wanted.iter().filter(|change| !left.contains(change));
    if let Err(failure) = print(&changed.map(line).collect::<String>()) {
        return failure;
    }
    let left: Vec<_> = left.iter().map(line).collect();
    Failure::failed(format!(
        "some engines could not be added before others that leave have finished; apply it again then, for what is left: {}",
        left.concat().trim_end().replace('\n', ", ")
    ))
}

/// A change as it is printed; caps of the whole table by the names of their flags.
fn line(change: &Difference) -> String {
    let (option, found, asked) = (change.option, &change.found, &change.asked);
    match &change.engine {
        Some(_) => format!("{}\n", printable(&change.change())),
        None => format!("{option}_total {found}, now {asked}\n"),
    }
}
