//! Things without handles, which wait for their last permit; and how one gets here.
//!
//! See [`lifetime`](super) for how handles and permits are counted. A thing whose handles are gone
//! and whose permits are not waits in a list. A thread that ends a permit of such a thing takes the whole list,
//! so that no two threads look at the same thing, takes those apart that nothing holds, and puts back
//! the rest.

use super::{HandleCount, LaneUse, is_unused, run_until_no_new_requests};
use crate::algorithm::primitive::{AtomicPtr, AtomicU64, Ordering};
use core::ptr::{self, NonNull};

/// A thing that stays until its last handle and its last permit are gone.
pub(crate) trait Retire {
    fn handles(&self) -> &HandleCount;

    fn lanes(&self) -> impl Iterator<Item = &LaneUse> + Clone;

    /// Where the list goes on from this thing.
    fn next(&self) -> &AtomicPtr<Self>
    where
        Self: Sized;

    /// Whether it was made by this process. A forked child leaves its parent's things alone.
    fn is_ours(&self) -> bool;

    /// Takes it apart.
    ///
    /// # Safety
    /// Nothing may use it from here on.
    unsafe fn take_apart(this: NonNull<Self>);
}

/// The things of this process that wait for their last permit.
#[derive(Debug)]
pub(crate) struct Retired<T> {
    /// Linked by the things' own pointers.
    pub(crate) first: AtomicPtr<T>,
    /// The number of requests to scan the list.
    pub(crate) requests: AtomicU64,
}

impl<T: Retire> Retired<T> {
    /// Drops a handle of `thing`. If it is the last one, calls `wait` while a thread has yet to end its operation.
    ///
    /// # Safety
    /// The handle must be counted, and the caller may not use it again.
    pub(crate) unsafe fn drop_handle(&self, thing: NonNull<T>, wait: impl FnMut()) {
        // SAFETY: the thing stays while this handle is counted.
        let is_last = unsafe { thing.as_ref() }.handles().drop_one();
        if is_last {
            // SAFETY: one thread only drops the last handle.
            unsafe { self.close(thing, wait) };
        }
    }

    /// Leaves the lane in which a permit has just ended, as [`LaneUse::end_permit`] has returned. The last access
    /// of this thread to the thing of that lane.
    ///
    /// # Safety
    /// The calling thread must be in an operation in that lane.
    #[inline]
    pub(crate) unsafe fn leave(&self, lane: NonNull<LaneUse>, is_closed: bool) {
        // SAFETY: the thing stays while this lane is busy.
        unsafe { lane.as_ref() }.leave();
        if is_closed {
            self.give_back();
        }
    }

    /// The last handle of `thing` is gone. Calls `wait` while a thread has yet to end its operation.
    ///
    /// # Safety
    /// It must have been the last, and no other thread may do this.
    unsafe fn close(&self, thing: NonNull<T>, mut wait: impl FnMut()) {
        {
            // SAFETY: nothing takes it apart before it is in the list, below.
            let thing = unsafe { thing.as_ref() };
            thing.handles().close();
            // A thread that is ending a permit now may not have seen that.
            for lane in thing.lanes().filter(|_| thing.is_ours()) {
                while lane.is_busy() {
                    wait();
                }
            }
        }
        self.put(thing);
        self.give_back();
    }

    fn put(&self, thing: NonNull<T>) {
        // Relaxed: the exchange below is what counts.
        let mut first = self.first.load(Ordering::Relaxed);
        loop {
            // SAFETY: a thing is in the list or in one thread's hands, here ours. Relaxed: the exchange
            // hands it on.
            unsafe { thing.as_ref() }
                .next()
                .store(first, Ordering::Relaxed);
            // AcqRel: see `run_until_no_new_requests`; and who takes the thing sees where it leads.
            match self.first.compare_exchange(
                first,
                thing.as_ptr(),
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(other) => first = other,
            }
        }
    }

    /// Takes those apart that nothing holds any more.
    #[cold]
    pub(crate) fn give_back(&self) {
        run_until_no_new_requests(&self.requests, || {
            // AcqRel: see `run_until_no_new_requests`.
            let mut next = self.first.swap(ptr::null_mut(), Ordering::AcqRel);
            while let Some(thing) = NonNull::new(next) {
                let (is_ours, is_unused) = {
                    // SAFETY: we have taken it out of the list, so no other thread takes it apart.
                    let thing = unsafe { thing.as_ref() };
                    // Relaxed: the swap has handed it to us.
                    next = thing.next().load(Ordering::Relaxed);
                    (thing.is_ours(), is_unused(thing.lanes()))
                };
                match (is_ours, is_unused) {
                    // SAFETY: no handle and no permit is left, and no thread is in an operation that
                    // could touch it.
                    (true, true) => unsafe { T::take_apart(thing) },
                    (true, false) => self.put(thing),
                    // A parent's thing in its forked child: not ours to give back.
                    (false, _) => {}
                }
            }
        });
    }
}
