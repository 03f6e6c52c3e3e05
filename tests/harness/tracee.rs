//! A forked child that is led through an operation instruction by instruction.

use crate::forked::{EndsHere, PATIENCE, tell, told};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, PipeReader};
use std::marker::PhantomData;

/// A child that has stopped right before its operation, or somewhere in it.
///
/// It reports an `R` when the operation has ended.
#[derive(Debug)]
pub struct Tracee<R> {
    pid: libc::pid_t,
    ended: bool,
    pipe: PipeReader,
    reports: PhantomData<R>,
}

impl<R: Serialize + DeserializeOwned> Tracee<R> {
    /// Forks a child that prepares itself, stops, performs its operation, stops again, and makes its
    /// report of what came of the operation once it is [asked](Self::report). It lives on after that.
    ///
    /// This process must have one thread, so that the child may do anything.
    pub fn fork<P, D>(
        prepare: impl FnOnce() -> P,
        operation: impl FnOnce(P) -> D,
        report: impl FnOnce(D) -> R,
    ) -> io::Result<Self> {
        let (pipe, to_parent) = io::pipe()?;
        // SAFETY: there is one thread, and the child leaves by `_exit` only.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                drop(pipe);
                let _ends = EndsHere;
                // SAFETY: ends a child that nothing leads on.
                unsafe { libc::alarm(PATIENCE) };
                let prepared = prepare();
                // SAFETY: lets the parent trace this child.
                unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) };
                stop();
                let done = operation(prepared);
                stop();
                tell(to_parent, &report(done));
                stop();
                // SAFETY: ends this child.
                unsafe { libc::_exit(0) }
            }
            pid => {
                let tracee = Self {
                    pid,
                    ended: false,
                    pipe,
                    reports: PhantomData,
                };
                tracee.wait_for(libc::SIGSTOP)?;
                Ok(tracee)
            }
        }
    }

    /// Lets the child execute one instruction. False if the operation has ended.
    pub fn step(&mut self) -> io::Result<bool> {
        self.go(libc::PTRACE_SINGLESTEP)?;
        match self.wait()? {
            libc::SIGTRAP => {}
            libc::SIGSTOP => self.ended = true,
            other => return Err(stopped_by(other)),
        }
        Ok(!self.ended)
    }

    /// Lets the child go on to the end of its operation.
    pub fn finish(&mut self) -> io::Result<()> {
        if !self.ended {
            self.go(libc::PTRACE_CONT)?;
            self.wait_for(libc::SIGSTOP)?;
            self.ended = true;
        }
        Ok(())
    }

    /// What the child reports of its operation, which it ends first. To be asked for once.
    pub fn report(&mut self) -> io::Result<R> {
        self.finish()?;
        self.go(libc::PTRACE_CONT)?;
        self.wait_for(libc::SIGSTOP)?;
        told(&mut self.pipe)
    }

    fn go(&self, how: libc::c_uint) -> io::Result<()> {
        // SAFETY: the child is ours, traced and stopped; this only lets it go on.
        match unsafe { libc::ptrace(how, self.pid, 0, 0) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }

    fn wait_for(&self, signal: i32) -> io::Result<()> {
        match self.wait()? {
            found if found == signal => Ok(()),
            other => Err(stopped_by(other)),
        }
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

impl<R> Drop for Tracee<R> {
    /// SIGKILL, wherever the child is, and waits until it is gone.
    fn drop(&mut self) {
        crate::forked::kill(self.pid);
    }
}

/// Stops this process until its parent lets it go on.
fn stop() {
    // SAFETY: stops this process only.
    unsafe { libc::raise(libc::SIGSTOP) };
}

fn stopped_by(signal: i32) -> io::Error {
    io::Error::other(match signal {
        libc::SIGALRM => format!("the child had not ended after {PATIENCE} s"),
        _ => format!("the child was stopped by signal {signal}"),
    })
}
