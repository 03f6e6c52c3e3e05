//! Engines to be put into a table, and their statistics: from the dataclasses of `_engine.py`.

use crate::argument::{Count, Name, Weight, must_be, real, sequence, shown, whole};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyString, PyType};

/// A `headcount.Engine`, or its name.
pub(crate) struct Engine(pub(crate) headcount::Engine);

impl<'py> FromPyObject<'_, 'py> for Engine {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if object.is_instance_of::<PyString>() {
            let Name(name) = object.extract()?;
            return Ok(Self(headcount::Engine::named(name)));
        }
        static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        let class = CLASS.import(object.py(), "headcount._engine", "Engine")?;
        if !object.is_instance(class)? {
            return Err(must_be(
                "an engine",
                "a headcount.Engine or a name",
                &object,
            ));
        }
        let Name(name) = object.getattr("name")?.extract()?;
        let Weight(weight) = object.getattr("weight")?.extract()?;
        let mut engine = headcount::Engine::named(name).weight(weight);
        if let Some(cap) = of(&object, "max_in_flight")? {
            engine = engine.max_in_flight(cap);
        }
        if let Some(cap) = of(&object, "max_tokens")? {
            engine = engine.max_tokens(cap);
        }
        Ok(Self(engine))
    }
}

/// The engines that a table is to have.
pub(crate) enum Engines {
    /// A number of engines, each named by its number.
    Numbered(Count),
    /// The engines in a list.
    Listed(Vec<Engine>),
}

impl<'py> FromPyObject<'_, 'py> for Engines {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        const WHAT: &str = "a number, or a list of headcount.Engine or of names";
        if let Some(engines) = sequence(&object) {
            let engines = engines.try_iter()?.enumerate().map(|(n, engine)| {
                let engine = engine?;
                engine
                    .extract()
                    .map_err(|error: PyErr| in_list(error, "engines", n))
            });
            return Ok(Self::Listed(engines.collect::<PyResult<_>>()?));
        }
        if object.is_instance_of::<PyString>() {
            let found = shown(&object);
            return Err(must_be(
                "engines",
                &format!("{WHAT}, as in [{found}]"),
                &object,
            ));
        }
        let is_number = !object.is_instance_of::<PyBool>() && object.hasattr("__index__")?;
        match is_number {
            true => object.extract().map(Self::Numbered),
            false => Err(must_be("engines", WHAT, &object)),
        }
    }
}

/// A `headcount.EngineStats`.
pub(crate) struct Stats(headcount::EngineStats);

impl<'py> FromPyObject<'_, 'py> for Stats {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        let class = CLASS.import(object.py(), "headcount._engine", "EngineStats")?;
        if !object.is_instance(class)? {
            return Err(must_be(
                "the statistics of an engine",
                "a headcount.EngineStats",
                &object,
            ));
        }
        let count = |name: &str| whole(object.getattr(name)?.as_borrowed(), name);
        let stats = headcount::EngineStats::new()
            .waiting(count("waiting")?)
            .running(count("running")?)
            .kv_usage(real(&object.getattr("kv_usage")?, "kv_usage")? as f32);
        Ok(Self(match of(&object, "in_flight")? {
            Some(requests) => stats.in_flight(requests),
            None => stats,
        }))
    }
}

/// The statistics of the first engines.
pub(crate) struct AllStats(pub(crate) Vec<headcount::EngineStats>);

impl<'py> FromPyObject<'_, 'py> for AllStats {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let Some(stats) = sequence(&object) else {
            return Err(must_be("stats", "a list of headcount.EngineStats", &object));
        };
        let stats = stats.try_iter()?.enumerate().map(|(n, stats)| {
            let stats = stats?
                .extract()
                .map_err(|error: PyErr| in_list(error, "stats", n));
            stats.map(|Stats(stats)| stats)
        });
        stats.collect::<PyResult<_>>().map(Self)
    }
}

/// Returns the value of a field that is a number or None.
fn of(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<u32>> {
    let field = object.getattr(name)?;
    match field.is_none() {
        true => Ok(None),
        false => whole(field.as_borrowed(), name).map(Some),
    }
}

/// The error of the n-th item of a list.
#[cold]
fn in_list(error: PyErr, list: &str, n: usize) -> PyErr {
    Python::attach(|py| match error.is_instance_of::<PyTypeError>(py) {
        true => PyTypeError::new_err(format!("{list}[{n}]: {}", error.value(py))),
        false => error,
    })
}
