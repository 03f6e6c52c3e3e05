//! The atomics everything here runs on: the machine's, or loom's under `cfg(loom)`.
//!
//! No other module knows about loom.

#[cfg(not(loom))]
pub(crate) use atomic::Atomic;
#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicU64, Ordering, fence};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(loom)]
pub(crate) use model::Atomic;

#[cfg(loom)]
mod model {
    use super::{AtomicU64, Ordering};
    use bytemuck::Pod;
    use core::marker::PhantomData;

    /// `atomic::Atomic` for 64-bit types, over loom's integer.
    #[derive(Debug)]
    pub(crate) struct Atomic<T> {
        bits: AtomicU64,
        typed: PhantomData<T>,
    }

    impl<T: Pod> Atomic<T> {
        pub(crate) fn new(value: T) -> Self {
            Self {
                bits: AtomicU64::new(bytemuck::cast(value)),
                typed: PhantomData,
            }
        }

        pub(crate) fn load(&self, order: Ordering) -> T {
            bytemuck::cast(self.bits.load(order))
        }

        pub(crate) fn store(&self, value: T, order: Ordering) {
            self.bits.store(bytemuck::cast(value), order);
        }

        pub(crate) fn compare_exchange(
            &self,
            current: T,
            new: T,
            success: Ordering,
            failure: Ordering,
        ) -> Result<T, T> {
            self.bits
                .compare_exchange(
                    bytemuck::cast(current),
                    bytemuck::cast(new),
                    success,
                    failure,
                )
                .map(bytemuck::cast)
                .map_err(bytemuck::cast)
        }
    }
}
