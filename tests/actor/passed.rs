//! What the children of a process that has inherited a table get of it.

use crate::Failure;
use headcount_tests::{Actor, Task};
use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The file that a child has at the number of the table that this process was passed.
pub(crate) fn child_has_table() -> Result<PathBuf, Failure> {
    let link = format!("/proc/self/fd/{}", number()?);
    let said = Command::new("readlink").arg(link).output()?;
    Ok(String::from_utf8_lossy(&said.stdout).trim().into())
}

/// Has a child inherit, too. With a path, the child has the file there at the number of the table.
pub(crate) fn child_inherits(path: Option<&Path>) -> Result<(), Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    if let Some(path) = path {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let number = number()?;
        let put_there = move || {
            // SAFETY: makes a copy of one descriptor of the child's own.
            match unsafe { libc::dup2(file.as_raw_fd(), number) } {
                -1 => Err(io::Error::last_os_error()),
                _ => Ok(()),
            }
        };
        // SAFETY: between fork and exec this makes one system call, and allocates nothing.
        unsafe { command.pre_exec(put_there) };
    }
    let inherit = Task::Inherit { threads: None };
    Ok(Actor::start_by(&mut command).attempt(&inherit)?)
}

fn number() -> Result<i32, Failure> {
    let variable = std::env::var("HEADCOUNT_TABLE_FD")?;
    let number = variable.split(':').next().unwrap_or_default();
    Ok(number.parse()?)
}
