//! What only the holder of a lane may touch, in memory of the process.

#[cfg(not(loom))]
use core::cell::UnsafeCell;
#[cfg(loom)]
use loom::cell::UnsafeCell;

/// A value that belongs to the holder of a lane.
#[derive(Debug)]
pub(crate) struct LaneCell<T>(UnsafeCell<T>);

// SAFETY: one thread at a time touches it, as `with` asks for, and what hands the lane on orders one holder after the
// other.
unsafe impl<T: Send> Sync for LaneCell<T> {}

// No code of the user's runs while it is touched, and what is in it is worked out anew or starts over if it is wrong.
impl<T> core::panic::RefUnwindSafe for LaneCell<T> {}

impl<T> LaneCell<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// Calls `act` with the value.
    ///
    /// # Safety
    /// The calling thread has entered the lane, and has not left it. `act` does not come back here.
    #[inline(always)]
    pub(crate) unsafe fn with<R>(&self, act: impl FnOnce(&mut T) -> R) -> R {
        #[cfg(not(loom))]
        // SAFETY: the caller is in the lane, alone, and not in another call of this.
        return act(unsafe { &mut *self.0.get() });
        #[cfg(loom)]
        // SAFETY: as above, and loom looks whether it is so.
        return self.0.with_mut(|value| act(unsafe { &mut *value }));
    }
}
