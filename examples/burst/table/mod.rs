//! The results for people: what to look at, a table, and what follows from it.

mod bursts;
pub(crate) mod grid;
mod kills;
mod trace;

use std::fmt::{self, Display, Formatter};

use self::bursts::Bursts;
use self::kills::Kills;
use self::trace::Trace;
use crate::report::Report;

/// Displays a report.
#[derive(Debug)]
pub(crate) struct Table<'a>(pub(crate) &'a Report);

impl Display for Table<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        // With --kill this is what the user has asked for.
        Kills(&self.0.results).fmt(f)?;
        match &self.0.config.trace {
            None => Bursts(self.0).fmt(f)?,
            Some(_) => Trace(self.0).fmt(f)?,
        }
        self.leaks(f)
    }
}

impl Table<'_> {
    fn leaks(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let leaking: Vec<_> = self
            .0
            .results
            .iter()
            .filter(|result| result.leaked > 0)
            .collect();
        for result in &leaking {
            let name = result.strategy;
            writeln!(
                f,
                "Leaked: {name} still counts {} requests, and all are answered.",
                result.leaked
            )?;
        }
        if leaking.is_empty() {
            writeln!(
                f,
                "Nothing leaked: all requests are answered, and none is counted any more."
            )?;
        }
        Ok(())
    }
}
