//! A thread that stops for ever after its k-th access to shared memory, as a killed process does.

use crate::algorithm::primitive::before_each_access;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

loom::thread_local! {
    /// How many accesses the thread has left. `None`: it lives for ever.
    static LEFT: Cell<Option<usize>> = Cell::new(None);
}

struct Death;

/// Runs `life` with so many accesses left. `None` if it died, and left everything as it was then.
pub(crate) fn live_for<T>(accesses: usize, life: impl FnOnce() -> T) -> Option<T> {
    before_each_access(|| {
        LEFT.with(|left| match left.get() {
            None => {}
            // Unwinding runs no code of the algorithms: they have no destructors.
            Some(0) => resume_unwind(Box::new(Death)),
            Some(more) => left.set(Some(more - 1)),
        });
    });
    LEFT.with(|left| left.set(Some(accesses)));
    let lived = catch_unwind(AssertUnwindSafe(life));
    LEFT.with(|left| left.set(None));
    match lived {
        Ok(result) => Some(result),
        Err(panic) if panic.is::<Death>() => None,
        Err(panic) => resume_unwind(panic),
    }
}
