//! `headcount rm`.

use crate::failure::{Failure, Outcome};
use crate::output::{self, printable_path};
use crate::table_arg::{Which, is_at, is_damaged};
use clap::Args;
use headcount::Table;
use std::fs;
use std::path::Path;

/// Remove a table that nobody uses.
///
/// A process that has it open goes on with what then has no name, so this refuses while a frontend, a
/// publisher or a deployment lives. It looks again afterwards, and says so if one has come in between; one that has
/// the table open and joins later goes unseen: start nothing meanwhile.
#[derive(Args, Debug)]
pub(crate) struct Rm {
    #[command(flatten)]
    which: Which,
    /// Remove it even if frontends live, or if its header is damaged.
    #[arg(short, long)]
    force: bool,
}

impl Rm {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        let source = self.which.source()?;
        let path = source.path();
        let table = match source.look() {
            Ok(table) => {
                self.refuse_if_used(&table, path)?;
                if !is_at(&table, path) {
                    return Err(Failure::failed(format!(
                        "{} was replaced by another file meanwhile; look at it, then try again",
                        path.display()
                    )));
                }
                Some(table)
            }
            Err(error) if self.force && is_damaged(&error) => None,
            Err(error) => return Err(error.into()),
        };
        fs::remove_file(path).map_err(|error| {
            Failure::no_table(format!(
                "removing {}: {error}; check the permissions of its directory",
                path.display()
            ))
        })?;
        output::print(&format!("removed {}\n", printable_path(path)))?;
        let users = table.as_ref().map(users).unwrap_or_default();
        if users.is_empty() {
            return Ok(Outcome::Fine);
        }
        let said = format!(
            "{} still {} the removed table, and the next to create one counts apart from it; start anew what uses it",
            users.join(", "),
            if users.len() == 1 { "has" } else { "have" }
        );
        match self.force {
            // As was asked for.
            true => output::print(&format!("{said}\n")).map(|()| Outcome::Fine),
            false => Err(Failure::failed(said)),
        }
    }

    fn refuse_if_used(&self, table: &Table, path: &Path) -> Result<(), Failure> {
        let users = users(table);
        if self.force || users.is_empty() {
            return Ok(());
        }
        let path = path.display();
        Err(Failure::failed(format!(
            "{path} is in use by {}; stop them first, or add --force to take the name from under them",
            users.join(", ")
        )))
    }
}

/// Those that have a place in a table, and live.
fn users(table: &Table) -> Vec<String> {
    let view = table.view();
    let alive = view.frontends.iter().filter(|frontend| frontend.alive);
    let mut users: Vec<_> = alive
        .map(|frontend| format!("frontend {} (pid {})", frontend.slot, frontend.pid))
        .collect();
    let deployment = view.deployment;
    users.extend(deployment.map(|pid| format!("deployment (pid {pid})")));
    users.extend(view.publisher.map(|pid| format!("publisher (pid {pid})")));
    users
}
