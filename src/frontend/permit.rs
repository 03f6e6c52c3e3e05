//! The handle of one admitted request.

use crate::frontend::lifetime::CountedRequest;
use crate::table::engine_id::EngineId;
use std::fmt;

/// One admitted request. Dropping it finishes the request, exactly once, on whatever thread and for
/// whatever reason.
///
/// A permit keeps its frontend's place in the table, and the engine's slot: the number it names
/// stands for the same engine for as long as the permit lives. A permit that is leaked
/// (`mem::forget`) stays counted until the process ends.
///
/// Dropping costs one compare-and-swap if no other process interferes, no system call and no allocation; but the last
/// permit of a frontend whose handles are gone gives the place in the table back, by a few system calls.
#[must_use = "dropping a permit finishes its request"]
pub struct Permit(CountedRequest);

const _: () = assert!(size_of::<Option<Permit>>() == 2 * size_of::<u64>());

impl Permit {
    #[inline]
    pub(crate) fn new(request: CountedRequest) -> Self {
        Self(request)
    }

    /// Returns the engine that the request was counted on, to be sent there: its [`index`](EngineId::index) into
    /// arrays of your own, and its identity. Costs two loads.
    #[inline]
    pub fn engine(&self) -> EngineId {
        // The slot has this engine for as long as the request is counted on it.
        self.0.membership().table().engines().id(self.0.engine())
    }

    /// Returns the name of that engine. Allocates.
    pub fn engine_name(&self) -> String {
        self.0.membership().table().engines().name(self.0.engine())
    }

    /// The tokens that are counted with the request.
    #[inline]
    pub fn tokens(&self) -> u32 {
        self.0.tokens()
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit")
            .field("engine", &self.engine())
            .field("tokens", &self.tokens())
            .finish_non_exhaustive()
    }
}
