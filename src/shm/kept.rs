//! A lock that no child gets, however and whenever it was forked.
//!
//! A fork copies descriptors, and a lock lasts until the last copy of its open file is closed. The
//! fork handlers of [`fork`](super::fork) close the copies, but a child may come about without them: by a
//! raw system call, or by a fork that was under way in the C library when they were installed. So a lock
//! that lasts is not held through a descriptor. A mapping keeps its open file as well, and the kernel
//! does not copy a mapping that was advised so. It goes with the process's memory: at its death and when
//! it executes another program. Nothing ever looks through the mapping.
//!
//! That leaves the moments in which the open file has a descriptor, or a mapping that was not yet
//! advised. A *canary* tells whether a fork copied anything in such a moment: one more open file, open or
//! mapped from before it until after it, with a lock of its own on a byte that is used for nothing else. If
//! that byte is free when the canary has been closed here, then no other process got a copy. (Children whose
//! fork handlers run close their copies of both, but not their mappings.)

use super::fork::ProcessToken;
use super::lock::{LockFile, is_locked};
use crate::shm::layout::FIRST_CANARY_LOCK;
use rustix::mm::{Advice, MapFlags, ProtFlags};
use std::ffi::c_void;
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A lock on a byte of a table, held until this is dropped or the process dies.
#[derive(Debug)]
pub(crate) struct KeptLock {
    _by: KeptBy,
}

/// The owner of the open file.
#[derive(Debug)]
enum KeptBy {
    /// A mapping that no fork copies.
    Mapping { _mapped: Mapped },
    /// A descriptor, on file systems whose mappings keep another file than the one that was opened, as
    /// those of overlayfs do. Children whose fork handlers run close it.
    Descriptor { _file: LockFile },
}

/// What was locked.
pub(crate) struct Kept<T> {
    pub(crate) lock: KeptLock,
    pub(crate) what: T,
    /// Whether a child may have got a copy of the lock all the same.
    pub(crate) is_shared: bool,
}

impl KeptLock {
    /// Keeps the lock that `take` takes by an open file of its own. `None` if it takes none.
    ///
    /// Some twenty system calls; more only if other threads fork meanwhile.
    pub(crate) fn take<T>(
        table: BorrowedFd<'_>,
        take: impl Fn(&LockFile) -> io::Result<Option<T>>,
    ) -> io::Result<Option<Kept<T>>> {
        loop {
            let open = Canary::open(table)?;
            // Not in a child whose fork handlers run, whatever the canaries say.
            let file = LockFile::open(table)?;
            let Some(unadvised) = Canary::map(table)? else {
                let what = take(&file)?;
                return Ok(what.map(|what| Kept {
                    lock: Self {
                        _by: KeptBy::Descriptor { _file: file },
                    },
                    what,
                    is_shared: false,
                }));
            };
            let mapped = Mapped::new(&file)?;
            mapped.keep_from_children()?;
            if unadvised.was_copied(table)? {
                continue; // Nothing is locked yet: a child may have these.
            }
            let Some(what) = take(&file)? else {
                return Ok(None);
            };
            file.close_and_keep_locks(table)?;
            return Ok(Some(Kept {
                lock: Self {
                    _by: KeptBy::Mapping { _mapped: mapped },
                },
                what,
                is_shared: open.was_copied(table)?,
            }));
        }
    }
}

/// One page of a table, without any right to it.
#[derive(Debug)]
struct Mapped {
    at: *mut c_void,
    process: ProcessToken,
}

// SAFETY: an address that is only ever unmapped, once.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

const PAGE: usize = 4096; // the kernel rounds up to its own

impl Mapped {
    fn new(file: &LockFile) -> io::Result<Self> {
        let process = ProcessToken::current()?;
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing.
        let at = unsafe {
            rustix::mm::mmap(
                ptr::null_mut(),
                PAGE,
                ProtFlags::empty(),
                MapFlags::SHARED,
                file,
                0,
            )
        }?;
        Ok(Self { at, process })
    }

    fn keep_from_children(&self) -> io::Result<()> {
        // SAFETY: the mapping is ours, and no address in it is ever used.
        unsafe { rustix::mm::madvise(self.at, PAGE, Advice::LinuxDontFork) }?;
        Ok(())
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // A child does not have the mapping, and may have another there.
        if self.process.is_current() {
            // SAFETY: ours, and not used again. Nothing is left to do should the kernel refuse.
            let _ = unsafe { rustix::mm::munmap(self.at, PAGE) };
        }
    }
}

/// An open file that tells whether a fork has copied it.
struct Canary {
    byte: u64,
    file: Option<LockFile>,
    mapped: Option<Mapped>,
}

impl Canary {
    /// One that is copied as a descriptor is.
    fn open(table: BorrowedFd<'_>) -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let file = LockFile::open(table)?;
        let seed = u64::from(std::process::id()) << 24;
        loop {
            // Relaxed: only has to be another number each time. Bytes of other processes, which may
            // have the same pid in a namespace of theirs, are found locked.
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let byte = FIRST_CANARY_LOCK + seed.wrapping_add(number) % (1 << 48);
            if file.try_lock_byte(byte)? {
                return Ok(Self {
                    byte,
                    file: Some(file),
                    mapped: None,
                });
            }
        }
    }

    /// One that is copied as a mapping is. `None` where a mapping keeps no locks.
    fn map(table: BorrowedFd<'_>) -> io::Result<Option<Self>> {
        let mut canary = Self::open(table)?;
        canary.mapped = canary.file.as_ref().map(Mapped::new).transpose()?;
        if let Some(file) = canary.file.take() {
            file.close_and_keep_locks(table)?;
        }
        Ok(is_locked(table, canary.byte)?.then_some(canary))
    }

    /// Closes it here. Whether another process has it still.
    fn was_copied(self, table: BorrowedFd<'_>) -> io::Result<bool> {
        // A child whose fork handlers run closes its copy within moments, and one that executes another
        // program has none from then on.
        const LOOKS: u32 = 8;
        drop(self.mapped);
        if let Some(file) = self.file {
            file.close_and_keep_locks(table)?;
        }
        for look in 0..LOOKS {
            if !is_locked(table, self.byte)? {
                return Ok(false);
            }
            std::thread::sleep(Duration::from_micros(50 << look));
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::MemfdFlags;
    use std::os::fd::AsFd;

    /// Forks a child that only lives until it is killed, by the system call itself.
    fn fork_without_handlers() -> libc::pid_t {
        let none: libc::c_long = 0;
        // SAFETY: the child makes system calls and nothing else.
        let child =
            unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, none, none, none, none) };
        if child == 0 {
            loop {
                // SAFETY: ends this child if the test that should kill it does not get that far.
                unsafe { libc::alarm(60) };
                // SAFETY: sleeping touches nothing.
                unsafe { libc::pause() };
            }
        }
        child as libc::pid_t
    }

    fn kill(child: libc::pid_t) {
        // SAFETY: a child of ours that was not waited for.
        assert_eq!(unsafe { libc::kill(child, libc::SIGKILL) }, 0);
        // SAFETY: as above, and asks for no status.
        assert_eq!(unsafe { libc::waitpid(child, ptr::null_mut(), 0) }, child);
    }

    #[test]
    fn k3_a_canary_tells_whether_a_fork_has_copied_it() {
        let table = rustix::fs::memfd_create("canary", MemfdFlags::CLOEXEC).unwrap();
        let table = table.as_fd();
        let mapped = |table| Canary::map(table).map(|canary| canary.expect("memory keeps locks"));
        let kinds: [&dyn Fn(_) -> io::Result<Canary>; 2] = [&Canary::open, &mapped];
        for kind in kinds {
            let before = fork_without_handlers();
            let canary = kind(table).unwrap();
            assert!(!canary.was_copied(table).unwrap());
            let canary = kind(table).unwrap();
            let byte = canary.byte;
            let amid = fork_without_handlers();
            assert!(canary.was_copied(table).unwrap());
            kill(amid);
            assert!(!is_locked(table, byte).unwrap());
            kill(before);
        }
    }
}
