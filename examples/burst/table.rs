//! The results for people: what to look at, a table, and what follows from it.

use std::fmt::{self, Display, Formatter};

use crate::grid::Grid;
use crate::report::{Report, Round, StrategyResult};
use crate::timeline::Spread;

/// Engines whose shares are shown one by one; of more, the smallest and the largest share.
const MOST_ENGINES: usize = 8;

/// Rounds that are shown one by one; of more, the worst.
const MOST_ROUNDS: usize = 10;

/// Displays a report.
#[derive(Debug)]
pub(crate) struct Table<'a>(pub(crate) &'a Report);

impl Display for Table<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.0.config.trace {
            None => self.bursts(f)?,
            Some(_) => self.trace(f)?,
        }
        self.kills(f)?;
        self.leaks(f)
    }
}

impl Table<'_> {
    fn bursts(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Report { config, results } = self.0;
        writeln!(
            f,
            "Each burst: {} requests, through {} frontends to {} engines. An even split makes batches that are\n\
             padded to {}. With an uneven one every engine waits for the largest batch, and its padding:\n",
            config.requests,
            config.frontends,
            config.engines,
            config.ideal_batch(),
        )?;

        let mut grid = Grid::new([
            "strategy",
            "burst",
            "sent to each engine",
            "spread",
            "padded to",
            "costs",
        ]);
        for result in results {
            let mut name = result.strategy.name();
            for (number, round) in shown(&result.rounds) {
                grid.row([
                    std::mem::take(&mut name).to_owned(),
                    number.to_string(),
                    shares(round),
                    round.spread.to_string(),
                    round.padded_batch.to_string(),
                    percent(round.padding_cost_percent),
                ]);
            }
        }
        writeln!(f, "{grid}")?;

        let worst = |result: &StrategyResult| {
            let costs = result
                .rounds
                .iter()
                .filter_map(|round| round.padding_cost_percent);
            format!(
                "{} {}",
                result.strategy.name(),
                percent(costs.reduce(f64::max))
            )
        };
        let worst: Vec<_> = results.iter().map(worst).collect();
        writeln!(
            f,
            "More slots to decode than an even split needs, at worst: {}.",
            worst.join(", ")
        )?;

        let several_batches = |result: &&StrategyResult| {
            result
                .rounds
                .iter()
                .any(|round| round.one_batch == Some(false))
        };
        for result in results.iter().filter(several_batches) {
            writeln!(
                f,
                "Note: {}: in a burst, requests were finished before the last arrived (is the machine busy?);\n\
                 its figures say what was sent, not what ran together.",
                result.strategy.name(),
            )?;
        }
        Ok(())
    }

    fn trace(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Report { config, results } = self.0;
        writeln!(
            f,
            "{} recorded requests, {} times as fast, through {} frontends to {} engines. The difference between\n\
             the engine with the most and the one with the least in flight, while requests arrived:\n",
            config.requests,
            config.speedup.unwrap_or(1.0),
            config.frontends,
            config.engines,
        )?;

        let mut grid = Grid::new([
            "strategy",
            "requests: peak",
            "mean",
            "tokens: peak",
            "mean",
            "largest batch",
        ]);
        for result in results {
            let spread = result.in_flight_spread.unwrap_or_default();
            grid.row([
                result.strategy.name().to_owned(),
                spread.peak_requests.to_string(),
                format!("{:.1}", spread.mean_requests),
                spread.peak_tokens.to_string(),
                format!("{:.0}", spread.mean_tokens),
                result.worst_padded_batch.to_string(),
            ]);
        }
        writeln!(f, "{grid}")?;

        let closest = |mean: fn(&Spread) -> f64| {
            let mean =
                |result: &&StrategyResult| result.in_flight_spread.as_ref().map_or(0.0, mean);
            let closest = results.iter().min_by(|a, b| mean(a).total_cmp(&mean(b)));
            closest.map_or("none", |result| result.strategy.name())
        };
        writeln!(
            f,
            "Closest together on average: in requests {}, in tokens {}.",
            closest(|spread| spread.mean_requests),
            closest(|spread| spread.mean_tokens),
        )
    }

    fn kills(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for result in &self.0.results {
            let Some(kill) = &result.kill else { continue };
            let killed = &kill.killed;
            write!(
                f,
                "{}: frontend {} was killed in burst {} with {} requests in flight, which were sent again;\n  ",
                result.strategy.name(),
                killed.frontend,
                kill.round,
                killed.requests,
            )?;
            match (killed.counted_before_reap, killed.counted_after_reap) {
                (Some(before), Some(after)) => {
                    writeln!(
                        f,
                        "still counted for it before the reap: {before}, after the reap: {after}."
                    )?;
                }
                _ => writeln!(
                    f,
                    "its private count died with it, and nobody else knew it."
                )?,
            }
        }
        Ok(())
    }

    fn leaks(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let leaks: Vec<_> = self
            .0
            .results
            .iter()
            .filter(|result| result.leaked > 0)
            .collect();
        for result in &leaks {
            writeln!(
                f,
                "Leaked: {} requests are still counted by {}.",
                result.leaked,
                result.strategy.name()
            )?;
        }
        if leaks.is_empty() {
            writeln!(
                f,
                "Nothing leaked: with all requests answered, none is counted any more."
            )?;
        }
        Ok(())
    }
}

/// The rounds to show, with their numbers from 1.
fn shown(rounds: &[Round]) -> Vec<(usize, &Round)> {
    let numbered = (1..).zip(rounds);
    if rounds.len() <= MOST_ROUNDS {
        numbered.collect()
    } else {
        numbered
            .max_by_key(|(_, round)| (round.padded_batch, round.spread))
            .into_iter()
            .collect()
    }
}

fn shares(round: &Round) -> String {
    let engines = &round.per_engine;
    match (engines.iter().min(), engines.iter().max()) {
        (Some(least), Some(most)) if engines.len() > MOST_ENGINES => format!("{least} to {most}"),
        _ => engines
            .iter()
            .map(|share| format!("{share:>3}"))
            .collect::<Vec<_>>()
            .join("  "),
    }
}

fn percent(cost: Option<f64>) -> String {
    format!("{:+.1} %", cost.unwrap_or(0.0))
}
