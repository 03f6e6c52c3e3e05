//! Policies by their names.

use crate::argument::seconds;
use headcount::Policy;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The policy of that name, with another limit on the age of snapshots if one is given.
pub(crate) fn named(name: &str, stale_after: Option<f64>) -> PyResult<Policy> {
    let policy = match name {
        "in_flight" => Policy::in_flight(),
        "open" => Policy::open(),
        "floor" => Policy::floor(),
        "tokens" => Policy::tokens(),
        "round_robin" => Policy::round_robin(),
        "power_of_two" => Policy::power_of_two(),
        _ => {
            return Err(PyValueError::new_err(format!(
                "there is no policy {name:?}; use in_flight, open, floor, tokens, round_robin or power_of_two"
            )));
        }
    };
    Ok(match stale_after {
        Some(limit) => policy.stale_after(seconds(limit, "stale_after")?),
        None => policy,
    })
}
