//! A thread that reaps in the background.

use crate::error::Result;
use crate::shm::ProcessToken;
use crate::table::Table;
use std::fmt;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

const SHORTEST_PERIOD: Duration = Duration::from_millis(1);

/// A thread that reaps a table at intervals, until this is dropped.
#[must_use = "dropping a reaper ends its thread"]
pub struct Reaper {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    last_error: Arc<Mutex<Option<String>>>,
    process: ProcessToken,
}

impl Table {
    /// Reaps every `period` from a thread of this process, so that the places of a dead frontend are free
    /// again within that time even if no process joins or finds the table full.
    ///
    /// ```
    /// # fn main() -> Result<(), headcount::Error> {
    /// use headcount::Table;
    /// use std::time::Duration;
    /// let table = Table::options().engines(2).memfd()?;
    /// let reaper = table.reap_every(Duration::from_millis(100))?;
    /// // ... for as long as this process serves:
    /// assert_eq!(reaper.last_error(), None);
    /// # Ok(()) }
    /// ```
    ///
    /// Useful in one process of a deployment, such as the parent; harmless in all of them. A reap
    /// that fails is tried again at the next interval; see [`Reaper::last_error`].
    ///
    /// A period of less than a millisecond counts as one: a reap costs a system call for each
    /// living frontend, and a thread that did nothing else would keep a processor busy.
    ///
    /// # Errors
    /// [`Error::ReadOnly`](crate::Error::ReadOnly), [`Error::Io`](crate::Error::Io).
    pub fn reap_every(&self, period: Duration) -> Result<Reaper> {
        self.reap()?;
        let period = period.max(SHORTEST_PERIOD);
        let failed = |e| self.failed("starting a reaper for", e);
        let process = ProcessToken::current().map_err(failed)?;
        let (stop, stopped) = channel();
        let last_error = Arc::new(Mutex::new(None));
        let (table, noted) = (self.clone(), Arc::clone(&last_error));
        let thread = thread::Builder::new()
            .name("headcount-reap".to_owned())
            .spawn(move || {
                while stopped.recv_timeout(period) == Err(RecvTimeoutError::Timeout) {
                    let failed = table.reap().err().map(|error| error.to_string());
                    let failed = failed.or_else(|| table.path_trouble());
                    if let Ok(mut last_error) = noted.lock() {
                        *last_error = failed;
                    }
                }
            })
            .map_err(failed)?;
        Ok(Reaper {
            stop: Some(stop),
            thread: Some(thread),
            last_error,
            process,
        })
    }
}

impl fmt::Debug for Reaper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reaper")
            .field("last_error", &self.last_error())
            .finish_non_exhaustive()
    }
}

impl Reaper {
    /// The error of the last reap, if that failed; it is tried again at the next interval. Or that the
    /// table does not lie at its path any more, see [`Table::path_state`]. `None` in a forked child, which
    /// has no such thread.
    pub fn last_error(&self) -> Option<String> {
        if !self.process.is_current() {
            // The thread may have held the lock at the fork, and in the child it never lets go.
            return None;
        }
        self.last_error.lock().map_or(None, |error| error.clone())
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        let (stop, thread) = (self.stop.take(), self.thread.take());
        if !self.process.is_current() {
            // A forked child does not have that thread: it can neither tell it anything nor wait for it.
            std::mem::forget((stop, thread));
            return;
        }
        drop(stop);
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}
