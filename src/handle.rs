//! Handles of a seat, and how long it stays: until its last handle and its last permit are gone.
//!
//! See [`hold`](crate::algorithm::hold) for how these are counted. A seat whose handles are gone and
//! whose permits are not waits in a list of this process. Whoever ends a permit of such a seat takes
//! the whole list, so that no two threads look at the same seat, gives back the seats that nobody
//! holds, and puts back the rest.

use crate::algorithm::hold::pass_for_a_reason;
use crate::seat::Seat;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// A counted handle of a seat.
#[derive(Debug)]
pub(crate) struct Handle(NonNull<Seat>);

// SAFETY: it gives out shared references only, and a seat may be used from any thread.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

/// Seats without handles, linked by their own pointers.
static RETIRED: AtomicPtr<Seat> = AtomicPtr::new(ptr::null_mut());

/// How often somebody had reason to look at the list.
static REASONS: AtomicU64 = AtomicU64::new(0);

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
        self.close();
        retire(self.0);
        give_back();
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

/// Puts a seat into the list.
fn retire(seat: NonNull<Seat>) {
    // Relaxed: the exchange below is what counts.
    let mut first = RETIRED.load(Ordering::Relaxed);
    loop {
        // SAFETY: a seat is in the list or in one thread's hands, here ours.
        unsafe { seat.as_ref() }.set_next(first);
        // AcqRel: see `pass_for_a_reason`; and who takes the seat sees where it leads.
        match RETIRED.compare_exchange(first, seat.as_ptr(), Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => return,
            Err(other) => first = other,
        }
    }
}

/// Gives back the seats in the list that nobody holds.
#[cold]
pub(crate) fn give_back() {
    pass_for_a_reason(&REASONS, || {
        // AcqRel: see `pass_for_a_reason`.
        let mut next = RETIRED.swap(ptr::null_mut(), Ordering::AcqRel);
        while let Some(seat) = NonNull::new(next) {
            // SAFETY: we have taken it out of the list, so nobody else frees it.
            let (is_unheld, is_ours) = unsafe { seat.as_ref() }.is_unheld();
            // SAFETY: as above.
            next = unsafe { seat.as_ref() }.next();
            match (is_ours, is_unheld) {
                // SAFETY: made by `Handle::new`; no handle and no permit is left, and no thread is in an
                // operation that could touch it.
                (true, true) => drop(unsafe { Box::from_raw(seat.as_ptr()) }),
                (true, false) => retire(seat),
                // A parent's seat in its forked child: not ours to give back.
                (false, _) => {}
            }
        }
    });
}
