//! A forked child that does one thing and reports the result.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::marker::PhantomData;
use std::os::fd::AsRawFd;

/// How long a child may take, in seconds, before it is ended by SIGALRM.
pub(crate) const PATIENCE: u32 = 60;

/// A forked child that acts at once, reports an `R`, and lives on until this is dropped.
#[derive(Debug)]
pub struct Forked<R> {
    pid: libc::pid_t,
    pipe: PipeReader,
    reports: PhantomData<R>,
}

impl<R: Serialize + DeserializeOwned> Forked<R> {
    /// Forks a child that does `act`, which leaks whatever the child keeps.
    ///
    /// This process must have one thread, so that the child may do anything.
    pub fn start(act: impl FnOnce() -> R) -> io::Result<Self> {
        let (pipe, to_parent) = io::pipe()?;
        // SAFETY: there is one thread, and the child leaves by a signal only.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                drop(pipe);
                let _ends = EndsHere;
                // SAFETY: ends a child that takes too long.
                unsafe { libc::alarm(PATIENCE) };
                tell(to_parent, &act());
                loop {
                    // SAFETY: waits for a signal.
                    unsafe { libc::pause() };
                }
            }
            pid => Ok(Self {
                pid,
                pipe,
                reports: PhantomData,
            }),
        }
    }

    /// Waits until the child has reported, or sleeps before it has. Returns whether it sleeps.
    pub fn is_kept_waiting(&self) -> io::Result<bool> {
        loop {
            // In this order: a child that has reported sleeps, too.
            let sleeps = crate::state(self.pid) == Some('S');
            if self.has_reported()? {
                return Ok(false);
            }
            if sleeps {
                return Ok(true);
            }
            std::thread::yield_now();
        }
    }

    /// Whether the child has reported, or ended without.
    pub fn has_reported(&self) -> io::Result<bool> {
        let mut poll = libc::pollfd {
            fd: self.pipe.as_raw_fd(),
            events: 0,
            revents: 0,
        };
        // SAFETY: reads and writes this one structure, and does not wait.
        match unsafe { libc::poll(&raw mut poll, 1, 0) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(poll.revents & libc::POLLHUP != 0),
        }
    }

    /// Waits for the report. To be called once.
    pub fn report(&mut self) -> io::Result<R> {
        told(&mut self.pipe)
    }
}

impl<R> Drop for Forked<R> {
    fn drop(&mut self) {
        kill(self.pid);
    }
}

/// Ends a child that panics, which must not go on as its parent.
pub(crate) struct EndsHere;

impl Drop for EndsHere {
    fn drop(&mut self) {
        // SAFETY: ends this child.
        unsafe { libc::_exit(101) };
    }
}

/// Writes a report, and closes the pipe. It must be short enough for the pipe to hold.
pub(crate) fn tell(mut pipe: PipeWriter, report: &impl Serialize) {
    let bytes = serde_json::to_vec(report).expect("a report can be written");
    pipe.write_all(&bytes).expect("the parent lives");
}

/// Reads a report.
pub(crate) fn told<R: DeserializeOwned>(pipe: &mut PipeReader) -> io::Result<R> {
    let mut bytes = Vec::new();
    pipe.read_to_end(&mut bytes)?;
    serde_json::from_slice(&bytes)
        .map_err(|_| io::Error::other("a child ended before it had reported"))
}

/// SIGKILL for a child, and waits until it is gone.
pub(crate) fn kill(pid: libc::pid_t) {
    // SAFETY: the process is a child of ours that was not waited for to its end.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    let mut status = 0;
    // SAFETY: waits for a child of ours; writes to the integer only.
    while unsafe { libc::waitpid(pid, &raw mut status, 0) } != -1 && libc::WIFSTOPPED(status) {}
}
