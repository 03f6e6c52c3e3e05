//! `headcount rm`.

use crate::failure::{Failure, Outcome};
use crate::output;
use crate::source::{Source, is_at, is_damaged};
use clap::Args;
use headcount::Table;
use std::fs;

/// Remove a table that nobody uses.
///
/// Whoever has it open goes on with what then has no name, so this refuses while a frontend or a
/// publisher lives. One that joins between this look and the removal goes on without a name, too: start
/// nothing meanwhile.
#[derive(Args, Debug)]
pub(crate) struct Rm {
    #[command(flatten)]
    source: Source,
    /// Remove it even if frontends live, or if its header is damaged.
    #[arg(short, long)]
    force: bool,
}

impl Rm {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        let path = self.source.path();
        match self.source.look() {
            Ok(table) => {
                self.refuse_if_used(&table)?;
                if !is_at(&table, path) {
                    return Err(Failure::failed(format!(
                        "{} was replaced by another file meanwhile; look at it, then try again",
                        path.display()
                    )));
                }
            }
            Err(error) if self.force && is_damaged(&error) => {}
            Err(error) => return Err(error.into()),
        }
        fs::remove_file(path).map_err(|error| {
            Failure::no_table(format!(
                "removing {}: {error}; check the permissions of its directory",
                path.display()
            ))
        })?;
        output::print(&format!("removed {}\n", path.display()))?;
        Ok(Outcome::Fine)
    }

    fn refuse_if_used(&self, table: &Table) -> Result<(), Failure> {
        let view = table.snapshot();
        let alive = view.frontends.iter().filter(|frontend| frontend.alive);
        let mut users: Vec<_> = alive
            .map(|frontend| format!("frontend {} (pid {})", frontend.slot, frontend.pid))
            .collect();
        users.extend(view.publisher.map(|pid| format!("publisher (pid {pid})")));
        if self.force || users.is_empty() {
            return Ok(());
        }
        let path = self.source.path().display();
        Err(Failure::failed(format!(
            "{path} is in use by {}; stop them first, or add --force to take the name from under them",
            users.join(", ")
        )))
    }
}
