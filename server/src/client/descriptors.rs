//! How many clients the descriptors of a process suffice for.
//!
//! A client takes one descriptor, and its request takes another one for the engine. A client is served if
//! both are there, so every client that is served reaches its engine. Some descriptors are kept for further
//! connections: these get our own pages, and any other request on them is refused at once.

use crate::log::say;
use rustix::process::{Resource, getrlimit, setrlimit};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed}; // one thread has them

/// Descriptors for other things: the table, the sockets of the resolver, connections that are being closed.
const OTHER: usize = 48;
/// Connections for our own pages.
const SPARE: usize = 16;

/// Raises the limit of descriptors as far as possible. Its default is low for programs that use select(2).
pub(crate) fn raise() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // A process that may not raise it does with what it has.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Counts the connections of a process's clients.
#[derive(Debug)]
pub(crate) struct Clients {
    most: usize,
    open: AtomicUsize,
    spare: AtomicUsize,
    /// Whether it is logged that there are too many.
    is_logged: AtomicBool,
}

/// The share of the descriptors that a connection has.
#[derive(Debug)]
pub(crate) struct Share {
    clients: Arc<Clients>,
    /// Whether the connection is for our own pages only.
    pub(crate) is_spare: bool,
}

impl Clients {
    pub(crate) fn new() -> Self {
        let limit = getrlimit(Resource::Nofile).current;
        let limit = limit.map_or(usize::MAX, |limit| limit as usize);
        Self {
            most: (limit.saturating_sub(OTHER + SPARE) / 2).max(1),
            open: AtomicUsize::new(0),
            spare: AtomicUsize::new(0),
            is_logged: AtomicBool::new(false),
        }
    }

    /// Returns how many clients are served at most, and so how many connections to engines are needed.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// Whether no further client can be served.
    pub(crate) fn are_full(&self) -> bool {
        self.open.load(Relaxed) >= self.most
    }

    /// Whether most descriptors are in use, so that closing connections must not linger.
    pub(crate) fn are_many(&self) -> bool {
        self.open.load(Relaxed) > self.most - self.most / 4
    }

    /// Whether one more connection may be accepted, even if only for our own pages.
    pub(crate) fn have_room(&self) -> bool {
        !self.are_full() || self.spare.load(Relaxed) < SPARE
    }

    /// Returns the share of a connection that was accepted.
    pub(crate) fn share(self: &Arc<Self>) -> Share {
        let is_spare = self.are_full();
        let count = if is_spare { &self.spare } else { &self.open };
        count.fetch_add(1, Relaxed);
        if is_spare && !self.is_logged.swap(true, Relaxed) {
            say(format_args!(
                "worker {}: the limit of open files (ulimit -n) suffices for {} clients, and there are more; these are answered with 503",
                std::process::id(),
                self.most,
            ));
        }
        let clients = Arc::clone(self);
        Share { clients, is_spare }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let clients = &self.clients;
        let count = if self.is_spare {
            &clients.spare
        } else {
            &clients.open
        };
        let before = count.fetch_sub(1, Relaxed);
        // Log again only after a real fall, not each time that one of very many clients leaves.
        if !self.is_spare && before <= clients.most - clients.most / 4 {
            clients.is_logged.store(false, Relaxed);
        }
    }
}
