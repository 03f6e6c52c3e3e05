//! How far the first process is led, and how it is led there quickly.

use crate::Result;
use headcount_tests::Tracee;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::rc::Rc;

/// The way of an operation that nothing disturbs: where it is before each of its instructions. Empty on
/// processors for which breakpoints are not written.
#[derive(Debug, Default)]
pub(crate) struct Way {
    positions: Vec<u64>,
    /// For each instruction the last one before it, or itself, at which the operation is for the first
    /// time: a breakpoint finds it.
    landmarks: Vec<usize>,
}

impl Way {
    fn of(positions: Vec<u64>) -> Self {
        let mut seen = std::collections::HashSet::new();
        let mut last = 0;
        let landmarks = (positions.iter().enumerate())
            .map(|(at, position)| {
                if seen.insert(position) {
                    last = at;
                }
                last
            })
            .collect();
        Self {
            positions,
            landmarks,
        }
    }

    /// The last landmark on the way to an instruction, and where it lies.
    fn landmark(&self, instructions: usize) -> Option<(usize, u64)> {
        let at = *self.landmarks.get(instructions)?;
        Some((at, *self.positions.get(at)?))
    }
}

/// How far into its operation the first process is led.
#[derive(Debug)]
pub(crate) enum Lead {
    /// To its end, while its way is written down.
    ToTheEnd { instructions: usize, way: Rc<Way> },
    /// So many instructions, of a way that is known.
    Into { instructions: usize, way: Rc<Way> },
}

/// The child did not come by where it was expected; another one has to be led step by step.
#[derive(Debug)]
pub(crate) struct Strayed;

impl fmt::Display for Strayed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the operation went another way than before")
    }
}

impl std::error::Error for Strayed {}

impl Lead {
    pub(crate) fn to_the_end() -> Self {
        Self::ToTheEnd {
            instructions: 0,
            way: Rc::default(),
        }
    }

    /// So many instructions of the same way.
    pub(crate) fn to(&self, instructions: usize) -> Self {
        let way = match self {
            Self::ToTheEnd { way, .. } | Self::Into { way, .. } => Rc::clone(way),
        };
        Self::Into { instructions, way }
    }

    /// The same, step by step.
    pub(crate) fn by_steps(&self) -> Self {
        Self::Into {
            instructions: self.instructions(),
            way: Rc::default(),
        }
    }

    /// Leads a child, which has stopped right before its operation.
    pub(crate) fn lead<R: Serialize + DeserializeOwned>(
        &mut self,
        child: &mut Tracee<R>,
    ) -> Result<()> {
        match self {
            Self::ToTheEnd { instructions, way } => {
                let mut positions = Vec::new();
                loop {
                    positions.extend(child.position()?);
                    if !child.step()? {
                        break;
                    }
                    *instructions += 1;
                }
                *way = Rc::new(Way::of(positions));
            }
            Self::Into { instructions, way } => {
                let mut done = 0;
                if let Some((at, position)) = way.landmark(*instructions) {
                    if !child.run_to(position)? {
                        return Err(Strayed.into());
                    }
                    done = at;
                }
                while done < *instructions {
                    if !child.step()? {
                        return Err("it ended earlier than before".into());
                    }
                    done += 1;
                }
            }
        }
        Ok(())
    }

    /// Whether the child has begun its operation and not ended it.
    pub(crate) fn is_inside(&self) -> bool {
        matches!(self, Self::Into { instructions: 1.., .. })
    }

    pub(crate) fn has_ended(&self) -> bool {
        matches!(self, Self::ToTheEnd { .. })
    }

    /// How many instructions the child was led.
    pub(crate) fn instructions(&self) -> usize {
        match self {
            Self::ToTheEnd { instructions, .. } | Self::Into { instructions, .. } => *instructions,
        }
    }
}

impl fmt::Display for Lead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ToTheEnd { .. } => f.write_str("its end"),
            Self::Into { instructions, .. } => write!(f, "{instructions} instructions"),
        }
    }
}
