//! Which engine a call means: the one that has a slot now, or one engine for good.

use crate::error::{Error, RouteError};
use std::fmt;

/// The identity of one engine of a table, from [`Table::add`](crate::Table::add),
/// [`Table::find`](crate::Table::find) or an [`EngineView`](crate::EngineView).
///
/// A number alone stands for the slot: once an engine is removed and its requests have finished, the
/// next engine that is added can get its number. An id also says which of the engines of that slot is
/// meant. A call that is given an id acts on that engine or fails with
/// [`Error::NoSuchEngine`], however the list of engines changes meanwhile.
///
/// An engine keeps its id for as long as it is in the table, also if it is removed and comes back under
/// its name while requests to it are still in flight. Once it is gone, no other engine of the table
/// ever gets its id. An id means nothing in another table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct EngineId {
    index: usize,
    generation: u64,
}

impl EngineId {
    /// The id of two numbers that [`index`](Self::index) and [`generation`](Self::generation) gave in
    /// another process that uses the same table.
    pub const fn new(index: usize, generation: u64) -> Self {
        Self { index, generation }
    }

    /// The engine's number, as in [`Permit::engine`](crate::Permit::engine).
    pub const fn index(self) -> usize {
        self.index
    }

    /// A number that differs for all engines that ever have that slot.
    pub const fn generation(self) -> u64 {
        self.generation
    }
}

/// The number, as the command line takes it: `@3`.
impl fmt::Display for EngineId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}", self.index)
    }
}

/// Which engine a call means. Made from a number (whichever engine has that slot at the moment of the
/// call) or from an [`EngineId`] (that very engine).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EngineSelector {
    index: usize,
    /// Of that engine; [`ANY`] for whichever has the slot.
    generation: u64,
}

/// No engine has an odd generation.
const ANY: u64 = u64::MAX;

impl From<usize> for EngineSelector {
    #[inline]
    fn from(index: usize) -> Self {
        Self {
            index,
            generation: ANY,
        }
    }
}

impl From<EngineId> for EngineSelector {
    #[inline]
    fn from(EngineId { index, generation }: EngineId) -> Self {
        // An odd one was made up. It must not stand for any engine.
        let generation = if generation == ANY { 1 } else { generation };
        Self { index, generation }
    }
}

impl EngineSelector {
    /// The slot that the engine has or had.
    #[inline]
    pub(crate) fn index(self) -> usize {
        self.index
    }

    /// Whether this means the engine of that id.
    pub(crate) fn means(self, id: EngineId) -> bool {
        self.index == id.index && (self.generation == ANY || self.generation == id.generation)
    }

    /// The generation of the engine, if this means one engine and not the one that has the slot now.
    #[inline]
    pub(crate) fn generation(self) -> Option<u64> {
        (self.generation != ANY).then_some(self.generation)
    }

    /// The error that the table has no such engine.
    #[cold]
    pub(crate) fn missing(self) -> Error {
        Error::NoSuchEngine {
            engine: self.index,
            removed: self.generation().is_some(),
        }
    }

    /// The same for a request that names the engine.
    #[cold]
    pub(crate) fn not_there(self) -> RouteError {
        RouteError::NoSuchEngine {
            engine: self.index.try_into().unwrap_or(u32::MAX),
            removed: self.generation().is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_id_stands_for_any_engine() {
        let any = EngineSelector::from(3);
        for generation in [0, 1, 2, u64::MAX - 1, u64::MAX] {
            assert_ne!(EngineSelector::from(EngineId::new(3, generation)), any);
        }
        assert_eq!(EngineId::new(3, 2).to_string(), "@3");
    }
}
