//! How the bursts were split.

use std::fmt::{self, Display, Formatter};

use super::grid::Grid;
use crate::report::{Report, Round, StrategyResult};
use crate::strategy::Strategy;

/// Rounds that are shown one by one; of more, the worst.
const MOST_ROUNDS: usize = 10;

#[derive(Debug)]
pub(super) struct Bursts<'a>(pub(super) &'a Report);

impl Display for Bursts<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Report { config, results } = self.0;
        let (share, batch) = (config.even_share(), config.even_batch());
        writeln!(
            f,
            "Each burst: {} requests {}.\nSplit evenly, the largest batch is {share}, padded to {batch}.",
            config.requests,
            config.way()
        )?;
        writeln!(
            f,
            "The engines step together, so each waits for the largest batch:\n"
        )?;
        writeln!(f, "{}", grid(results))?;

        let worst: Vec<_> = results
            .iter()
            .map(|result| format!("{} {}", result.strategy, percent(worst_cost(result))))
            .collect();
        writeln!(
            f,
            "Slots of a padded batch beyond those of an even split, at worst:\n{}.",
            worst.join(", ")
        )?;

        let has_floor = results
            .iter()
            .any(|result| result.strategy == Strategy::Floor);
        if has_floor && config.frontends > 1 {
            writeln!(
                f,
                "Note: floor is exact for one frontend (--frontends 1). Of several, each sees only its own requests."
            )?;
        }
        let overtaken = |result: &&StrategyResult| {
            result
                .rounds
                .iter()
                .any(|round| round.one_batch == Some(false))
        };
        for result in results.iter().filter(overtaken) {
            let name = result.strategy;
            writeln!(
                f,
                "Note: under {name}, requests were finished before the last of their burst came\n\
                 (is the machine busy?). The figures are of the requests sent, not of those that ran together."
            )?;
        }
        Ok(())
    }
}

fn grid(results: &[StrategyResult]) -> Grid {
    let mut grid = Grid::new([
        "strategy",
        "burst",
        "sent to each engine",
        "max-min",
        "padded to",
        "padding costs",
    ]);
    for result in results {
        let mut name = result.strategy.to_string();
        for (number, round) in shown(&result.rounds) {
            grid.row([
                std::mem::take(&mut name),
                number.to_string(),
                round.shares("  "),
                round.spread.to_string(),
                round.padded_batch.to_string(),
                percent(round.padding_cost_percent.unwrap_or(0.0)),
            ]);
        }
    }
    grid
}

/// The rounds to show, with their numbers from 1.
fn shown(rounds: &[Round]) -> Vec<(usize, &Round)> {
    let numbered = (1..).zip(rounds);
    if rounds.len() <= MOST_ROUNDS {
        numbered.collect()
    } else {
        numbered
            .max_by_key(|(_, round)| round.badness())
            .into_iter()
            .collect()
    }
}

fn worst_cost(result: &StrategyResult) -> f64 {
    result
        .rounds
        .iter()
        .filter_map(|round| round.padding_cost_percent)
        .fold(0.0, f64::max)
}

fn percent(cost: f64) -> String {
    if cost == 0.0 {
        "0.0 %".to_owned()
    } else {
        format!("{cost:+.1} %")
    }
}
