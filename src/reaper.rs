//! A thread that reaps in the background.

use crate::error::Result;
use crate::file::Birth;
use crate::table::Table;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A thread that reaps a table at intervals, until this is dropped.
#[derive(Debug)]
pub struct Reaper {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    birth: Birth,
}

impl Table {
    /// Reaps every `period` from a thread of this process, so that what a dead frontend held is free
    /// again within that time even if nobody joins and nobody finds the table full.
    ///
    /// Useful in one process of a deployment, such as the parent; harmless in all of them. A reap
    /// that fails is tried again at the next interval.
    ///
    /// # Errors
    /// [`Error::ReadOnly`](crate::Error::ReadOnly), [`Error::Io`](crate::Error::Io).
    pub fn reap_every(&self, period: Duration) -> Result<Reaper> {
        self.reap()?;
        let failed = |e| self.failed("starting a reaper for", e);
        let birth = Birth::here().map_err(failed)?;
        let (stop, stopped) = channel();
        let table = self.clone();
        let thread = thread::Builder::new()
            .name("headcount-reap".to_owned())
            .spawn(move || {
                while stopped.recv_timeout(period) == Err(RecvTimeoutError::Timeout) {
                    let _ = table.reap();
                }
            })
            .map_err(failed)?;
        Ok(Reaper {
            stop: Some(stop),
            thread: Some(thread),
            birth,
        })
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        drop(self.stop.take());
        let Some(thread) = self.thread.take() else {
            return;
        };
        if self.birth.is_here() {
            let _ = thread.join();
        } else {
            // A forked child does not have that thread, and cannot wait for it.
            std::mem::forget(thread);
        }
    }
}
