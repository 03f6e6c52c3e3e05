//! Arguments that are checked on their way in, so that a bad one is told what would be a good one.

use headcount::{EngineId, EngineSelector};
use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyInt;
use std::time::Duration;

/// Tokens of a request, or a cap.
#[derive(Clone, Copy)]
pub(crate) struct Tokens(pub(crate) u32);

/// The number of an engine in the table. Whether there is such an engine, the table knows.
#[derive(Clone, Copy)]
pub(crate) struct EngineNumber(pub(crate) usize);

/// An engine of the table: by its number, or by its `headcount.EngineId`.
#[derive(Clone, Copy)]
pub(crate) struct Which(pub(crate) EngineSelector);

/// How many of something.
#[derive(Clone, Copy)]
pub(crate) struct Count(pub(crate) usize);

impl<'py> FromPyObject<'_, 'py> for Tokens {
    type Error = PyErr;

    #[inline]
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        (object.extract().map(Self)).map_err(|error| told(error, &object, "a number of tokens"))
    }
}

impl<'py> FromPyObject<'_, 'py> for EngineNumber {
    type Error = PyErr;

    #[inline]
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        (object.extract().map(Self)).map_err(|error| told(error, &object, "an engine's number"))
    }
}

impl<'py> FromPyObject<'_, 'py> for Which {
    type Error = PyErr;

    #[inline]
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        // An id has a number, too.
        let EngineNumber(index) = object.extract()?;
        if object.is_exact_instance_of::<PyInt>() {
            return Ok(Self(index.into()));
        }
        Ok(Self(
            match object.getattr_opt(intern!(object.py(), "generation"))? {
                Some(generation) => EngineId::new(index, generation.extract()?).into(),
                None => index.into(),
            },
        ))
    }
}

impl<'py> FromPyObject<'_, 'py> for Count {
    type Error = PyErr;

    #[inline]
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        (object.extract().map(Self)).map_err(|error| told(error, &object, "a count"))
    }
}

/// Why a number was not taken. No count in a table needs more than 32 bits.
#[cold]
fn told(error: PyErr, found: &Bound<'_, PyAny>, what: &str) -> PyErr {
    if error.is_instance_of::<PyOverflowError>(found.py()) {
        PyValueError::new_err(format!("{found} cannot be {what}; use 0 to {}", u32::MAX))
    } else {
        error
    }
}

/// A length of time, from seconds.
pub(crate) fn seconds(seconds: f64, what: &str) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        PyValueError::new_err(format!(
            "{what} is {seconds}, but it must be a number of seconds, 0 or more"
        ))
    })
}
