//! A forked child that is led through an operation instruction by instruction.

use std::io;

/// A child that has stopped right before its operation.
pub(crate) struct Tracee {
    pid: libc::pid_t,
    ended: bool,
}

impl Tracee {
    /// Forks a child that prepares itself, stops, performs its operation and stops again.
    ///
    /// This process must have one thread, so that the child may do anything.
    pub(crate) fn fork<T>(
        prepare: impl FnOnce() -> T,
        operation: impl FnOnce(T),
    ) -> io::Result<Self> {
        // SAFETY: there is one thread, and the child leaves by `_exit` only.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                let prepared = prepare();
                // SAFETY: lets the parent trace this child.
                unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) };
                // SAFETY: stops this child until the parent lets it go on.
                unsafe { libc::raise(libc::SIGSTOP) };
                operation(prepared);
                // SAFETY: as above; this stop says that the operation has ended.
                unsafe { libc::raise(libc::SIGSTOP) };
                // SAFETY: ends this child.
                unsafe { libc::_exit(0) }
            }
            pid => {
                let tracee = Self { pid, ended: false };
                match tracee.wait()? {
                    libc::SIGSTOP => Ok(tracee),
                    other => Err(io::Error::other(format!(
                        "the child stopped by signal {other}"
                    ))),
                }
            }
        }
    }

    /// Lets the child execute one instruction. False if the operation has ended.
    pub(crate) fn step(&mut self) -> io::Result<bool> {
        // SAFETY: the child is ours, traced and stopped; this only lets it go on.
        let went = unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, self.pid, 0, 0) };
        if went == -1 {
            return Err(io::Error::last_os_error());
        }
        match self.wait()? {
            libc::SIGTRAP => {}
            libc::SIGSTOP => self.ended = true,
            other => {
                return Err(io::Error::other(format!(
                    "the child stopped by signal {other}"
                )));
            }
        }
        Ok(!self.ended)
    }

    /// The signal by which the child has stopped.
    fn wait(&self) -> io::Result<i32> {
        let mut status = 0;
        // SAFETY: waits for a child of ours; writes to the integer only.
        if unsafe { libc::waitpid(self.pid, &raw mut status, 0) } == -1 {
            return Err(io::Error::last_os_error());
        }
        match libc::WIFSTOPPED(status) {
            true => Ok(libc::WSTOPSIG(status)),
            false => Err(io::Error::other(format!("the child ended: {status:#x}"))),
        }
    }
}

impl Drop for Tracee {
    /// SIGKILL, wherever the child is, and waits until it is gone.
    fn drop(&mut self) {
        // SAFETY: the process is a child of ours that was not waited for to its end.
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
        let mut status = 0;
        // SAFETY: waits for a child of ours; writes to the integer only.
        while unsafe { libc::waitpid(self.pid, &raw mut status, 0) } != -1
            && !libc::WIFSIGNALED(status)
        {}
    }
}
