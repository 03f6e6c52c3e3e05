//! The handle of one admitted request.

use crate::handle;
use crate::seat::Seat;
use std::fmt;
use std::ptr::NonNull;

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
pub struct Permit {
    /// Stays for as long as this permit is counted.
    seat: NonNull<Seat>,
    /// Tokens 32 | engine 32. One word, so that an `Option<Permit>`, in which the short way of a route hands
    /// its permit on, fits into two registers. A `Result<Permit>` is as large as its error, and goes by memory.
    request: u64,
}

const _: () = assert!(size_of::<Option<Permit>>() == 2 * size_of::<u64>());

// SAFETY: a seat may be used from any thread.
unsafe impl Send for Permit {}
// SAFETY: as above.
unsafe impl Sync for Permit {}

impl Permit {
    /// A permit that an operation of the seat has counted.
    #[inline]
    pub(crate) fn new(seat: NonNull<Seat>, engine: usize, tokens: u32) -> Self {
        Self {
            seat,
            request: (u64::from(tokens) << 32) | engine as u64,
        }
    }

    /// The number of the engine that the request was counted on, to be sent there.
    #[inline]
    pub fn engine(&self) -> usize {
        self.request as u32 as usize
    }

    /// The name of that engine. Allocates.
    pub fn engine_name(&self) -> String {
        // SAFETY: the seat stays while this permit is counted.
        let seat = unsafe { self.seat.as_ref() };
        seat.table().engines().name(self.engine())
    }

    /// The tokens that are counted with the request.
    #[inline]
    pub fn tokens(&self) -> u32 {
        (self.request >> 32) as u32
    }
}

impl Drop for Permit {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: this permit was counted when it was made, and is not used again.
        unsafe { handle::end_permit(self.seat, self.engine(), self.tokens()) };
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
