//! The one deployment that a table serves.

use crate::algorithm::primitive::Ordering;
use crate::error::{Error, Result};
use crate::shm::layout::DEPLOYMENT_LOCK;
use crate::table::Table;
use crate::table::role::Role;
use std::fmt;

/// The right to say which engines a table has and what its caps are; one process at a time has it.
///
/// It is for the parent of a deployment, which takes it before it changes anything, and keeps it for as
/// long as it runs. So a second deployment that is started on the same table by mistake is told so
/// ([`Error::Deployed`]), and does not take the engines of the first one away. Frontends do not need it,
/// and neither do people who change a table by hand: [`Table::add`], [`Table::drain`] and the like go on
/// to work.
///
/// It goes back when this is dropped or its process dies, whatever it dies of. A forked child does not
/// have it.
#[must_use = "dropping a deployment lets another process take its place"]
pub struct Deployment {
    pub(crate) table: Table,
    pub(crate) role: Role,
}

impl fmt::Debug for Deployment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deployment")
            .field("table", &self.table)
            .finish_non_exhaustive()
    }
}

impl Deployment {
    /// Returns the table that it serves.
    pub fn table(&self) -> &Table {
        &self.table
    }
}

impl Table {
    /// Takes the place of the deployment that this table serves, if no living process has it. Some twenty
    /// system calls. Does not wait for the place, but, as [`join`](Self::join), for forks of other threads that
    /// are under way.
    ///
    /// ```
    /// # fn main() -> Result<(), headcount::Error> {
    /// use headcount::{Error, Table};
    /// let table = Table::options().engines(2).memfd()?;
    /// let deployment = table.deploy()?;
    /// assert!(matches!(table.deploy(), Err(Error::Deployed { .. })));
    /// drop(deployment);
    /// let _next = table.deploy()?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Deployed`], [`Error::ReadOnly`], [`Error::Io`].
    pub fn deploy(&self) -> Result<Deployment> {
        let holder = &self.mapping().control().deployment_pid;
        let role = Role::take(self, DEPLOYMENT_LOCK, holder, "locking the deployment of")?;
        Ok(Deployment {
            table: self.clone(),
            role: role.map_err(|_| self.deployed())?,
        })
    }

    /// The error of a process that is not the deployment.
    pub(crate) fn deployed(&self) -> Error {
        // Relaxed: for a message.
        let pid = (self.mapping().control().deployment_pid).load(Ordering::Relaxed);
        Error::Deployed {
            path: self.path().to_owned(),
            pid: pid as u32,
        }
    }
}
