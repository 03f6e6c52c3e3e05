//! Whether a table's file still lies where it was opened.
//!
//! A file that is removed or replaced while processes have it mapped goes on without a name. The next
//! process to open the path finds nothing, or another file, and so there are two tables, each of which
//! admits as much as its caps allow. That process cannot know; those that have the old table can.

use crate::error::Result;
use crate::table::Table;
use rustix::io::Errno;
use std::path::Path;

/// Whether the table still lies at its path; from [`Table::path_state`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PathState {
    /// This table: a process that opens the path comes here.
    Here,
    /// Nothing: the table was removed, renamed or moved. The next `open_or_create` makes another.
    Gone,
    /// Another file: a process that opens the path counts there, or fails.
    Replaced,
    /// The table has no path: it is a memfd, or was opened by its descriptor.
    NoPath,
}

impl PathState {
    /// Returns its name: `here`, `gone`, `replaced` or `none`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Here => "here",
            Self::Gone => "gone",
            Self::Replaced => "replaced",
            Self::NoPath => "none",
        }
    }

    /// Whether a process that opens the path counts in another table, or soon may.
    pub fn is_split(self) -> bool {
        matches!(self, Self::Gone | Self::Replaced)
    }
}

impl Table {
    /// Returns whether this table still lies at its path, as this process sees it. One system call.
    ///
    /// A path that was relative is that of the directory in which this process was when it opened the
    /// table. One that was passed with [`pass_to`](Self::pass_to) has its parent's path.
    ///
    /// A deployment whose table is [`Gone`](PathState::Gone) or [`Replaced`](PathState::Replaced) is
    /// about to count in two tables: start its processes anew. [`reap_every`](Self::reap_every) looks
    /// at each interval and says so in [`Reaper::last_error`](crate::Reaper::last_error).
    ///
    /// ```
    /// # fn main() -> Result<(), headcount::Error> {
    /// use headcount::{PathState, Table};
    /// # let path = format!("/dev/shm/headcount-path-{}", std::process::id());
    /// let table = Table::options().engines(2).open_or_create(&path)?;
    /// assert_eq!(table.path_state()?, PathState::Here);
    /// std::fs::remove_file(&path).expect("it is there");
    /// assert_eq!(table.path_state()?, PathState::Gone);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), if this process may not look there any more.
    pub fn path_state(&self) -> Result<PathState> {
        let Some(path) = self.absolute_path() else {
            return Ok(PathState::NoPath);
        };
        match rustix::fs::lstat(path) {
            Ok(found) if (found.st_dev, found.st_ino) == self.identity() => Ok(PathState::Here),
            Ok(_) => Ok(PathState::Replaced),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(PathState::Gone),
            Err(error) => Err(self.failed("looking for", error.into())),
        }
    }

    /// Says what to do if the file does not lie at its path any more.
    pub(crate) fn path_trouble(&self) -> Option<String> {
        // That it may not be looked at says nothing.
        let what = match self.path_state() {
            Ok(PathState::Gone) => "was removed or renamed",
            Ok(PathState::Replaced) => "was replaced by another file",
            _ => return None,
        };
        let path = self.absolute_path().unwrap_or(Path::new("")).display();
        Some(format!(
            "{path} {what} while this process uses it, and those that open it from now on count in another table; start all processes that use it anew"
        ))
    }
}
