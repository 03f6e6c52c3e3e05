//! The error of a measurement.

use std::fmt;
use std::io;

/// Why a measurement failed, in a sentence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MeasureError(pub String);

impl fmt::Display for MeasureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for MeasureError {}

impl From<headcount::Error> for MeasureError {
    fn from(error: headcount::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<headcount::RouteError> for MeasureError {
    fn from(error: headcount::RouteError) -> Self {
        Self(error.to_string())
    }
}

impl From<io::Error> for MeasureError {
    fn from(error: io::Error) -> Self {
        Self(format!("the system refused what measuring needs: {error}"))
    }
}
