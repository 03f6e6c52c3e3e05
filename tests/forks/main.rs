//! K2 and K3: children that a library forks without telling this one, forks amid other calls, and file systems.
//!
//! Rules: docs/contract.md.

mod copies;
mod file_systems;
mod handlers;

use std::path::Path;

pub(crate) fn kill_self() -> ! {
    // SAFETY: this process is a scene that is to die.
    unsafe { libc::raise(libc::SIGKILL) };
    unreachable!("killed")
}

/// How many descriptors of a process lead to the file at `path`.
pub(crate) fn descriptors(pid: i32, path: &Path) -> usize {
    let all = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    all.filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok())
        .filter(|target| target == path)
        .count()
}
