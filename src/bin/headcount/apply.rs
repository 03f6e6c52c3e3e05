//! `headcount apply`.

use crate::caps::TotalCaps;
use crate::engine_form::EngineList;
use crate::failure::{Failure, Outcome};
use crate::output::{print, printable};
use crate::source::{Source, Which};
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
    /// Print what would be changed, and change nothing.
    #[arg(long)]
    dry_run: bool,
}

impl Apply {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        let engines = self.engines.read()?;
        if engines.is_empty() {
            return Err(Failure::usage(
                "which engines? give --engine or --engines-file; `headcount remove` takes engines away",
            ));
        }
        let mut options = self.totals.set_in(Table::options());
        for engine in engines {
            options = options.engine(engine);
        }
        let source = self.which.source()?;
        let wanted = self.wanted(&source, &options)?;
        if wanted.is_empty() {
            print("nothing to change\n")?;
        } else if self.dry_run {
            print(&format!(
                "{}nothing was changed: --dry-run\n",
                wanted.concat()
            ))?;
        } else {
            let changes = source.open()?.apply(&options).map_err(failed)?;
            print(&changes.differences.iter().map(line).collect::<String>())?;
        }
        Ok(Outcome::Fine)
    }

    /// What would be changed, a line each.
    fn wanted(&self, source: &Source, options: &Options) -> Result<Vec<String>, Failure> {
        let view = source.look()?.snapshot();
        let mut wanted = Vec::new();
        // Opening compares what the options set, and one that they do not set is to become none.
        for (option, has, asked) in [
            ("max_in_flight", view.max_in_flight, self.totals.requests()),
            ("max_tokens", view.max_tokens, self.totals.tokens()),
        ] {
            let say = |cap: Option<u32>| cap.map_or("none".to_owned(), |cap| cap.to_string());
            if has != asked {
                wanted.push(of_the_table(option, &say(has), &say(asked)));
            }
        }
        match source.look_if(options) {
            Ok(_) => {}
            Err(Error::Differs { differences, .. }) => {
                let of_engines = differences.iter().filter(|d| d.engine.is_some());
                wanted.extend(of_engines.map(line));
            }
            Err(error) => return Err(error.into()),
        }
        Ok(wanted)
    }
}

/// Where a part was changed, it is said that the rest was not.
fn failed(error: Error) -> Failure {
    match error {
        Error::EnginesFull { max_engines } => Failure::failed(format!(
            "some engines were not added, since all {max_engines} slots are taken, and all else was changed; apply it again when the engines that leave have finished"
        )),
        error => error.into(),
    }
}

/// A change as it is printed; caps of the whole table by the names of their flags.
fn line(change: &Difference) -> String {
    let (option, found, asked) = (change.option, &change.found, &change.asked);
    match &change.engine {
        Some(name) => {
            let name = printable(name);
            match change {
                _ if change.is_missing_engine() => format!("engine {name}: added\n"),
                _ if change.is_surplus_engine() => format!("engine {name}: removed\n"),
                _ => format!("engine {name}: {option} {found}, now {asked}\n"),
            }
        }
        None => of_the_table(option, found, asked),
    }
}

fn of_the_table(option: &str, found: &str, asked: &str) -> String {
    format!("{option}_total {found}, now {asked}\n")
}
