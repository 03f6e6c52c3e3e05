//! The handle of one admitted request.

use crate::frontend::Seat;
use std::fmt;
use std::sync::Arc;

/// One admitted request. Dropping it finishes the request, exactly once, on whatever thread and for
/// whatever reason.
///
/// A permit keeps its frontend's place in the table, and the engine's slot: the number it names
/// stands for the same engine for as long as the permit lives. A permit that is leaked
/// (`mem::forget`) stays counted until the process ends.
///
/// Dropping costs two compare-and-swaps if nobody interferes, no system call and no allocation.
#[must_use = "dropping a permit finishes its request"]
pub struct Permit {
    seat: Arc<Seat>,
    engine: u32,
    tokens: u32,
}

impl Permit {
    #[inline]
    pub(crate) fn new(seat: Arc<Seat>, engine: usize, tokens: u32) -> Self {
        Self {
            seat,
            engine: engine as u32,
            tokens,
        }
    }

    /// The number of the engine that the request was counted on, to be sent there.
    #[inline]
    pub fn engine(&self) -> usize {
        self.engine as usize
    }

    /// The name of that engine. Allocates.
    pub fn engine_name(&self) -> String {
        self.seat.table().engines().name(self.engine())
    }

    /// The tokens that are counted with the request.
    #[inline]
    pub fn tokens(&self) -> u32 {
        self.tokens
    }
}

impl Drop for Permit {
    #[inline]
    fn drop(&mut self) {
        // In a forked child the request is the parent's, and there is nothing to do.
        if let Ok(operation) = self.seat.lane() {
            operation.finish(self.engine(), self.tokens);
        }
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit")
            .field("engine", &self.engine)
            .field("tokens", &self.tokens)
            .finish_non_exhaustive()
    }
}
