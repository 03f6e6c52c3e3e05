//! `headcount dump`.

use crate::failure::{Failure, Outcome};
use crate::output::print;
use crate::table_arg::{PathArgs, is_damaged};
use clap::Args;
use headcount::Error;

/// Print the raw file, each word with its meaning, for a bug report.
///
/// If a table is too damaged to be opened, the command prints what it can read, and the exit status is 1.
#[derive(Args, Debug)]
pub(crate) struct Dump {
    #[command(flatten)]
    path: PathArgs,
}

impl Dump {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        let table_arg = self.path.table_arg()?;
        let error = match table_arg.open_read_only() {
            Ok(table) => {
                print_dump(&table.dump()?)?;
                return Ok(Outcome::Fine);
            }
            Err(error) => error,
        };
        // A file that is no table by its first word may be a table whose first word is damaged.
        let may_be_a_table = is_damaged(&error) || matches!(error, Error::NotATable { .. });
        match table_arg.dump_unopenable() {
            Ok(dump) if may_be_a_table => {
                print_dump(&dump)?;
                Err(Failure::failed(error.to_string()))
            }
            _ => Err(error.into()),
        }
    }
}

fn print_dump(dump: &str) -> Result<(), Failure> {
    print(&format!("headcount {}: {dump}", env!("CARGO_PKG_VERSION")))
}
