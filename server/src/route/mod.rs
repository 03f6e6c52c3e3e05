//! Which engine a request goes to, how much it counts there, and how it waits.

mod affinity;
pub(crate) mod answer_count;
mod json;
pub(crate) mod output;
pub(crate) mod permits;
mod prompt;
pub(crate) mod room;
pub(crate) mod standing;
pub(crate) mod tenants;
mod waiting;

use crate::error::Error;
use crate::log::say;
use crate::options::Options;
use crate::route::affinity::Affinity;
use crate::route::waiting::Queue;
use headcount::{Frontend, Table};
use std::sync::atomic::AtomicUsize;

/// A worker's frontend of the table, with the settings that routing needs.
#[derive(Debug)]
pub(crate) struct Router {
    table: Table,
    frontend: Frontend,
    affinity: Affinity,
    /// How many bytes of a prompt are its beginning.
    affinity_bytes: usize,
    counts_tokens: bool,
    queue: Option<Queue>,
    /// At which engine the next batch waits, if several have as much room.
    turn: AtomicUsize,
}

impl Router {
    /// Joins the table.
    pub(crate) fn join(table: &Table, options: &Options) -> Result<Self, Error> {
        let router = Self {
            frontend: table.join()?.with_policy(options.policy()),
            affinity: Affinity::new(options, table),
            affinity_bytes: options.affinity_bytes,
            counts_tokens: options.counts_tokens(),
            queue: Queue::new(options),
            // Another one in each worker.
            turn: AtomicUsize::new(std::process::id() as usize),
            table: table.clone(),
        };
        // After joining: from now on the parent tells this process of another file.
        router.reload(options);
        Ok(router)
    }

    /// Reads the tenants again.
    pub(crate) fn reload(&self, options: &Options) {
        if let Some(Err(error)) = self
            .queue
            .as_ref()
            .map(|queue| queue.standings.reload(options))
        {
            say(format_args!(
                "worker {}: {error}; the tenants stay as they were here",
                std::process::id()
            ));
        }
    }

    /// Takes the engines for affinity from the table again.
    pub(crate) fn renew_affinity(&self) {
        self.affinity.renew(&self.table);
    }
}
