//! What a frontend that was killed leaves behind, and what a reap makes of it.

use headcount::Table;
use serde::Serialize;

use crate::error::Error;

/// A frontend killed in mid-burst.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Killed {
    pub(crate) frontend: usize,
    /// The requests that it had not answered. Its clients sent them again, through the others.
    pub(crate) sent_again: usize,
    /// The requests that the table still counted for it. Not known of a count in memory of its own.
    pub(crate) counted_before_reap: Option<u64>,
    pub(crate) counted_after_reap: Option<u64>,
}

/// Reaps the table, if there is one, after the death of `frontend`.
pub(crate) fn reap(
    table: Option<&Table>,
    frontend: usize,
    sent_again: usize,
) -> Result<Killed, Error> {
    let counted_before_reap = table.map(counted_for_the_dead);
    let counted_after_reap = table
        .map(|table| table.reap().map(|_| counted_for_the_dead(table)))
        .transpose()?;
    Ok(Killed {
        frontend,
        sent_again,
        counted_before_reap,
        counted_after_reap,
    })
}

fn counted_for_the_dead(table: &Table) -> u64 {
    let frontends = table.view().frontends;
    frontends
        .iter()
        .filter(|frontend| !frontend.alive)
        .map(|frontend| frontend.in_flight)
        .sum()
}
