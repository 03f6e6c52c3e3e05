//! A table as it was read at one moment, and what follows from it.

use crate::table_arg::Watched;
use crate::warning::Warning;
use headcount::{Dimensions, EngineState, EngineView, Table, View};
use std::path::PathBuf;
use std::time::Duration;

/// A table as it was read at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Observed {
    pub(crate) path: PathBuf,
    pub(crate) dimensions: Dimensions,
    pub(crate) view: View,
    pub(crate) warnings: Vec<Warning>,
}

impl Observed {
    /// Reads an open table.
    pub(crate) fn of(table: &Table, stale_after: Duration) -> Self {
        let view = table.view();
        Self {
            path: table.path().to_owned(),
            dimensions: table.dimensions(),
            warnings: Warning::all(&view, stale_after),
            view,
        }
    }

    /// Reads the table that lies at the path now.
    pub(crate) fn again(
        watched: &mut Watched,
        stale_after: Duration,
    ) -> Result<Self, headcount::Error> {
        let mut observed = Self::of(watched.table()?, stale_after);
        let elsewhere = watched.frontends_elsewhere();
        if !elsewhere.is_empty() {
            observed
                .warnings
                .insert(0, Warning::other_table(&elsewhere));
        }
        Ok(observed)
    }

    /// Whether all known frontends count in this table.
    pub(crate) fn is_linked(&self) -> bool {
        let is_other = |warning: &Warning| matches!(warning, Warning::OtherTable { .. });
        !self.warnings.iter().any(is_other)
    }

    /// Whether an engine has another weight than 1.
    pub(crate) fn has_weights(&self) -> bool {
        self.view.engines.iter().any(|e| e.weight != 1.0)
    }

    /// Whether an engine has a cap on tokens.
    pub(crate) fn has_token_caps(&self) -> bool {
        self.view.engines.iter().any(|e| e.max_tokens.is_some())
    }

    /// Whether the snapshot is too old for policies.
    pub(crate) fn is_stale(&self) -> bool {
        let is_stale = |warning: &Warning| matches!(warning, Warning::StaleSnapshot { .. });
        self.warnings.iter().any(is_stale)
    }

    /// Returns the requests in flight on all engines together.
    pub(crate) fn in_flight(&self) -> u64 {
        self.view
            .engines
            .iter()
            .map(|e| u64::from(e.in_flight))
            .sum()
    }

    /// Returns the most loaded active engine less the least, in requests for each unit of weight. `None` for fewer
    /// than two.
    pub(crate) fn spread(&self) -> Option<f64> {
        let active = || {
            self.view
                .engines
                .iter()
                .filter(|e| e.state == EngineState::Active)
        };
        let loads = || active().map(|e| f64::from(e.in_flight) / f64::from(e.weight));
        (active().count() > 1).then(|| {
            loads().fold(f64::NEG_INFINITY, f64::max) - loads().fold(f64::INFINITY, f64::min)
        })
    }

    /// Returns how full an engine is, from 0 to 1: by the cap that it is nearer to, or compared with the fullest of
    /// the engines without caps.
    pub(crate) fn fullness(&self, engine: &EngineView) -> f64 {
        let part = |has: u32, of: Option<u32>| match of {
            Some(0) => Some(1.0),
            of => Some((f64::from(has) / f64::from(of?)).min(1.0)),
        };
        let requests = part(engine.in_flight, engine.max_in_flight);
        let tokens = part(engine.tokens, engine.max_tokens);
        if let Some(fullness) = requests.into_iter().chain(tokens).reduce(f64::max) {
            return fullness;
        }
        let uncapped = (self.view.engines.iter())
            .filter(|e| e.max_in_flight.is_none() && e.max_tokens.is_none());
        let most = uncapped.map(|e| e.in_flight).max().unwrap_or(0);
        match most {
            0 => 0.0,
            most => f64::from(engine.in_flight) / f64::from(most),
        }
    }
}

/// Whether an engine takes nothing more because it is at a cap.
pub(crate) fn is_full(engine: &EngineView) -> bool {
    let at = |cap: Option<u32>, has: u32| cap.is_some_and(|cap| has >= cap);
    engine.state == EngineState::Active
        && (at(engine.max_in_flight, engine.in_flight) || at(engine.max_tokens, engine.tokens))
}

/// Returns why requests were refused, in words.
pub(crate) fn reason_name(reason: &str) -> &str {
    match reason {
        "engine_requests" => "engines' caps on requests",
        "engine_tokens" => "engines' caps on tokens",
        "table_requests" => "the table's cap on requests",
        "table_tokens" => "the table's cap on tokens",
        "unavailable" => "engines that are down, draining or excluded",
        other => other,
    }
}

/// Returns the state of an engine, in one word.
pub(crate) fn state(engine: &EngineView) -> &'static str {
    match engine.state {
        EngineState::Active if is_full(engine) => "full",
        state => state.name(),
    }
}
