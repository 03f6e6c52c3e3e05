//! How far apart the engines were while a trace was replayed.

use std::fmt::{self, Display, Formatter};

use super::grid::Grid;
use crate::report::{Report, StrategyResult};
use crate::timeline::Spread;

#[derive(Debug)]
pub(super) struct Trace<'a>(pub(super) &'a Report);

impl Display for Trace<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Report { config, results } = self.0;
        let (requests, way) = (config.requests, config.way());
        let speedup = config.speedup.unwrap_or(1.0);
        writeln!(
            f,
            "{requests} recorded requests, {speedup} times as fast, {way}."
        )?;
        writeln!(
            f,
            "While they arrived, the engine with the most in flight had so many more than\nthat with the least:\n"
        )?;
        writeln!(f, "{}", grid(results))?;
        writeln!(
            f,
            "Closest together on average: in requests {}, in tokens {}.",
            closest(results, |spread| spread.mean_requests),
            closest(results, |spread| spread.mean_tokens),
        )
    }
}

fn grid(results: &[StrategyResult]) -> Grid {
    let mut grid = Grid::new([
        "strategy",
        "requests: peak",
        "mean",
        "tokens: peak",
        "mean",
        "largest batch, padded",
    ]);
    for result in results {
        let spread = result.in_flight_spread.unwrap_or_default();
        grid.row([
            result.strategy.to_string(),
            spread.peak_requests.to_string(),
            format!("{:.1}", spread.mean_requests),
            spread.peak_tokens.to_string(),
            format!("{:.0}", spread.mean_tokens),
            result.worst_padded_batch.to_string(),
        ]);
    }
    grid
}

/// The name of the strategy with the lowest mean.
fn closest(results: &[StrategyResult], mean: impl Fn(&Spread) -> f64) -> String {
    let mean = |result: &StrategyResult| result.in_flight_spread.as_ref().map_or(0.0, &mean);
    let closest = results.iter().min_by(|a, b| mean(a).total_cmp(&mean(b)));
    closest.map_or(String::new(), |result| result.strategy.to_string())
}
