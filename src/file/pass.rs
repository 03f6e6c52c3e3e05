//! Passing a table to a child process over `exec`.

use crate::error::{Error, Result};
use crate::options::Options;
use crate::table::Table;
use rustix::io::FdFlags;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// Names the descriptor on which a child finds the table.
const VARIABLE: &str = "HEADCOUNT_TABLE_FD";

impl Table {
    /// Lets the child that `command` starts open this table with
    /// [`inherited`](Options::inherited): for a memfd, which has no path.
    ///
    /// Only that child gets the descriptor; its number goes by the variable `HEADCOUNT_TABLE_FD`.
    pub fn pass_to<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        let table = self.clone();
        command.env(VARIABLE, table.as_fd().as_raw_fd().to_string());
        let keep_over_exec = move || {
            rustix::io::fcntl_setfd(&table, FdFlags::empty())?;
            Ok(())
        };
        // SAFETY: between fork and exec this makes one system call on the child's own copy of the
        // descriptor, and allocates nothing.
        unsafe { command.pre_exec(keep_over_exec) }
    }
}

impl Options {
    /// Opens the table that the parent passed with [`Table::pass_to`].
    ///
    /// # Errors
    /// [`Error::NotFound`] if none was passed, and as [`open`](Self::open).
    pub fn inherited(&self) -> Result<Table> {
        let missing = || Error::NotFound {
            path: PathBuf::from(format!("the table named by {VARIABLE}")),
        };
        let number = std::env::var(VARIABLE).map_err(|_| missing())?;
        let fd: RawFd = number.parse().map_err(|_| missing())?;
        if fd < 0 {
            return Err(missing());
        }
        // SAFETY: only borrowed for the call below, which checks that it is open, and what it is.
        let fd = unsafe { BorrowedFd::borrow_raw(fd) };
        match self.from_fd(fd) {
            Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Err(missing())
            }
            result => result,
        }
    }
}
