//! The results, in words and as a table.

use std::fmt::{self, Display, Formatter};

use super::Waited;
use crate::table::grid::Grid;

impl Display for Waited {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { config, runs } = self;
        writeln!(
            f,
            "{} engines with a cap of {}, so {} places; {} bursts of {} requests through {} frontends.\n",
            config.engines,
            config.cap,
            config.places(),
            config.bursts,
            config.requests,
            config.frontends,
        )?;
        let mut grid = Grid::new([
            "requests that find no place",
            "most on an engine",
            "median wait",
            "longest wait",
            "overtaken",
            "places free meanwhile",
            "refused",
        ]);
        for run in runs {
            grid.row([
                run.in_words(),
                run.most_on_an_engine.to_string(),
                format!("{:.0} ms", run.median_wait_ms),
                format!("{:.0} ms", run.longest_wait_ms),
                run.overtaken.to_string(),
                format!("{:.1}%", run.idle_while_waiting_percent),
                run.refused.to_string(),
            ]);
        }
        writeln!(f, "{grid}")?;
        writeln!(
            f,
            "Overtaken: requests that got a place after one that had come after them.\n\
             Places free meanwhile: on average, while requests waited that could have had them."
        )?;
        for run in runs.iter().filter(|run| run.leaked > 0) {
            let (strategy, leaked) = (run.strategy, run.leaked);
            writeln!(
                f,
                "Leaked: {strategy} still counts {leaked} requests, and all are answered."
            )?;
        }
        Ok(())
    }
}
