//! The results for people: what to look at, a table, and what follows from it.

mod bursts;
mod grid;
mod trace;

use std::fmt::{self, Display, Formatter};

use self::bursts::Bursts;
use self::trace::Trace;
use crate::report::{KillResult, Report};

/// Displays a report.
#[derive(Debug)]
pub(crate) struct Table<'a>(pub(crate) &'a Report);

impl Display for Table<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.0.config.trace {
            None => Bursts(self.0).fmt(f)?,
            Some(_) => Trace(self.0).fmt(f)?,
        }
        self.kills(f)?;
        self.leaks(f)
    }
}

impl Table<'_> {
    fn kills(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for result in &self.0.results {
            let Some(KillResult { round, killed }) = &result.kill else {
                continue;
            };
            let fate = match (killed.counted_before_reap, killed.counted_after_reap) {
                (Some(before), Some(after)) => {
                    format!("counted before the reap: {before}, after it: {after}")
                }
                _ => "its private count died with it".to_owned(),
            };
            writeln!(
                f,
                "Killed in burst {round}, {}: frontend {} with {} requests, sent again; {fate}.",
                result.strategy.name(),
                killed.frontend,
                killed.requests,
            )?;
        }
        Ok(())
    }

    fn leaks(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let leaking: Vec<_> = self
            .0
            .results
            .iter()
            .filter(|result| result.leaked > 0)
            .collect();
        for result in &leaking {
            let name = result.strategy.name();
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
