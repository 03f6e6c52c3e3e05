//! Handles of a seat, and how long it stays: until its last handle and its last permit are gone.
//!
//! See [`hold`](crate::algorithm::hold) for how these are counted, and
//! [`retired`](crate::algorithm::retired) for where a seat waits for its last permit.

use crate::algorithm::retired::{Held, Retired};
use crate::primitive::{AtomicPtr, AtomicU64};
use crate::seat::{Seat, wait_a_little};
use crossbeam_utils::Backoff;
use std::ops::Deref;
use std::ptr::{self, NonNull};

/// A counted handle of a seat.
#[derive(Debug)]
pub(crate) struct Handle(NonNull<Seat>);

// SAFETY: it gives out shared references only, and a seat may be used from any thread.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

/// Seats without handles.
static RETIRED: Retired<Seat> = Retired {
    first: AtomicPtr::new(ptr::null_mut()),
    reasons: AtomicU64::new(0),
};

impl Handle {
    pub(crate) fn new(seat: Seat) -> Self {
        Self(NonNull::from(Box::leak(Box::new(seat))))
    }

    /// Where the seat is, for a permit.
    #[inline]
    pub(crate) fn seat(&self) -> NonNull<Seat> {
        self.0
    }
}

impl Clone for Handle {
    fn clone(&self) -> Self {
        self.handles().add();
        Self(self.0)
    }
}

impl Deref for Handle {
    type Target = Seat;

    #[inline]
    fn deref(&self) -> &Seat {
        // SAFETY: a seat stays while it has a handle.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if !self.handles().drop_one() {
            return;
        }
        let backoff = Backoff::new();
        // SAFETY: this was the last handle.
        unsafe { RETIRED.close(self.0, || wait_a_little(&backoff)) };
    }
}

/// A permit of a seat ends, whose request is on this engine.
///
/// # Safety
/// The permit must have been counted by an operation of the seat, and must not be used again.
#[inline]
pub(crate) unsafe fn end_permit(seat: NonNull<Seat>, engine: usize, tokens: u32) {
    // Not a reference that is an argument anywhere below `leave`: the seat may be gone before that
    // returns.
    let (hold, is_closed) = {
        // SAFETY: the seat stays while this permit is counted.
        let seat = unsafe { seat.as_ref() };
        // In a forked child the request is the parent's, and there is nothing to do.
        let Some(operation) = seat.enter() else {
            return;
        };
        operation.finish(engine, tokens);
        operation.end_permit()
    };
    // SAFETY: the seat stays while this lane is busy.
    unsafe { hold.as_ref() }.leave();
    if is_closed {
        give_back();
    }
}

/// Gives back the seats that nothing holds any more.
#[cold]
pub(crate) fn give_back() {
    RETIRED.give_back();
}
