//! The results for people.

use std::fmt;

use crate::options::Options;
use crate::report::Report;

#[derive(Debug)]
pub(crate) struct Table<'a> {
    pub(crate) options: &'a Options,
    pub(crate) report: &'a Report,
}

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for result in &self.report.results {
            for r in &result.rounds {
                writeln!(
                    f,
                    "{:20} {:?} {} {}",
                    result.strategy.name(),
                    r.per_engine,
                    r.spread,
                    r.padded_batch
                )?;
            }
            writeln!(
                f,
                "{:?} {} {:?}",
                result.in_flight_spread, result.leaked, result.kill
            )?;
        }
        Ok(())
    }
}
