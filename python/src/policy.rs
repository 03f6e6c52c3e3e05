//! Policies by their names.

use crate::argument::{Seconds, text};
use headcount::Policy;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

const NAMES: &str = "in_flight, open, floor, tokens, round_robin or power_of_two";

/// A policy by its name, with its own limit on the age of snapshots.
pub(crate) struct Named(Policy);

impl<'py> FromPyObject<'_, 'py> for Named {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let what = format!("the name of a policy ({NAMES})");
        Ok(Self(match &*text(&object, "policy", &what)? {
            "in_flight" => Policy::in_flight(),
            "open" => Policy::open(),
            "floor" => Policy::floor(),
            "tokens" => Policy::tokens(),
            "round_robin" => Policy::round_robin(),
            "power_of_two" => Policy::power_of_two(),
            name => {
                return Err(PyValueError::new_err(format!(
                    "there is no policy {name:?}; use {NAMES}"
                )));
            }
        }))
    }
}

impl Named {
    /// With another limit on the age of snapshots, if one is given.
    pub(crate) fn with_limit(self, stale_after: Option<Seconds>) -> PyResult<Policy> {
        Ok(match stale_after {
            Some(limit) => self.0.stale_after(limit.duration("stale_after")?),
            None => self.0,
        })
    }
}

impl Default for Named {
    fn default() -> Self {
        Self(Policy::in_flight())
    }
}
