//! How many connections the descriptors of a process are enough for.
//!
//! A client takes one, and its request another one at an engine. Clients for whom there are not both are not
//! served, so that those that are served get to their engines; some descriptors are kept for more connections,
//! on which our own pages can be had, and all else is refused at once.

use crate::log::say;
use rustix::process::{Resource, getrlimit, setrlimit};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed}; // one thread has them

/// Descriptors for all else: the table, the sockets of the resolver, connections that are being closed.
const ELSE: usize = 48;
/// Connections for our own pages.
const SPARE: usize = 16;

/// Raises the limit as far as it may be raised. It is low by default for programs that use select(2).
pub(crate) fn raise() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // It may be kept from that; what there is has to do then.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// The connections of a process's clients.
#[derive(Debug)]
pub(crate) struct Clients {
    most: usize,
    open: AtomicUsize,
    spare: AtomicUsize,
    /// Whether the operator knows that there are too many.
    is_said: AtomicBool,
}

/// A connection's share of the descriptors.
#[derive(Debug)]
pub(crate) struct Share {
    clients: Arc<Clients>,
    /// It is one of those for our own pages.
    pub(crate) is_spare: bool,
}

impl Clients {
    pub(crate) fn new() -> Self {
        let limit = getrlimit(Resource::Nofile).current;
        let limit = limit.map_or(usize::MAX, |limit| limit as usize);
        Self {
            most: (limit.saturating_sub(ELSE + SPARE) / 2).max(1),
            open: AtomicUsize::new(0),
            spare: AtomicUsize::new(0),
            is_said: AtomicBool::new(false),
        }
    }

    /// The most clients that are served, and so the most connections to engines that are needed.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    pub(crate) fn are_full(&self) -> bool {
        self.open.load(Relaxed) >= self.most
    }

    /// Whether descriptors are better kept for those that are still to come.
    pub(crate) fn are_many(&self) -> bool {
        self.open.load(Relaxed) > self.most - self.most / 4
    }

    /// Whether one more connection may be accepted, if only for our own pages.
    pub(crate) fn have_room(&self) -> bool {
        !self.are_full() || self.spare.load(Relaxed) < SPARE
    }

    /// The share of a connection that was accepted.
    pub(crate) fn share(self: &Arc<Self>) -> Share {
        let is_spare = self.are_full();
        let count = if is_spare { &self.spare } else { &self.open };
        count.fetch_add(1, Relaxed);
        if is_spare && !self.is_said.swap(true, Relaxed) {
            say(format_args!(
                "worker {}: the limit of open files (ulimit -n) is enough for {} clients, and there are more; they are answered with 503",
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
        // Not each time that one of very many comes and goes.
        if !self.is_spare && before <= clients.most - clients.most / 4 {
            clients.is_said.store(false, Relaxed);
        }
    }
}
