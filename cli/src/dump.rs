//! `headcount dump`.

use crate::failure::{Failure, Outcome};
use crate::output::print;
use crate::table_arg::{Which, is_damaged};
use clap::Args;
use headcount::Error;

/// Print the raw file, each word with what it means, for a bug report.
///
/// Of a table that is too damaged to be opened, what can be read is printed all the same; then the
/// exit status is 1.
#[derive(Args, Debug)]
pub(crate) struct Dump {
    #[command(flatten)]
    which: Which,
}

impl Dump {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        let source = self.which.source()?;
        let error = match source.look() {
            Ok(table) => {
                say(&table.dump()?)?;
                return Ok(Outcome::Fine);
            }
            Err(error) => error,
        };
        // What is no table by its first word may be one whose first word is damaged.
        let may_be_a_table = is_damaged(&error) || matches!(error, Error::NotATable { .. });
        match source.dump_unopenable() {
            Ok(dump) if may_be_a_table => {
                say(&dump)?;
                Err(Failure::failed(error.to_string()))
            }
            _ => Err(error.into()),
        }
    }
}

fn say(dump: &str) -> Result<(), Failure> {
    print(&format!("headcount {}: {dump}", env!("CARGO_PKG_VERSION")))
}
