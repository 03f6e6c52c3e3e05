//! What a forked child must know: that it is one, and which descriptors it must not keep.
//!
//! A fork copies handles and shares open files. A child that used its copy of a handle would act as
//! its parent, and a child that only lived on with the descriptor would keep its dead parent's lock.
//! So a page that the kernel wipes on fork tells the two apart without a system call, and the C
//! library's fork handlers close the locked descriptors in the child.

use rustix::mm::{Advice, MapFlags, ProtFlags};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU64, Ordering};

/// The mark of this process, on a page that reads as zeros in a child of it. Null until it is needed.
///
/// Not a lock of the standard library, here or below: a child would inherit one that another thread of
/// its parent was holding at the fork, and wait for that thread for ever.
static MARK: AtomicPtr<AtomicU64> = AtomicPtr::new(ptr::null_mut());

/// The last mark that this process or one that it was forked from has had.
static LAST_MARK: AtomicU64 = AtomicU64::new(0);

/// In which process a handle was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Birth {
    mark: &'static AtomicU64,
    own: u64,
}

impl Birth {
    /// The mark of this process.
    pub(crate) fn here() -> io::Result<Self> {
        let mark = mark()?;
        // Relaxed, all: one word, written by this process only, that orders nothing else. Two
        // threads may both find it wiped; the first to set it wins.
        let fresh = LAST_MARK.load(Ordering::Relaxed) + 1;
        let own = match mark.compare_exchange(0, fresh, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => fresh,
            Err(set) => set,
        };
        LAST_MARK.fetch_max(own, Ordering::Relaxed);
        Ok(Self { mark, own })
    }

    /// Whether this process is the one that the handle was made in. One load.
    #[inline]
    pub(crate) fn is_here(&self) -> bool {
        // Relaxed: written by this process only, before the handle was made, or by the kernel.
        self.mark.load(Ordering::Relaxed) == self.own
    }
}

fn mark() -> io::Result<&'static AtomicU64> {
    // Acquire: pairs with the Release below.
    let mark = MARK.load(Ordering::Acquire);
    // SAFETY: null, or the page of `wiped_on_fork`, which stays mapped for ever.
    if let Some(mark) = unsafe { mark.as_ref() } {
        return Ok(mark);
    }
    let page = wiped_on_fork()?;
    let page_pointer = ptr::from_ref(page).cast_mut();
    // Release on success, Acquire on failure: the thread that loses leaves its page unused.
    let set = MARK.compare_exchange(
        ptr::null_mut(),
        page_pointer,
        Ordering::Release,
        Ordering::Acquire,
    );
    match set {
        Ok(_) => Ok(page),
        // SAFETY: not null, so the page of the thread that was faster.
        Err(other) => Ok(unsafe { &*other }),
    }
}

fn wiped_on_fork() -> io::Result<&'static AtomicU64> {
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
    unsafe { rustix::mm::madvise(page, PAGE, Advice::LinuxWipeOnFork) }?;
    // SAFETY: the page is mapped for ever, aligned and zeroed, and only used through this atomic.
    Ok(unsafe { &*page.cast::<AtomicU64>() })
}

/// A descriptor that a forked child must close. The entries form a list that only grows; an entry
/// that is not in use holds a number below 0.
#[derive(Debug)]
struct Entry {
    fd: AtomicI32,
    /// Which file it is. A fork copies the descriptors first and the memory later, so an entry may be
    /// newer than the child's descriptor of that number.
    device: AtomicU64,
    inode: AtomicU64,
    next: AtomicPtr<Entry>,
}

const UNUSED: i32 = -1;
const CLAIMED: i32 = -2;

static ENTRIES: AtomicPtr<Entry> = AtomicPtr::new(ptr::null_mut());

/// How many forks were begun and how many have ended, so that whoever opens a descriptor can tell that
/// a child may have it: the kernel copies descriptors and memory one after the other, so a fork that is
/// under way may copy the one with the new descriptor and the other without its entry.
static BEGUN: AtomicU64 = AtomicU64::new(0);
static ENDED: AtomicU64 = AtomicU64::new(0);

/// Keeps a descriptor on the list for as long as it lives.
#[derive(Debug)]
pub(crate) struct ClosedInChild {
    entry: &'static Entry,
}

impl ClosedInChild {
    /// Opens a descriptor such that no child of a fork will have it, whenever that fork happens.
    pub(crate) fn open(open: impl Fn() -> io::Result<OwnedFd>) -> io::Result<(OwnedFd, Self)> {
        install()?;
        loop {
            // SeqCst, all of BEGUN and ENDED: they are in one order with the entries. If no fork is under
            // way here and none has begun by the last line, then none has copied anything in between.
            let begun = BEGUN.load(Ordering::SeqCst);
            if ENDED.load(Ordering::SeqCst) != begun {
                std::thread::yield_now(); // the fork of another thread, which waits for nobody
                continue;
            }
            let opened = open()?;
            let listed = Self::list(&opened)?;
            if BEGUN.load(Ordering::SeqCst) == begun {
                return Ok((opened, listed));
            }
            // A child may have this one for good. Nothing is locked on it yet: leave it to the
            // child and open another.
        }
    }

    fn list(fd: &OwnedFd) -> io::Result<Self> {
        let stat = rustix::fs::fstat(fd)?;
        let entry = entries()
            .find(|entry| entry.claim())
            .unwrap_or_else(Entry::leak);
        // Relaxed, both: ordered by the store below.
        entry.device.store(stat.st_dev, Ordering::Relaxed);
        entry.inode.store(stat.st_ino, Ordering::Relaxed);
        // SeqCst: with BEGUN, as above.
        entry.fd.store(fd.as_raw_fd(), Ordering::SeqCst);
        Ok(Self { entry })
    }
}

impl Entry {
    /// Takes an entry that nobody uses.
    fn claim(&self) -> bool {
        // Acquire: pairs with the Release in the drop of whoever had it before.
        self.fd
            .compare_exchange(UNUSED, CLAIMED, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Puts a claimed entry on the list, for ever.
    fn leak() -> &'static Self {
        let entry: &'static Self = Box::leak(Box::new(Self {
            fd: AtomicI32::new(CLAIMED),
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

    /// Closes the descriptor, in a child.
    fn close(&self) {
        // Relaxed, all: the child has one thread and its own copy.
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
        // Release: whoever takes the entry next does so after us.
        self.entry.fd.store(UNUSED, Ordering::Release);
    }
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
    // A fork that is under way keeps this waiting, so the handlers never see half of one.
    // SAFETY: the handlers only touch atomics, examine and close descriptors: allowed there.
    let code = unsafe { libc::pthread_atfork(Some(before_fork), Some(in_parent), Some(in_child)) };
    if code != 0 {
        return Err(io::Error::from_raw_os_error(code));
    }
    INSTALLED.store(true, Ordering::Release);
    Ok(())
}

unsafe extern "C" fn before_fork() {
    BEGUN.fetch_add(1, Ordering::SeqCst);
}

unsafe extern "C" fn in_parent() {
    ENDED.fetch_add(1, Ordering::SeqCst);
}

unsafe extern "C" fn in_child() {
    entries().for_each(Entry::close);
    // Relaxed: the child has one thread. Forks of other threads of the parent are not its own.
    ENDED.store(BEGUN.load(Ordering::Relaxed), Ordering::Relaxed);
}
