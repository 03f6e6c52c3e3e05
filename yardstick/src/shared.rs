//! Memory that a process shares with its forked children.

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::io;
use std::ops::Deref;
use std::ptr::NonNull;

/// Values in memory that this process shares with the children that it forks later.
#[derive(Debug)]
pub struct Shared<T> {
    start: NonNull<T>,
    count: usize,
}

impl<T: Sync> Shared<T> {
    /// Maps `count` values. `T` must not point to anything, for that would not be shared.
    ///
    /// # Errors
    ///
    /// What the system says, if it refuses memory.
    pub fn new(count: usize, make: impl Fn(usize) -> T) -> io::Result<Self> {
        const { assert!(align_of::<T>() <= 4096 && size_of::<T>() > 0) };
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        let both = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, where the kernel likes, touches none that is there.
        let start =
            unsafe { mmap_anonymous(std::ptr::null_mut(), count * size_of::<T>(), both, flags) }?;
        let start = NonNull::new(start.cast::<T>()).ok_or(io::ErrorKind::OutOfMemory)?;
        for index in 0..count {
            // SAFETY: within the mapping, which is of `count` values and begins on a page.
            let value = unsafe { start.add(index) };
            // SAFETY: there is no reference to the memory yet.
            unsafe { value.write(make(index)) };
        }
        Ok(Self { start, count })
    }
}

impl<T> Deref for Shared<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: written in `new`, mapped until the drop, and changed only as `T: Sync` allows.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.count) }
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        let bytes = self.count * size_of::<T>();
        // SAFETY: the mapping is ours, and what was borrowed from it is gone. If it cannot be taken
        // away, it stays until the process ends.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), bytes) };
    }
}

// SAFETY: a box of `T` in all but where it lies.
unsafe impl<T: Send> Send for Shared<T> {}
// SAFETY: hands out `&T` only.
unsafe impl<T: Sync> Sync for Shared<T> {}
