//! The results, in words and as a table.

use std::fmt::{self, Display, Formatter};

use super::{Held, Run};
use crate::table::grid::Grid;

impl Display for Held {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { config, runs } = self;
        writeln!(
            f,
            "{} engines with a cap of {}, so {} places; {} clients through {} frontends. Every {} s one\n\
             of the frontends got SIGKILL, and another one was started.\n",
            config.engines,
            config.cap,
            config.places(),
            config.clients,
            config.frontends,
            config.kill_every_ms as f64 / 1000.0,
        )?;
        let mut grid = Grid::new([
            "strategy",
            "most on an engine",
            "places left",
            "answered",
            "refused",
            "counted at the end",
        ]);
        for run in runs {
            grid.row([
                run.strategy.to_string(),
                run.most_on_an_engine.to_string(),
                format!("{} of {}", run.in_flight_after_last_kill, config.places()),
                run.answered.to_string(),
                run.refused.to_string(),
                run.leaked.to_string(),
            ]);
        }
        writeln!(f, "{grid}")?;
        writeln!(
            f,
            "Places left: the most requests in flight at once after the last of {} kills.\n\
             Counted at the end: when all requests are answered.",
            config.kills
        )?;
        for Run {
            strategy, leaked, ..
        } in runs.iter().filter(|run| run.leaked > 0)
        {
            writeln!(
                f,
                "Leaked: {strategy} still counts {leaked} requests, and all are answered."
            )?;
        }
        Ok(())
    }
}
