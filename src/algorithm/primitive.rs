//! The atomics everything here runs on: the machine's, or loom's under `cfg(loom)`.
//!
//! No other module knows about loom.

#[cfg(not(loom))]
pub(crate) use atomic::Atomic;
#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering, fence};

/// Has the line of `place` fetched for writing, while what comes next goes on: a hint, no access.
///
/// A load alone fetches a line for reading, and the write after it then has to ask for it again.
#[inline]
pub(crate) fn about_to_write<T>(place: &T) {
    #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
    // SAFETY: a prefetch changes nothing that a program can see, and no address makes it fault;
    // processors that do not know it take it for no operation.
    unsafe {
        core::arch::asm!(
            "prefetchw [{}]",
            in(reg) core::ptr::from_ref(place),
            options(nostack, preserves_flags, readonly)
        );
    }
    #[cfg(not(all(target_arch = "x86_64", not(loom), not(miri))))]
    let _ = place;
}

/// A full fence, right after a read-modify-write of this thread that other threads see: orders it before the loads that
/// come next.
#[inline]
pub(crate) fn fence_after_swap() {
    // On x86-64 the read-modify-write is one already, so nothing but the compiler has to be told.
    #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
    core::sync::atomic::compiler_fence(Ordering::SeqCst);
    #[cfg(not(all(target_arch = "x86_64", not(loom), not(miri))))]
    fence(Ordering::SeqCst);
}

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicPtr, Ordering, fence};
#[cfg(loom)]
pub(crate) use model::{Atomic, AtomicU64, before_each_access};

#[cfg(loom)]
mod model {
    use super::Ordering;
    use bytemuck::Pod;
    use core::marker::PhantomData;
    use core::ops::Deref;
    use loom::sync::atomic;

    type Hook = fn();

    static HOOK: std::sync::OnceLock<Hook> = std::sync::OnceLock::new();

    /// Has `hook` called before each access to an atomic: where a model lets a process die.
    pub(crate) fn before_each_access(hook: Hook) {
        HOOK.get_or_init(|| hook);
    }

    /// Loom's integer; going through the dereference is what calls the hook.
    #[derive(Debug)]
    pub(crate) struct AtomicU64(atomic::AtomicU64);

    impl AtomicU64 {
        pub(crate) fn new(value: u64) -> Self {
            Self(atomic::AtomicU64::new(value))
        }
    }

    impl Deref for AtomicU64 {
        type Target = atomic::AtomicU64;

        fn deref(&self) -> &atomic::AtomicU64 {
            if let Some(hook) = HOOK.get() {
                hook();
            }
            &self.0
        }
    }

    /// `atomic::Atomic` for types of at most 64 bits, over loom's integer.
    #[derive(Debug)]
    pub(crate) struct Atomic<T> {
        bits: AtomicU64,
        typed: PhantomData<T>,
    }

    impl<T: Pod> Atomic<T> {
        pub(crate) fn new(value: T) -> Self {
            Self {
                bits: AtomicU64::new(widened(value)),
                typed: PhantomData,
            }
        }

        pub(crate) fn load(&self, order: Ordering) -> T {
            narrowed(self.bits.load(order))
        }

        pub(crate) fn store(&self, value: T, order: Ordering) {
            self.bits.store(widened(value), order);
        }

        pub(crate) fn compare_exchange(
            &self,
            current: T,
            new: T,
            success: Ordering,
            failure: Ordering,
        ) -> Result<T, T> {
            (self.bits)
                .compare_exchange(widened(current), widened(new), success, failure)
                .map(narrowed)
                .map_err(narrowed)
        }
    }

    fn widened<T: Pod>(value: T) -> u64 {
        let mut bytes = [0; 8];
        bytes[..size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&value));
        u64::from_ne_bytes(bytes)
    }

    fn narrowed<T: Pod>(bits: u64) -> T {
        bytemuck::pod_read_unaligned(&bits.to_ne_bytes()[..size_of::<T>()])
    }
}
