//! `headcount apply`.

use crate::caps::TotalCaps;
use crate::engine_form::EngineList;
use crate::failure::{Failure, Outcome};
use crate::output::{print, printable};
use crate::queue::QueueArgs;
use crate::table_arg::{PathArgs, TableArg};
use clap::Args;
use headcount::{Difference, Error, Options, Table};

/// Bring a living table to a list of engines and caps, and print the changes.
///
/// Engines that are not in the list are removed, and the requests in flight on them finish. Engines that stay
/// keep their requests in flight and their state: one that is drained or down stays so. A cap that is not given
/// is no cap, and without --max-waiting the table has no queue: requests that wait then wait on. The command refuses while a deployment serves the table, unless there is nothing to change.
#[derive(Args, Debug)]
pub(crate) struct Apply {
    #[command(flatten)]
    path: PathArgs,
    #[command(flatten)]
    engines: EngineList,
    #[command(flatten)]
    totals: TotalCaps,
    #[command(flatten)]
    queue: QueueArgs,
    /// Print the changes, and make none. Ends with 1 if a deployment would refuse them.
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
        let options = self.totals.set_in(Table::options());
        let mut options = self.queue.set_in(options).map_err(Failure::usage)?;
        for engine in engines {
            options = options.engine(engine);
        }
        let table_arg = self.path.table_arg_or_engine("--engine")?;
        if self.dry_run {
            return dry_run(&table_arg, &options);
        }
        let table = table_arg.open()?;
        let wanted = table.differences(&options);
        // Also if there is no difference: it completes a change in which another process died.
        let changed = match table.apply(&options) {
            Err(Error::Deployed { .. }) if wanted.is_empty() => Vec::new(),
            Err(Error::EnginesFull { .. }) => {
                return Err(changed_in_part(&table, &options, &wanted));
            }
            result => result?.differences,
        };
        if changed.is_empty() {
            print("nothing to change\n")?;
        } else {
            print(&changed.iter().map(line).collect::<String>())?;
        }
        Ok(Outcome::Fine)
    }
}

/// Prints the changes, and fails if they would be refused.
fn dry_run(table_arg: &TableArg, options: &Options) -> Result<Outcome, Failure> {
    let table = table_arg.open_read_only()?;
    let wanted = table.differences(options);
    if wanted.is_empty() {
        print("nothing to change\n")?;
        return Ok(Outcome::Fine);
    }
    let wanted: String = wanted.iter().map(line).collect();
    print(&format!("{wanted}nothing was changed: --dry-run\n"))?;
    match table.view().deployment {
        Some(pid) => Err(Failure::deployed(table_arg.path(), pid)),
        None => Ok(Outcome::Fine),
    }
}

/// Prints the changes that were made, and returns a failure with those for which there was no slot.
fn changed_in_part(table: &Table, options: &Options, wanted: &[Difference]) -> Failure {
    let left = table.differences(options);
    let changed = wanted.iter().filter(|change| !left.contains(change));
    if let Err(failure) = print(&changed.map(line).collect::<String>()) {
        return failure;
    }
    let left: Vec<_> = left.iter().map(line).collect();
    Failure::failed(format!(
        "some engines have no slot until the requests of leaving engines have finished; apply again then, for what is left: {}",
        left.concat().trim_end().replace('\n', ", ")
    ))
}

/// Returns the line of a change. Caps of the whole table have the names of their flags.
fn line(change: &Difference) -> String {
    let (option, found, asked) = (change.option, &change.found, &change.asked);
    match (&change.engine, option) {
        (Some(_), _) => format!("{}\n", printable(&change.change())),
        (None, "max_in_flight" | "max_tokens") => {
            format!("{option}_total {found}, now {asked}\n")
        }
        (None, _) => format!("{option} {found}, now {asked}\n"),
    }
}
