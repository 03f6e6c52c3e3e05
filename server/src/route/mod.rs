//! Which engine a request goes to, and how much it counts there.

mod affinity;
pub(crate) mod answer_count;
mod json;
pub(crate) mod output;
pub(crate) mod permits;
mod prompt;
pub(crate) mod room;

use crate::error::Error;
use crate::options::Options;
use crate::route::affinity::Affinity;
use headcount::{Frontend, Table};

/// A worker's frontend of the table, with the settings that routing needs.
#[derive(Debug)]
pub(crate) struct Router {
    table: Table,
    frontend: Frontend,
    affinity: Affinity,
    /// How many bytes of a prompt are its beginning.
    affinity_bytes: usize,
    counts_tokens: bool,
}

impl Router {
    /// Joins the table.
    pub(crate) fn join(table: &Table, options: &Options) -> Result<Self, Error> {
        Ok(Self {
            frontend: table.join()?.with_policy(options.policy()),
            affinity: Affinity::new(options, table),
            affinity_bytes: options.affinity_bytes,
            counts_tokens: options.counts_tokens(),
            table: table.clone(),
        })
    }

    /// Takes the engines for affinity from the table again.
    pub(crate) fn renew_affinity(&self) {
        self.affinity.renew(&self.table);
    }
}
