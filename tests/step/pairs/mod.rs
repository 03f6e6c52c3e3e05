//! The pairs: what is stopped at each instruction, what is done there, and the rule for it.

mod applying;
mod changers;
mod changes;
mod counting;
mod files;
mod names;
mod places;
mod publishing;
mod reaps;
mod routes;
mod statistics;
mod ties;
mod tokens;

use crate::Result;
use headcount_tests::Lead;

/// Two operations, and how one of them is stopped and the other done.
pub(crate) struct Pair {
    /// The operation that is stopped, and the one that is done then: "Route-Drain".
    pub(crate) name: String,
    /// n if only every n-th instruction is tried, for operations that have very many.
    pub(crate) every: usize,
    /// Tries one point. Returns whether the second operation came before the first took effect.
    pub(crate) point: Point,
}

type Point = Box<dyn Fn(&mut Lead) -> Result<bool>>;

impl Pair {
    fn new(name: impl Into<String>, point: impl Fn(&mut Lead) -> Result<bool> + 'static) -> Self {
        Self {
            name: name.into(),
            every: 1,
            point: Box::new(point),
        }
    }

    fn every(mut self, every: usize) -> Self {
        self.every = every;
        self
    }
}

/// All of them.
pub(crate) fn all() -> impl Iterator<Item = Pair> {
    [
        routes::pairs(),
        counting::pairs(),
        tokens::pairs(),
        ties::pairs(),
        reaps::pairs(),
        places::pairs(),
        publishing::pairs(),
        statistics::pairs(),
        names::pairs(),
        changers::pairs(),
        applying::pairs(),
        files::pairs(),
    ]
    .into_iter()
    .flatten()
}
