//! Forks: a child finds out that it is one, and closes the descriptors that it must not keep.
//!
//! A fork copies handles and shares open files. A child that used its copy of a handle would act as
//! its parent, and a child that only lived on with the descriptor would keep its dead parent's lock.
//! So a page that the kernel wipes on fork tells the two apart without a system call, and the C
//! library's fork handlers close the locked descriptors in the child.

use rustix::mm::{Advice, MapFlags, ProtFlags};
use std::cell::Cell;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The part of this process's state that a child must not inherit, on a page that reads as zeros in a child.
#[derive(Debug)]
#[repr(C)]
struct ProcessPage {
    /// Another number in each process that was forked from another. 0 until it is needed.
    token: AtomicU64,
    /// How many forks were begun and how many have ended, so that who opens a descriptor can tell that a
    /// child may have it: the kernel copies descriptors and memory one after the other, so a fork that is
    /// under way may copy the one with the new descriptor and the other without its entry.
    begun: AtomicU64,
    ended: AtomicU64,
}

thread_local! {
    /// Whether this thread is in `fork`, between its first handler and its last.
    static FORKING: Cell<bool> = const { Cell::new(false) };
}

/// How long forks of other threads are waited for. Those of a process of many gigabytes take tenths of a
/// second; where that is not enough, a child may have a lock file until it ends or executes a program.
struct Patience(Instant);

impl Patience {
    /// Longer in the unit tests of this file, which show that a call waits: however slow the machine is.
    const LIMIT: Duration = Duration::from_millis(if cfg!(test) { 60_000 } else { 300 });

    fn new() -> Self {
        Self(Instant::now())
    }

    fn is_over(&self) -> bool {
        self.0.elapsed() > Self::LIMIT
    }
}

/// Null until it is needed.
///
/// Not a lock of the standard library, here or below: a child would inherit one that another thread of
/// its parent was holding at the fork, and wait for that thread for ever.
static PROCESS: AtomicPtr<ProcessPage> = AtomicPtr::new(ptr::null_mut());

/// The last token that this process or one that it was forked from has had.
static LAST_TOKEN: AtomicU64 = AtomicU64::new(0);

/// The process in which a frontend, publisher or reaper was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessToken {
    process: &'static ProcessPage,
    own: u64,
}

impl ProcessToken {
    /// The token of this process.
    pub(crate) fn current() -> io::Result<Self> {
        let process = ProcessPage::get()?;
        // Relaxed, all: one word, written by this process only, that orders nothing else. Two
        // threads may both find it wiped; the first to set it wins.
        let fresh = LAST_TOKEN.load(Ordering::Relaxed) + 1;
        let set = (process.token).compare_exchange(0, fresh, Ordering::Relaxed, Ordering::Relaxed);
        let own = match set {
            Ok(_) => fresh,
            Err(set) => set,
        };
        LAST_TOKEN.fetch_max(own, Ordering::Relaxed);
        Ok(Self { process, own })
    }

    /// Whether this process is the one that the handle was made in. One load.
    #[inline]
    pub(crate) fn is_current(&self) -> bool {
        // Relaxed: written by this process only, before the handle was made, or by the kernel.
        self.process.token.load(Ordering::Relaxed) == self.own
    }
}

impl ProcessPage {
    fn known() -> Option<&'static Self> {
        // Acquire: pairs with the Release in `get`.
        let process = PROCESS.load(Ordering::Acquire);
        // SAFETY: null, or the page of `wiped_on_fork`, which stays mapped for ever.
        unsafe { process.as_ref() }
    }

    fn get() -> io::Result<&'static Self> {
        if let Some(process) = Self::known() {
            return Ok(process);
        }
        let process = Self::wiped_on_fork()?;
        // Release on success, Acquire on failure: the thread that loses leaves its page unused.
        let set = PROCESS.compare_exchange(
            ptr::null_mut(),
            ptr::from_ref(process).cast_mut(),
            Ordering::Release,
            Ordering::Acquire,
        );
        match set {
            Ok(_) => Ok(process),
            // SAFETY: not null, so the page of the thread that was faster.
            Err(other) => Ok(unsafe { &*other }),
        }
    }

    /// Waits for forks of other threads, but not for ever: one may wait, in another library's fork handler,
    /// for a lock that the calling thread has. And not for a fork of this thread, which has copied nothing
    /// while its handlers run.
    fn wait_for_forks(&self) {
        let patience = Patience::new();
        // SeqCst: in one order with the entries. What ended is read first, so that as many that have
        // begun are all that have. More may have ended, if the handlers were installed amid a fork.
        while self.ended.load(Ordering::SeqCst) < self.begun.load(Ordering::SeqCst)
            && !FORKING.get()
            && !patience.is_over()
        {
            std::thread::yield_now();
        }
    }

    fn wiped_on_fork() -> io::Result<&'static Self> {
        const PAGE: usize = 4096; // the kernel rounds up to its own
        // SAFETY: a new anonymous mapping at an address of the kernel's choice touches nothing.
        let page = unsafe {
            rustix::mm::mmap_anonymous(
                ptr::null_mut(),
                PAGE,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        }?;
        // SAFETY: the page is ours alone and holds nothing yet that a wipe could take away.
        if let Err(error) = unsafe { rustix::mm::madvise(page, PAGE, Advice::LinuxWipeOnFork) } {
            // SAFETY: the page is ours alone, and no reference to it was made.
            let _ = unsafe { rustix::mm::munmap(page, PAGE) };
            return Err(error.into());
        }
        // SAFETY: the page is mapped for ever, aligned and zeroed, and only used through its atomics.
        Ok(unsafe { &*page.cast::<Self>() })
    }
}

/// A descriptor that a forked child must close. The entries form a list that only grows; an entry
/// that is not in use holds a number below 0.
#[derive(Debug)]
struct Entry {
    fd: AtomicI32,
    /// The token of the process that listed it.
    process: AtomicU64,
    /// Which file it is. A fork copies the descriptors first and the memory later, so an entry may be
    /// newer than the child's descriptor of that number.
    device: AtomicU64,
    inode: AtomicU64,
    next: AtomicPtr<Entry>,
}

const UNUSED: i32 = -1;
const CLAIMED: i32 = -2;

static ENTRIES: AtomicPtr<Entry> = AtomicPtr::new(ptr::null_mut());

/// Keeps a descriptor on the list for as long as it lives.
#[derive(Debug)]
pub(crate) struct ClosedInChild {
    entry: &'static Entry,
}

impl ClosedInChild {
    /// Opens a descriptor such that no child will have it whose fork handlers run, whenever it is forked.
    pub(crate) fn open(open: impl Fn() -> io::Result<OwnedFd>) -> io::Result<(OwnedFd, Self)> {
        install()?;
        let process = ProcessPage::get()?;
        let patience = Patience::new();
        loop {
            // SeqCst, all of `begun` and `ended`: they are in one order with the entries. If no fork is
            // under way here and none has begun by the last line, then none has copied anything in between.
            process.wait_for_forks();
            let begun = process.begun.load(Ordering::SeqCst);
            let was_quiet = process.ended.load(Ordering::SeqCst) >= begun;
            let (fd, listed) = Self::list(open()?)?;
            let is_quiet = process.begun.load(Ordering::SeqCst) == begun;
            if was_quiet && is_quiet || FORKING.get() || patience.is_over() {
                return Ok((fd, listed));
            }
            // A child may have this one for good. Nothing is locked on it yet: leave it to the
            // child and open another. The entry goes first, or it would be of the next file of that number.
            drop(listed);
            drop(fd);
        }
    }

    /// Waits until no fork is under way that may have copied the descriptor as it was before the call, and
    /// then the memory without this entry, were it dropped.
    pub(crate) fn wait_for_forks(&self) -> io::Result<()> {
        ProcessPage::get()?.wait_for_forks();
        Ok(())
    }

    fn list(fd: OwnedFd) -> io::Result<(OwnedFd, Self)> {
        let own = ProcessToken::current()?.own;
        let stat = rustix::fs::fstat(&fd)?;
        opened_here(&fd)?;
        let entry = entries()
            .find(|entry| entry.claim())
            .unwrap_or_else(Entry::leak);
        // Relaxed, all: ordered by the store below.
        entry.process.store(own, Ordering::Relaxed);
        entry.device.store(stat.st_dev, Ordering::Relaxed);
        entry.inode.store(stat.st_ino, Ordering::Relaxed);
        // SeqCst: with `begun`, as above.
        entry.fd.store(fd.as_raw_fd(), Ordering::SeqCst);
        Ok((fd, Self { entry }))
    }
}

impl Entry {
    /// Takes an entry that is free.
    fn claim(&self) -> bool {
        // Acquire: pairs with the Release in the drop of the entry's last user.
        self.fd
            .compare_exchange(UNUSED, CLAIMED, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Puts a claimed entry on the list, for ever.
    fn leak() -> &'static Self {
        let entry: &'static Self = Box::leak(Box::new(Self {
            fd: AtomicI32::new(CLAIMED),
            process: AtomicU64::new(0),
            device: AtomicU64::new(0),
            inode: AtomicU64::new(0),
            next: AtomicPtr::new(ptr::null_mut()),
        }));
        let link = |head| {
            // Relaxed: ordered by the exchange.
            entry.next.store(head, Ordering::Relaxed);
            Some(ptr::from_ref(entry).cast_mut())
        };
        // Release: pairs with the Acquire in `entries`. It only fails to try again.
        let _ = ENTRIES.fetch_update(Ordering::Release, Ordering::Relaxed, link);
        entry
    }

    /// Takes another process's entry of that number off the list.
    fn forget(&self, fd: i32, own: u64) {
        // Relaxed, all: another process's entry is a copy, from before this process began.
        if self.process.load(Ordering::Relaxed) != own {
            let _ = self
                .fd
                .compare_exchange(fd, UNUSED, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Closes the descriptor, in a child, unless the child has opened it itself: another library's fork
    /// handler may have joined a table before ours runs.
    fn close_unless_of(&self, own: u64) {
        // Relaxed, all: the child has one thread and its own copy.
        if self.process.load(Ordering::Relaxed) == own {
            return;
        }
        let fd = self.fd.swap(UNUSED, Ordering::Relaxed);
        // SAFETY: a C structure of integers, of which zeros are a value.
        let mut stat: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: writes to that structure only, and fails on a number that is not open.
        let known = fd >= 0 && unsafe { libc::fstat(fd, &raw mut stat) } == 0;
        if known
            && stat.st_dev == self.device.load(Ordering::Relaxed)
            && stat.st_ino == self.inode.load(Ordering::Relaxed)
        {
            // SAFETY: the descriptor was copied from the parent, whose handle owns it; in this
            // process the copies of that handle never use it (see `LockFile`).
            unsafe { libc::close(fd) };
        }
    }
}

impl Drop for ClosedInChild {
    fn drop(&mut self) {
        // Release: the next user takes the entry after us.
        self.entry.fd.store(UNUSED, Ordering::Release);
    }
}

/// A file was opened. If a parent's descriptor of that number has been closed in this child, where our
/// handler has not run yet, the handler must not take the new one for the old one.
pub(crate) fn opened_here(fd: &impl AsRawFd) -> io::Result<()> {
    let own = ProcessToken::current()?.own;
    entries().for_each(|entry| entry.forget(fd.as_raw_fd(), own));
    Ok(())
}

fn entries() -> impl Iterator<Item = &'static Entry> {
    let follow = |at: &AtomicPtr<Entry>| {
        // SAFETY: null, or an entry that was leaked by `list` and is never changed but through its
        // atomics. Acquire: pairs with the publication of the entry in `list`.
        unsafe { at.load(Ordering::Acquire).as_ref() }
    };
    std::iter::successors(follow(&ENTRIES), move |entry| follow(&entry.next))
}

/// Installs the fork handlers. Two threads may do so at once, which does no harm.
fn install() -> io::Result<()> {
    static INSTALLED: AtomicBool = AtomicBool::new(false);
    // Acquire: pairs with the Release below.
    if INSTALLED.load(Ordering::Acquire) {
        return Ok(());
    }
    // The handlers count on it, all or none.
    ProcessPage::get()?;
    // A fork that is under way runs all of the handlers or, if it began before this, none: it does not
    // see half of them, but it may not be seen. Locks that last are kept from its child in another
    // way (see `kept`).
    // SAFETY: the handlers only touch atomics, examine and close descriptors: allowed there.
    let code = unsafe { libc::pthread_atfork(Some(before_fork), Some(in_parent), Some(in_child)) };
    if code != 0 {
        return Err(io::Error::from_raw_os_error(code));
    }
    INSTALLED.store(true, Ordering::Release);
    Ok(())
}

unsafe extern "C" fn before_fork() {
    FORKING.set(true);
    if let Some(process) = ProcessPage::known() {
        process.begun.fetch_add(1, Ordering::SeqCst);
    }
}

unsafe extern "C" fn in_parent() {
    FORKING.set(false);
    if let Some(process) = ProcessPage::known() {
        process.ended.fetch_add(1, Ordering::SeqCst);
    }
}

unsafe extern "C" fn in_child() {
    FORKING.set(false);
    // Relaxed: the child has one thread. The numbers of forks are the parent's, and the kernel has wiped
    // them, with the token. That is another one by now if the child has used the library before.
    let own = ProcessPage::known().map_or(0, |process| process.token.load(Ordering::Relaxed));
    entries().for_each(|entry| entry.close_unless_of(own));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::sync::Mutex;
    use std::sync::atomic::AtomicUsize;
    use std::thread;
    use std::time::Duration;

    /// Forks that are not, one test at a time.
    static FORKS: Mutex<()> = Mutex::new(());

    fn open_null() -> io::Result<OwnedFd> {
        Ok(File::open("/dev/null")?.into())
    }

    #[test]
    fn k3_no_descriptor_is_opened_while_a_fork_is_under_way() {
        let _one_at_a_time = FORKS.lock().unwrap();
        install().unwrap();
        let (called, opened) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            // SAFETY: what the C library calls before a fork counts, and nothing else.
            unsafe { before_fork() };
            let opening = scope.spawn(|| {
                called.store(true, Ordering::SeqCst);
                let open = || {
                    opened.store(true, Ordering::SeqCst);
                    open_null()
                };
                drop(ClosedInChild::open(open).unwrap());
            });
            while !called.load(Ordering::SeqCst) {
                thread::yield_now();
            }
            thread::sleep(Duration::from_millis(100));
            let was_opened = opened.load(Ordering::SeqCst);
            // SAFETY: as above.
            unsafe { in_parent() };
            opening.join().unwrap();
            assert!(!was_opened && opened.load(Ordering::SeqCst));
        });
    }

    #[test]
    fn k3_a_descriptor_stays_on_the_list_while_a_fork_may_be_copying_it() {
        let _one_at_a_time = FORKS.lock().unwrap();
        let (_fd, listed) = ClosedInChild::open(open_null).unwrap();
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            // SAFETY: as above.
            unsafe { before_fork() };
            let waiting = scope.spawn(|| {
                listed.wait_for_forks().unwrap();
                is_over.load(Ordering::SeqCst)
            });
            thread::sleep(Duration::from_millis(100));
            is_over.store(true, Ordering::SeqCst);
            // SAFETY: as above.
            unsafe { in_parent() };
            assert!(waiting.join().unwrap());
        });
    }

    #[test]
    fn k3_a_descriptor_that_a_fork_may_have_copied_unlisted_is_opened_anew() {
        let _one_at_a_time = FORKS.lock().unwrap();
        let opens = AtomicUsize::new(0);
        let open = || {
            let fd = open_null();
            if opens.fetch_add(1, Ordering::SeqCst) == 0 {
                // SAFETY: as above: a whole fork, before the descriptor is on the list.
                unsafe { before_fork() };
                // SAFETY: as above.
                unsafe { in_parent() };
            }
            fd
        };
        drop(ClosedInChild::open(open).unwrap());
        assert_eq!(opens.load(Ordering::SeqCst), 2);
    }
}
