//! How far the first process is led.

use headcount_tests::Tracee;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::io;

/// How far into its operation the first process is led, and how far it came.
#[derive(Debug)]
pub(crate) struct Lead {
    instructions: usize,
    /// Those after which the operation had ended, if it was led to its end.
    ended_after: Option<usize>,
}

impl Lead {
    pub(crate) fn into(instructions: usize) -> Self {
        Self {
            instructions,
            ended_after: None,
        }
    }

    /// The next point.
    pub(crate) fn further(&self, by: usize) -> Self {
        Self::into(self.instructions + by)
    }

    /// Leads a child, which has stopped right before its operation.
    pub(crate) fn lead<R: Serialize + DeserializeOwned>(
        &mut self,
        child: &mut Tracee<R>,
    ) -> io::Result<()> {
        for done in 0..self.instructions {
            if !child.step()? {
                self.ended_after = Some(done);
                break;
            }
        }
        Ok(())
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended_after.is_some()
    }

    /// Whether the child has begun its operation and not ended it.
    pub(crate) fn is_inside(&self) -> bool {
        self.instructions > 0 && !self.has_ended()
    }

    /// How many instructions the child was led; those of its operation if it came to the end.
    pub(crate) fn instructions(&self) -> usize {
        self.ended_after.unwrap_or(self.instructions)
    }
}

impl fmt::Display for Lead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ended_after {
            Some(_) => f.write_str("its end"),
            None => write!(f, "{} instructions", self.instructions),
        }
    }
}
