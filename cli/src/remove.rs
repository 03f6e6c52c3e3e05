//! `headcount rm`.

use crate::failure::{Failure, Outcome};
use crate::output::{self, printable_path};
use crate::table_arg::{PathArgs, is_damaged};
use clap::Args;
use headcount::{PathState, Table};
use std::fs;
use std::path::Path;

/// Remove a table that no process uses.
///
/// A process that has the table open would go on with a file that has no name. So the command refuses while a
/// frontend, a publisher or a deployment lives. It checks again after the removal, and fails if one has come in
/// between. It cannot find a process that has the table open and joins later: start none meanwhile.
#[derive(Args, Debug)]
pub(crate) struct Rm {
    #[command(flatten)]
    path: PathArgs,
    /// Remove it even if frontends live, or if its header is damaged.
    #[arg(short, long)]
    force: bool,
}

impl Rm {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        let table_arg = self.path.table_arg()?;
        let path = table_arg.path();
        let table = match table_arg.open_read_only() {
            Ok(table) => {
                self.refuse_if_used(&table, path)?;
                if table.path_state()? != PathState::Here {
                    return Err(Failure::failed(format!(
                        "{} was replaced by another file meanwhile; check it, then try again",
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
            "{} still {} the removed table, and a table that is created now counts separately; restart the processes",
            users.join(", "),
            if users.len() == 1 { "has" } else { "have" }
        );
        match self.force {
            // As --force asks for.
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
            "{path} is in use by {}; stop them first, or add --force to remove the name all the same",
            users.join(", ")
        )))
    }
}

/// Returns the living processes that use a table.
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
