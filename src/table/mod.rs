//! The table: the shared file, from which users get everything else.

pub(crate) mod options;

pub(crate) mod bounds;
mod change;
pub(crate) mod configuration;
mod dimensions;
pub(crate) mod engine;
pub(crate) mod engine_id;
pub(crate) mod engines;
mod inherit;
mod limits;
pub(crate) mod path_state;
mod reaper;
pub(crate) mod refusals;
pub(crate) mod role;
mod waking;

pub use configuration::{Changes, Deployment};
pub use dimensions::Dimensions;
pub use engine::{Engine, EngineState};
pub use engine_id::{EngineId, EngineSelector};
pub use limits::{MAX_ENGINES, MAX_FRONTENDS, MAX_IN_FLIGHT, MAX_NAME_LEN};
pub use options::Options;
pub use path_state::PathState;
pub use reaper::Reaper;
pub use refusals::Refusals;

use crate::error::{Error, Result};
use crate::shm::layout::Header;
use crate::shm::{Access, LockFile, Mapping, TableFile, holder};
use crate::table::engines::Engines;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// A table that processes of one host share: exact in-flight counts and the last statistics of each
/// engine.
///
/// A handle is cheap to clone and may be used from any thread. It holds nothing in the table: only a
/// [`Frontend`](crate::Frontend), a [`Permit`](crate::Permit) or a
/// [`Publisher`](crate::Publisher) does. A forked child may go on using it, to join for itself, say.
///
/// Put the file on a tmpfs such as `/dev/shm`. A table that another program truncates while it is
/// mapped is out of contract: the kernel answers with SIGBUS. [`Options::memfd`] makes tables for
/// which that cannot happen.
#[derive(Clone)]
pub struct Table {
    file: Arc<TableFile>,
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("path", &self.path())
            .field("access", &self.access())
            .finish_non_exhaustive()
    }
}

/// The places that a [`Table::reap`] has returned to the engines.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Reaped {
    /// Dead frontends.
    pub frontends: usize,
    /// Requests that they had in flight.
    pub requests: u64,
    /// The tokens of these requests.
    pub tokens: u64,
    /// Requests of theirs that waited for a place.
    pub waiting: u64,
}

impl Table {
    /// Returns options that set nothing yet, to create or open a table by.
    pub fn options() -> Options {
        Options::default()
    }

    /// Opens the table at `path`, whatever it was created with. Returns what dead frontends held.
    ///
    /// # Errors
    /// As [`Options::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::options().open(path)
    }

    /// Opens the table at `path` to look at it only: read permission suffices, and nothing in it is
    /// changed, not even by a reap.
    ///
    /// # Errors
    /// As [`Options::open`].
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self> {
        Self::options().open_read_only(path)
    }

    /// Returns to the engines the places that dead frontends held. Those that live are left alone; a stopped
    /// process lives.
    ///
    /// ```
    /// # fn main() -> Result<(), headcount::Error> {
    /// let table = headcount::Table::options().engines(2).memfd()?;
    /// let reaped = table.reap()?;
    /// assert_eq!((reaped.frontends, reaped.requests), (0, 0), "no frontend has died");
    /// # Ok(()) }
    /// ```
    ///
    /// Also done by opening, by [`join`](Self::join), by a `route` that finds everything at its cap
    /// (at most a hundred times a second), and in the background by
    /// [`reap_every`](Self::reap_every). Costs one system call for each living frontend, and needs no
    /// descriptor but one that the table has had since it was opened; a second thread that reaps at the
    /// same time needs another.
    ///
    /// The places of a dead frontend stay counted while another process that was reaping it is stopped,
    /// and while the kernel has not ended it yet: a process that is killed gives its memory back first,
    /// and one that crashes writes its core before that (1.5 GB: 0.2 s, and 2.4 s). Where that matters, let
    /// frontends of large memory run with `ulimit -c 0`, or, where cores go to a program
    /// (`/proc/sys/kernel/core_pattern` begins with `|`) and that limit is not heeded, with
    /// `echo 0 >/proc/self/coredump_filter` before they start.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::Io`].
    pub fn reap(&self) -> Result<Reaped> {
        self.writable()?;
        let registry = self.mapping().registry();
        let returned = self.file.with_spare_lock(|lock| registry.reap(lock));
        let returned = returned.map_err(|e| self.failed("reaping", e))?;
        if returned.frontends > 0 {
            self.wake_next(None);
        }
        Ok(Reaped {
            frontends: returned.frontends,
            requests: returned.requests,
            tokens: returned.tokens,
            waiting: returned.waiting,
        })
    }

    /// Reaps, unless another thread of this process does. Says whether that freed something.
    pub(crate) fn reap_unless_busy(&self) -> bool {
        let registry = self.mapping().registry();
        let reaped = (self.file).with_free_spare_lock(|lock| registry.reap(lock));
        let has_freed = matches!(reaped, Some(Ok(returned)) if returned.frontends > 0);
        if has_freed {
            self.wake_next(None);
        }
        has_freed
    }

    /// Reaps, and waits for others who are reaping already. Not for ever: one that is stopped is a
    /// living process, which keeps what it reaps.
    pub(crate) fn reap_to_the_end(&self) -> Result<()> {
        const PATIENCE: Duration = Duration::from_millis(200);
        let registry = self.mapping().registry();
        let start = Instant::now();
        let pause = || {
            thread::sleep(Duration::from_millis(1));
            start.elapsed() < PATIENCE
        };
        self.file
            .with_spare_lock(|lock| registry.reap_to_the_end(lock, pause))
            .map_err(|e| self.failed("reaping", e))?;
        self.wake_next(None);
        Ok(())
    }

    /// Whether the frontend in a slot lives. `None`: there is none. A lock that cannot be asked for
    /// says nothing of a death.
    pub(crate) fn is_alive(&self, slot: usize) -> Option<bool> {
        let registry = self.mapping().registry();
        registry
            .is_alive(slot, || holder(self.as_fd(), slot))
            .unwrap_or(Some(true))
    }

    /// Where the table lies, as it was opened, or as its parent opened it that passed it on. For a memfd
    /// a name that no other process can open. Whether it still lies there: [`Self::path_state`].
    pub fn path(&self) -> &Path {
        &self.file.path
    }

    /// Where the table lies, whatever this process's directory is by now. `None`: it has no path.
    pub(crate) fn absolute_path(&self) -> Option<&Path> {
        self.file.absolute_path.as_deref()
    }

    /// Which file it is: its device and its number there.
    pub(crate) fn identity(&self) -> (u64, u64) {
        self.file.identity
    }

    pub(crate) fn from_file(file: TableFile) -> Self {
        Self {
            file: Arc::new(file),
        }
    }

    #[inline]
    pub(crate) fn mapping(&self) -> &Mapping {
        &self.file.mapping
    }

    #[inline]
    pub(crate) fn engines(&self) -> Engines<'_> {
        Engines::of(&self.file.mapping)
    }

    #[inline]
    pub(crate) fn header(&self) -> &Header {
        &self.file.header
    }

    pub(crate) fn access(&self) -> Access {
        self.file.access
    }

    pub(crate) fn lock_file(&self) -> Result<LockFile> {
        LockFile::open(self.as_fd()).map_err(|e| self.failed("opening anew", e))
    }

    pub(crate) fn failed(&self, doing: &'static str, source: io::Error) -> Error {
        Error::Io {
            doing,
            path: self.file.path.clone(),
            source,
        }
    }
}

/// The table's file. Pass it to a child that is to open the same table with
/// [`Options::from_fd`](crate::Options::from_fd); [`Table::pass_to`] does so for a child that is
/// about to be spawned.
impl AsFd for Table {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.file.as_fd()
    }
}
