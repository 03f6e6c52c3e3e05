//! `headcount dump`.

use crate::failure::{Failure, Outcome};
use crate::output::print;
use crate::source::Source;
use clap::Args;

/// Print the raw file, each word with what it means, for a bug report.
#[derive(Args, Debug)]
pub(crate) struct Dump {
    #[command(flatten)]
    source: Source,
}

impl Dump {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        let table = self.source.look()?;
        let version = env!("CARGO_PKG_VERSION");
        print(&format!("headcount {version}: {}", table.dump()?))?;
        Ok(Outcome::Fine)
    }
}
