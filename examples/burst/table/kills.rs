//! What a killed frontend left behind.

use std::fmt::{self, Display, Formatter};

use super::grid::Grid;
use crate::report::{KillResult, StrategyResult};
use crate::strategy::Strategy;

/// Displays nothing if no frontend was killed.
#[derive(Debug)]
pub(super) struct Kills<'a>(pub(super) &'a [StrategyResult]);

impl Display for Kills<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut grid = Grid::new([
            "strategy",
            "requests sent again",
            "counted before the reap",
            "after the reap",
        ]);
        let mut death = None;
        for result in self.0 {
            let Some(KillResult { round, killed }) = &result.kill else {
                continue;
            };
            death = Some((killed.frontend, round));
            let unknown = match result.strategy {
                Strategy::Shared => "unknown",
                _ => "private",
            };
            let shown =
                |count: Option<u64>| count.map_or(unknown.to_owned(), |count| count.to_string());
            grid.row([
                result.strategy.to_string(),
                killed.sent_again.to_string(),
                shown(killed.counted_before_reap),
                shown(killed.counted_after_reap),
            ]);
        }
        let Some((frontend, round)) = death else {
            return Ok(());
        };
        writeln!(
            f,
            "Frontend {frontend} got SIGKILL in the middle of burst {round}. The engines aborted what it\n\
             had sent, and its clients sent again what was not answered. A private count\n\
             dies with its process, a shared one is reaped:\n"
        )?;
        writeln!(f, "{grid}")
    }
}
