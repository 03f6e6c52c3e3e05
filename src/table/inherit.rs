//! Passing a table to a child process over `exec`.

use crate::error::{Error, Result};
use crate::shm::TableFile;
use crate::table::Table;
use crate::table::options::Options;
use rustix::io::FdFlags;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Tells a child on which descriptor it finds the table, which file that is, and at which path it was
/// opened: `FD:DEVICE:INODE:PATH`, with an empty path for a memfd.
const VARIABLE: &str = "HEADCOUNT_TABLE_FD";

impl Table {
    /// Lets the child that `command` starts open this table with
    /// [`inherited`](Options::inherited): for a memfd, which has no path, and for children that must
    /// end in this very table whatever lies at its path by then.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), headcount::Error> {
    /// use headcount::{Options, Table};
    /// use std::process::Command;
    /// // In the parent:
    /// let table = Table::options().engines(2).memfd()?;
    /// let mut command = Command::new("worker");
    /// let child = table.pass_to(&mut command).spawn();
    /// // In the child:
    /// let table = Options::default().inherited()?;
    /// # Ok(()) }
    /// ```
    ///
    /// The child finds the descriptor by the variable `HEADCOUNT_TABLE_FD`. Other children of this
    /// process do not get it, and what the child starts once it has called `inherited` does not get it
    /// either.
    pub fn pass_to<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        let table = self.clone();
        let passed = Passed::of(&table);
        command.env(VARIABLE, passed.to_variable());
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
    /// Opens the table that the parent passed with [`Table::pass_to`], and keeps the descriptor from
    /// what this process will start. May be called again.
    ///
    /// The variable stays, also in the environment of what this process starts. It names the file
    /// as well, so that no other file is taken for the table that has come to its number.
    ///
    /// # Errors
    /// [`Error::NotPassed`] if none was passed to this very process, and as [`open`](Self::open).
    pub fn inherited(&self) -> Result<Table> {
        let missing = || Error::NotPassed { variable: VARIABLE };
        let variable = std::env::var_os(VARIABLE).ok_or_else(missing)?;
        let passed = Passed::from_variable(&variable).ok_or_else(missing)?;
        // SAFETY: only borrowed for the calls below, the first of which checks that it is open.
        let fd = unsafe { BorrowedFd::borrow_raw(passed.fd) };
        let stat = rustix::fs::fstat(fd).map_err(|_| missing())?;
        if (stat.st_dev, stat.st_ino) != (passed.device, passed.inode) {
            return Err(missing());
        }
        let file = TableFile::reopen(fd, passed.path, self.allows_any_owner())?;
        let table = self.opened(file)?;
        rustix::io::fcntl_setfd(fd, FdFlags::CLOEXEC)
            .map_err(|e| table.failed("keeping from children", e.into()))?;
        Ok(table)
    }
}

/// The table that is passed to a child.
#[derive(PartialEq, Eq, Debug)]
struct Passed {
    fd: RawFd,
    device: u64,
    inode: u64,
    path: Option<PathBuf>,
}

impl Passed {
    fn of(table: &Table) -> Self {
        let fd = table.as_fd();
        let (device, inode) = table.identity();
        Self {
            fd: fd.as_raw_fd(),
            device,
            inode,
            path: table.absolute_path().map(Path::to_owned),
        }
    }

    fn to_variable(&self) -> OsString {
        let numbers = format!("{}:{:x}:{:x}:", self.fd, self.device, self.inode);
        let mut variable = OsString::from(numbers);
        variable.push(self.path.as_deref().unwrap_or(Path::new("")));
        variable
    }

    fn from_variable(variable: &OsStr) -> Option<Self> {
        let mut parts = variable.as_bytes().splitn(4, |byte| *byte == b':');
        let mut number = |radix| {
            let text = std::str::from_utf8(parts.next()?).ok()?;
            u64::from_str_radix(text, radix).ok()
        };
        let (fd, device, inode) = (number(10)?, number(16)?, number(16)?);
        let path = OsString::from_vec(parts.next()?.to_vec());
        Some(Self {
            fd: RawFd::try_from(fd).ok()?,
            device,
            inode,
            path: (!path.is_empty()).then(|| path.into()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_child_is_told_is_what_it_reads() {
        for path in [
            None,
            Some("/dev/shm/a table: with a colon"),
            Some("/\u{e9}"),
        ] {
            let passed = Passed {
                fd: 7,
                device: 0x1f,
                inode: u64::MAX,
                path: path.map(PathBuf::from),
            };
            assert_eq!(Passed::from_variable(&passed.to_variable()), Some(passed));
        }
    }

    #[test]
    fn f2_nothing_but_what_was_passed_is_read() {
        for bad in [
            "",
            "5",
            "-1:1:1:",
            "5:1:1",
            "5:g:1:",
            "99999999999:1:1:",
            ":::",
        ] {
            assert_eq!(Passed::from_variable(bad.as_ref()), None, "{bad}");
        }
    }
}
