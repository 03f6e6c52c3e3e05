//! Forks in the middle of a reap.

use headcount::Table;
use std::io;

/// Forks children while another thread reaps all the time; each child reaps, too.
pub(crate) fn fork_meanwhile(table: &Table, count: usize) -> io::Result<()> {
    let reaping = table.clone();
    // It ends with this process.
    std::thread::spawn(move || while reaping.reap().is_ok() {});
    for _ in 0..count {
        std::thread::sleep(std::time::Duration::from_micros(300));
        // SAFETY: the child ends by `_exit` or by its alarm.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: ends this child should it hang.
            unsafe { libc::alarm(10) };
            let reaps = table.reap().is_ok();
            // SAFETY: ends this child.
            unsafe { libc::_exit(i32::from(!reaps)) };
        }
        let mut status = 0;
        // SAFETY: waits for the child of ours; writes to the integer only.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        if status != 0 {
            return Err(io::Error::other(format!("a child ended with {status:#x}")));
        }
    }
    Ok(())
}
