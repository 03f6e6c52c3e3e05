//! The lock of the C library for processes that may die: a process-shared robust mutex.

use super::Lock;
use std::cell::UnsafeCell;
use std::io;
use std::mem::MaybeUninit;

/// A `pthread_mutex_t` that processes share. If its holder dies, the next one to take it is told.
#[derive(Debug)]
pub struct RobustMutex(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: a mutex is there to be used by several threads.
unsafe impl Sync for RobustMutex {}
// SAFETY: it is moved before it is prepared only, as `Lock` asks.
unsafe impl Send for RobustMutex {}

impl Lock for RobustMutex {
    fn new() -> Self {
        Self(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER))
    }

    fn prepare(&self) -> io::Result<()> {
        let mut attributes = MaybeUninit::uninit();
        let attributes = attributes.as_mut_ptr();
        // SAFETY: a place for attributes, which this call makes.
        succeeded(unsafe { libc::pthread_mutexattr_init(attributes) })?;
        // SAFETY: attributes that were made above.
        let shared =
            unsafe { libc::pthread_mutexattr_setpshared(attributes, libc::PTHREAD_PROCESS_SHARED) };
        succeeded(shared)?;
        // SAFETY: as above.
        let robust =
            unsafe { libc::pthread_mutexattr_setrobust(attributes, libc::PTHREAD_MUTEX_ROBUST) };
        succeeded(robust)?;
        // SAFETY: no process uses the mutex yet, and it stays where it is.
        succeeded(unsafe { libc::pthread_mutex_init(self.0.get(), attributes) })?;
        // SAFETY: made above, and not used any more.
        succeeded(unsafe { libc::pthread_mutexattr_destroy(attributes) })
    }

    #[inline]
    fn lock(&self) -> io::Result<bool> {
        // SAFETY: a mutex that was prepared.
        match unsafe { libc::pthread_mutex_lock(self.0.get()) } {
            0 => Ok(false),
            libc::EOWNERDEAD => {
                // SAFETY: we hold it, by what the lock has answered.
                succeeded(unsafe { libc::pthread_mutex_consistent(self.0.get()) })?;
                Ok(true)
            }
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    #[inline]
    fn unlock(&self) {
        // SAFETY: a mutex that we hold; giving it back cannot fail then.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) };
    }
}

fn succeeded(code: libc::c_int) -> io::Result<()> {
    match code {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}
