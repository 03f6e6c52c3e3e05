//! Policies by their names.

use crate::argument::{Seconds, text};
use crate::error::OrRaise;
use headcount::{Error, Policy};
use pyo3::prelude::*;

/// A policy by its name.
pub(crate) struct Named(Policy);

impl<'py> FromPyObject<'_, 'py> for Named {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let what = format!("the name of a policy ({})", names());
        let name = text(&object, "policy", &what)?;
        name.parse().or_raise(object.py()).map(Self)
    }
}

/// The names that there are. The library tells them with a name that it does not know.
fn names() -> String {
    match "".parse::<Policy>() {
        Err(Error::Policy { known, .. }) => known.join(", "),
        _ => String::new(),
    }
}

impl Named {
    /// Returns the policy, with another limit on the age of publications if one is given.
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
