//! The directory of one run: its table and its sockets, gone when the run is over.

use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::error::Error;

/// Shared memory, where the table belongs. Sockets do not mind.
const SHARED_MEMORY: &str = "/dev/shm";

/// A fresh directory, removed with everything in it on drop.
#[derive(Debug)]
pub(crate) struct Scratch {
    dir: TempDir,
}

/// Where the processes of a run find the table and each other.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Places {
    dir: PathBuf,
}

impl Scratch {
    /// In shared memory, or where temporary files go on a host that has none to offer.
    pub(crate) fn new() -> Result<Self, Error> {
        let create = |parent: &Path| {
            tempfile::Builder::new()
                .prefix("headcount-burst-")
                .tempdir_in(parent)
        };
        let fallback = std::env::temp_dir();
        create(Path::new(SHARED_MEMORY))
            .or_else(|_| create(&fallback))
            .map(|dir| Self { dir })
            .map_err(|source| Error::Scratch {
                path: fallback,
                source,
            })
    }

    pub(crate) fn places(&self) -> Places {
        Places {
            dir: self.dir.path().to_owned(),
        }
    }
}

impl Places {
    pub(crate) fn table(&self) -> PathBuf {
        self.dir.join("table")
    }

    /// The counters of a strategy that shares them without a table.
    pub(crate) fn counters(&self) -> PathBuf {
        self.dir.join("counters")
    }

    pub(crate) fn coordinator(&self) -> PathBuf {
        self.dir.join("coordinator.sock")
    }

    pub(crate) fn engine(&self, engine: usize) -> PathBuf {
        self.dir.join(format!("engine-{engine}.sock"))
    }
}

pub(crate) fn listen(at: &Path) -> Result<UnixListener, Error> {
    UnixListener::bind(at).map_err(|source| socket_error("listen at", at, source))
}

pub(crate) fn connect(to: &Path) -> Result<UnixStream, Error> {
    UnixStream::connect(to).map_err(|source| socket_error("connect to", to, source))
}

fn socket_error(what: &str, path: &Path, source: io::Error) -> Error {
    Error::System {
        what: format!("{what} {}", path.display()),
        source,
    }
}
