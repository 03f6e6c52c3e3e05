//! How far a process is led into its operation, and how it gets there quickly.

use crate::Tracee;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::rc::Rc;

/// The path of an undisturbed operation: for each instruction its address, and how often the operation was there
/// before. Empty on processors for which breakpoints are not written.
#[derive(Debug, Default)]
pub struct Way(Vec<(u64, usize)>);

impl Way {
    fn of(positions: Vec<u64>) -> Self {
        let mut seen = HashMap::new();
        let way = positions.into_iter().map(|position| {
            let times = seen.entry(position).or_insert(0);
            *times += 1;
            (position, *times - 1)
        });
        Self(way.collect())
    }

    /// Returns the best place for a breakpoint before an instruction: how many instructions lead there, the address,
    /// and how often the operation passes it before.
    fn landmark(&self, instructions: usize) -> Option<(usize, u64, usize)> {
        /// What a breakpoint costs, in steps.
        const STOP: usize = 4;
        let way = self.0.get(..=instructions)?;
        let mut best = None;
        let mut least = usize::MAX;
        for (at, &(position, passes)) in way.iter().enumerate().rev() {
            let steps = instructions - at;
            if steps >= least {
                break;
            }
            if steps + passes * STOP < least {
                least = steps + passes * STOP;
                best = Some((at, position, passes));
            }
        }
        best
    }
}

/// How far a child is led into its operation.
#[derive(Debug)]
pub enum Lead {
    /// To its end, while its way is written down.
    ToTheEnd {
        /// How many there were.
        instructions: usize,
        /// The way that it went.
        way: Rc<Way>,
    },
    /// So many instructions, of a way that is known.
    Into {
        /// How many.
        instructions: usize,
        /// The way.
        way: Rc<Way>,
    },
}

/// The child did not pass the expected address. Another child has to be led by single steps.
#[derive(Debug)]
pub struct Strayed;

impl fmt::Display for Strayed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the operation went another way than before")
    }
}

impl Error for Strayed {}

impl Lead {
    /// Returns a lead to the end.
    pub fn to_the_end() -> Self {
        Self::ToTheEnd {
            instructions: 0,
            way: Rc::default(),
        }
    }

    /// Returns a lead of so many instructions, on the same path.
    pub fn to(&self, instructions: usize) -> Self {
        let way = match self {
            Self::ToTheEnd { way, .. } | Self::Into { way, .. } => Rc::clone(way),
        };
        Self::Into { instructions, way }
    }

    /// Returns the same lead by single steps.
    pub fn by_steps(&self) -> Self {
        Self::Into {
            instructions: self.instructions(),
            way: Rc::default(),
        }
    }

    /// Leads a child, which has stopped right before its operation.
    pub fn lead<R: Serialize + DeserializeOwned>(
        &mut self,
        child: &mut Tracee<R>,
    ) -> Result<(), Box<dyn Error>> {
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
                if let Some((at, position, passes)) = way.landmark(*instructions) {
                    if !child.run_to(position, passes)? {
                        return Err(Strayed.into());
                    }
                    done = at;
                }
                while done < *instructions {
                    if !child.step()? {
                        // The path is not always equally long.
                        let way = Rc::clone(way);
                        *self = Self::ToTheEnd {
                            instructions: done,
                            way,
                        };
                        break;
                    }
                    done += 1;
                }
            }
        }
        Ok(())
    }

    /// Whether the child has begun its operation and not ended it.
    pub fn is_inside(&self) -> bool {
        matches!(
            self,
            Self::Into {
                instructions: 1..,
                ..
            }
        )
    }

    /// Whether the child has come to the end of its operation.
    pub fn has_ended(&self) -> bool {
        matches!(self, Self::ToTheEnd { .. })
    }

    /// Returns how many instructions the child was led.
    pub fn instructions(&self) -> usize {
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
