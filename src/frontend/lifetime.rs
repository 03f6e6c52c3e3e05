//! How long a membership stays: until its last handle and its last permit are gone.
//!
//! The one file of this room that has to be `unsafe`: permits come and go with every request, so they are not
//! counted one by one as an `Arc` would. See [`lifetime`](crate::algorithm::lifetime) for how handles and permits
//! are counted, and [`retired`](crate::algorithm::lifetime::retired) for where a membership waits for its last
//! permit.

use crate::algorithm::lifetime::PermitCount;
use crate::algorithm::lifetime::retired::{Retire, Retired};
use crate::algorithm::primitive::{AtomicPtr, AtomicU64};
use crate::error::RouteError;
use crate::frontend::lanes::wait_a_little;
use crate::frontend::membership::Membership;
use crate::frontend::operation::Operation;
use crossbeam_utils::Backoff;
use std::ops::Deref;
use std::ptr::{self, NonNull};

/// A counted handle of a membership.
#[derive(Debug)]
pub(crate) struct MembershipRef(NonNull<Membership>);

// SAFETY: it gives out shared references only, and a membership may be used from any thread.
unsafe impl Send for MembershipRef {}
// SAFETY: as above.
unsafe impl Sync for MembershipRef {}

/// Memberships without handles.
static RETIRED: Retired<Membership> = Retired {
    first: AtomicPtr::new(ptr::null_mut()),
    requests: AtomicU64::new(0),
};

impl MembershipRef {
    pub(crate) fn new(membership: Membership) -> Self {
        Self(NonNull::from(Box::leak(Box::new(membership))))
    }

    /// The request that an operation of this membership has just counted on this engine.
    #[inline]
    pub(crate) fn counted(&self, _: PermitCount, engine: usize, tokens: u32) -> CountedRequest {
        CountedRequest {
            membership: self.0,
            request: packed(engine, tokens),
        }
    }
}

impl Clone for MembershipRef {
    fn clone(&self) -> Self {
        self.handles().add();
        Self(self.0)
    }
}

impl Deref for MembershipRef {
    type Target = Membership;

    #[inline]
    fn deref(&self) -> &Membership {
        // SAFETY: a membership stays while it has a handle.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for MembershipRef {
    fn drop(&mut self) {
        let backoff = Backoff::new();
        // SAFETY: this handle is counted, and gone after this.
        unsafe { RETIRED.drop_handle(self.0, || wait_a_little(&backoff)) };
    }
}

/// A request that is counted on an engine until this is dropped.
#[derive(Debug)]
pub(crate) struct CountedRequest {
    /// Stays for as long as this request is counted.
    membership: NonNull<Membership>,
    /// Tokens 32 | engine 32. One word, so that an `Option<Permit>`, in which the short way of a route hands
    /// its permit on, fits into two registers.
    request: u64,
}

#[inline]
fn packed(engine: usize, tokens: u32) -> u64 {
    (u64::from(tokens) << 32) | engine as u64
}

// SAFETY: a membership may be used from any thread.
unsafe impl Send for CountedRequest {}
// SAFETY: as above.
unsafe impl Sync for CountedRequest {}

impl CountedRequest {
    #[inline]
    pub(crate) fn engine(&self) -> usize {
        self.request as u32 as usize
    }

    #[inline]
    pub(crate) fn tokens(&self) -> u32 {
        (self.request >> 32) as u32
    }

    /// Changes the tokens that are counted with it. If that fails, they stay as they are.
    pub(crate) fn set_tokens(&mut self, tokens: u32) -> Result<(), RouteError> {
        let (engine, before) = (self.engine(), self.tokens());
        let changed = Operation::begin(self.membership())
            .ok_or(RouteError::Forked)?
            .change_tokens(engine, before, tokens);
        if changed.is_ok() {
            self.request = packed(engine, tokens);
        }
        let membership = self.membership();
        if tokens > before {
            membership.table().wake_after_placing();
        } else if tokens < before && membership.awaited().is_so_after_a_swap() {
            membership.table().wake_for(engine);
        }
        changed
    }

    #[inline]
    pub(crate) fn membership(&self) -> &Membership {
        // SAFETY: the membership stays while this request is counted.
        unsafe { self.membership.as_ref() }
    }
}

impl Drop for CountedRequest {
    #[inline]
    fn drop(&mut self) {
        // Not a reference that is an argument anywhere below `leave`: the membership may be gone before that
        // returns.
        let (lane, is_closed) = {
            // In a forked child the request is the parent's, and there is nothing to do.
            let Some(operation) = Operation::begin(self.membership()) else {
                return;
            };
            operation.finish(self.engine(), self.tokens());
            if operation.is_awaited() {
                return end_and_wake(operation, self.engine());
            }
            operation.end_permit()
        };
        // SAFETY: this thread is in an operation in that lane.
        unsafe { RETIRED.leave(lane, is_closed) };
    }
}

/// Ends the permit of a request that was finished on this engine, and then wakes the frontend of one that waits.
#[cold]
#[inline(never)]
fn end_and_wake(operation: Operation<'_>, engine: usize) {
    let table = operation.table().clone();
    let (lane, is_closed) = operation.end_permit();
    // SAFETY: this thread is in an operation in that lane.
    unsafe { RETIRED.leave(lane, is_closed) };
    table.wake_for(engine);
}

/// Gives back the memberships that nothing holds any more.
pub(crate) fn give_back() {
    RETIRED.give_back();
}
