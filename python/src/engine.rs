//! Engines to be put into a table, and their statistics: from the dataclasses of `_engine.py`.

use crate::argument::{Count, Tokens};
use headcount::EngineState;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// A `headcount.Engine`, or its name.
pub(crate) struct Engine(pub(crate) headcount::Engine);

#[derive(FromPyObject)]
struct Described {
    name: String,
    weight: f32,
    max_in_flight: Option<Tokens>,
    max_tokens: Option<Tokens>,
}

impl<'py> FromPyObject<'_, 'py> for Engine {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if object.is_instance_of::<PyString>() {
            return Ok(Self(headcount::Engine::named(object.extract::<String>()?)));
        }
        let described: Described = object.extract()?;
        let mut engine = headcount::Engine::named(described.name).weight(described.weight);
        if let Some(Tokens(cap)) = described.max_in_flight {
            engine = engine.max_in_flight(cap);
        }
        if let Some(Tokens(cap)) = described.max_tokens {
            engine = engine.max_tokens(cap);
        }
        Ok(Self(engine))
    }
}

/// How many engines, or which.
#[derive(FromPyObject)]
pub(crate) enum Engines {
    /// So many, named by their numbers.
    #[pyo3(transparent)]
    Numbered(Count),
    /// These.
    #[pyo3(transparent)]
    Listed(Vec<Engine>),
}

/// A `headcount.EngineStats`.
#[derive(FromPyObject)]
pub(crate) struct Stats {
    waiting: u32,
    running: u32,
    kv_usage: f32,
    in_flight: Option<u32>,
}

impl From<Stats> for headcount::EngineStats {
    fn from(stats: Stats) -> Self {
        Self {
            waiting: stats.waiting,
            running: stats.running,
            kv_usage: stats.kv_usage,
            in_flight: stats.in_flight,
        }
    }
}

/// The name of a state.
pub(crate) fn state(state: EngineState) -> &'static str {
    match state {
        EngineState::Active => "active",
        EngineState::Draining => "draining",
        EngineState::Down => "down",
        EngineState::Leaving => "leaving",
    }
}
