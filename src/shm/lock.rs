//! Liveness: open-file-description locks on bytes of the table.
//!
//! The kernel drops such a lock when the last descriptor of the open file is closed: at the
//! process's death, whatever it died of, in whatever pid namespace, as soon as its memory is gone
//! and, if it dumps core, the dump is written. Each [`LockFile`] is an
//! open file of its own, so locks of one process exclude each other as those of two do.

use super::fork::{ClosedInChild, ProcessToken};
use crate::algorithm::registry::{Holder, Locks};
use crate::shm::layout::slot_lock;
use rustix::fs::{Mode, OFlags};
use rustix::io::DupFlags;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// An open file of its own on a table, for the locks that are held through it.
#[derive(Debug)]
pub(crate) struct LockFile {
    /// Not dropped in a forked child: the fork handler has closed it there, and its number may be
    /// another file's by then.
    fd: ManuallyDrop<OwnedFd>,
    listed: ManuallyDrop<ClosedInChild>,
    process: ProcessToken,
}

impl LockFile {
    /// Opens the table behind `table` once more.
    pub(crate) fn open(table: BorrowedFd<'_>) -> io::Result<Self> {
        let process = ProcessToken::current()?;
        let (fd, listed) = ClosedInChild::open(|| reopen(table))?;
        Ok(Self {
            fd: ManuallyDrop::new(fd),
            listed: ManuallyDrop::new(listed),
            process,
        })
    }

    /// Closes the descriptor, whose place that of the table takes for a moment. The locks last for as
    /// long as the open file has a mapping, or a copy in a child.
    pub(crate) fn close_and_keep_locks(self, table: BorrowedFd<'_>) -> io::Result<()> {
        let mut this = ManuallyDrop::new(self);
        if let Err(error) = rustix::io::dup3(table, &mut this.fd, DupFlags::CLOEXEC) {
            // As when it is dropped: its copies must not hold the locks.
            drop(ManuallyDrop::into_inner(this));
            return Err(error.into());
        }
        this.listed.wait_for_forks()?;
        this.close();
        Ok(())
    }

    fn close(&mut self) {
        // SAFETY: the two callers own the file and do not use it again.
        unsafe { ManuallyDrop::drop(&mut self.listed) };
        // SAFETY: as above.
        unsafe { ManuallyDrop::drop(&mut self.fd) };
    }

    /// Whether this process is the one that opened it, and not a forked child.
    pub(crate) fn is_ours(&self) -> bool {
        self.process.is_current()
    }

    /// Takes the lock of a byte if it is free. Says false if it is not.
    pub(crate) fn try_lock_byte(&self, byte: u64) -> io::Result<bool> {
        self.try_lock_range(Range { byte, length: 1 })
    }

    fn try_lock_range(&self, range: Range) -> io::Result<bool> {
        match ofd(self.fd.as_fd(), libc::F_OFD_SETLK, libc::F_WRLCK, range) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) if error.raw_os_error() == Some(libc::EACCES) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn unlock_range(&self, range: Range) -> io::Result<()> {
        ofd(self.fd.as_fd(), libc::F_OFD_SETLK, libc::F_UNLCK, range).map(drop)
    }
}

/// Bytes that are locked together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Range {
    byte: u64,
    length: u64,
}

/// The bytes that the frontend in a slot locks.
fn of_frontend(slot: usize) -> Range {
    Range {
        byte: slot_lock(slot),
        length: 1,
    }
}

/// The bytes that a process locks which reaps a slot, or finds out whether it is free.
fn of_visitor(slot: usize) -> Range {
    Range {
        byte: slot_lock(slot),
        length: 2,
    }
}

/// Whether the lock of a byte is held, as seen from any descriptor of the file.
pub(crate) fn is_locked(table: BorrowedFd<'_>, byte: u64) -> io::Result<bool> {
    Ok(held(table, Range { byte, length: 1 })?.is_some())
}

/// The holder of the lock of a slot, as seen from any descriptor of the file. One system call, whose
/// answer is of one instant: only one lock can lie on the slot's byte, and its length says whose it is.
pub(crate) fn holder(table: BorrowedFd<'_>, slot: usize) -> io::Result<Option<Holder>> {
    let found = held(table, of_frontend(slot))?;
    Ok(found.map(|range| match range == of_visitor(slot) {
        true => Holder::Visitor,
        false => Holder::Frontend,
    }))
}

/// The range of another open file's lock that lies on a range, if there is one.
fn held(table: BorrowedFd<'_>, range: Range) -> io::Result<Option<Range>> {
    let found = ofd(table, libc::F_OFD_GETLK, libc::F_WRLCK, range)?;
    Ok((i32::from(found.l_type) != libc::F_UNLCK).then_some(Range {
        byte: found.l_start as u64,
        length: found.l_len as u64,
    }))
}

/// One lock call; returns the request as the kernel has left it.
fn ofd(fd: BorrowedFd<'_>, command: i32, kind: i32, range: Range) -> io::Result<libc::flock> {
    // SAFETY: a C structure of integers, of which zeros are a value.
    let mut request: libc::flock = unsafe { std::mem::zeroed() };
    request.l_type = kind as libc::c_short;
    request.l_whence = libc::SEEK_SET as libc::c_short;
    request.l_start = range.byte as libc::off_t;
    request.l_len = range.length as libc::off_t;
    // SAFETY: these commands read and write one `flock`, which lives until the call returns.
    let code = unsafe { libc::fcntl(fd.as_raw_fd(), command, &raw mut request) };
    if code == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(request)
}

impl Locks for LockFile {
    type Error = io::Error;

    fn try_lock(&self, slot: usize) -> io::Result<bool> {
        self.try_lock_range(of_visitor(slot))
    }

    fn become_frontend(&self, slot: usize) -> io::Result<()> {
        // The first byte stays locked all the while.
        let byte = slot_lock(slot) + 1;
        self.unlock_range(Range { byte, length: 1 })
    }

    fn holder(&self, slot: usize) -> io::Result<Option<Holder>> {
        holder(self.fd.as_fd(), slot)
    }

    fn unlock(&self, slot: usize) -> io::Result<()> {
        self.unlock_range(of_visitor(slot))
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        if !self.is_ours() {
            return;
        }
        // All locks first, then the list: a child that is forked in between shares an open file on
        // which nothing is locked any more. An error leaves it to the close below.
        let _ = unlock_all(self.fd.as_fd());
        self.close();
    }
}

impl AsFd for LockFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Opens the file behind a descriptor as an open file of its own.
fn reopen(table: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    // A duplicate would share the table's open file, and with it its locks. The kernel's link to the
    // descriptor opens the same file anew, under whatever name it has by now, or none.
    let path = format!("/proc/thread-self/fd/{}", table.as_raw_fd());
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

fn unlock_all(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: a C structure of integers, of which zeros are a value: the whole file.
    let mut request: libc::flock = unsafe { std::mem::zeroed() };
    request.l_type = libc::F_UNLCK as libc::c_short;
    // SAFETY: as in `ofd`.
    match unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_OFD_SETLK, &raw mut request) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
