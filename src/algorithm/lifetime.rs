//! How long a thing lives that many threads share: as long as it has handles, which are counted one by one, and
//! permits, which come and go with every request and are counted by lanes.
//!
//! One count that every request changes twice would cost as much as the request itself, and all
//! threads of a process would fight for its line. So each lane counts its own permits with plain
//! stores: those that were made in it less those that ended in it. Only the sum over the lanes means
//! anything, and no thread forms it before the last handle is gone.
//!
//! # Why the sum can be trusted then
//!
//! Without a handle no permit is made any more, so every lane's count only falls, and a count that was read
//! is never less than it will be later. If the sum of the counts that were read is zero, then it was zero when
//! the last lane was read, and every permit has ended. Some thread may still be leaving its
//! operation; its lane is busy until its very last access. A thread that has seen the lane's count fall sees that
//! the lane is busy (Release and Acquire of the count), and one that has seen the lane idle after that may take the
//! thing apart (Release and Acquire of the flag).
//!
//! # Which thread forms the sum
//!
//! A thread that ends a permit checks whether the last handle is gone (*closed*), and if so has to
//! form the sum itself. A thread that was too early to see "closed" was busy when it checked, so the closer
//! waits until each lane was idle once, and forms the sum after that. Should the machine let a thread
//! see "open" and the closer "idle" all the same, the thing is taken apart later, by the next thread that forms
//! the sum, never earlier.

pub(crate) mod retired;

use crate::algorithm::primitive::{AtomicU64, Ordering, fence};

/// The handles.
#[derive(Debug)]
pub(crate) struct HandleCount {
    count: AtomicU64,
    closed: AtomicU64,
}

impl HandleCount {
    /// One handle.
    pub(crate) fn new() -> Self {
        Self {
            count: AtomicU64::new(1),
            closed: AtomicU64::new(0),
        }
    }

    /// One more, made from one that lives.
    pub(crate) fn add(&self) {
        // Relaxed: the handle that it is made from keeps the thing.
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// One less. Whether it was the last.
    pub(crate) fn drop_one(&self) -> bool {
        // Release: what was done by this handle comes before what the last one does. Acquire: the last
        // one sees it.
        self.count.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Says that no handle is left.
    pub(crate) fn close(&self) {
        // Relaxed: ordered by the fence.
        self.closed.store(1, Ordering::Relaxed);
        // SeqCst: with the compare-and-swap of an operation, which comes between its lane's flag and its
        // look whether we have closed: either that sees "closed" or we see the lane busy, and wait. That
        // is certain where a locked instruction is a fence. Nothing unsafe rests on it.
        fence(Ordering::SeqCst);
    }

    /// Whether no handle is left. To be asked in an operation, after it has taken effect.
    #[inline]
    fn is_closed(&self) -> bool {
        // SeqCst: see `close`.
        self.closed.load(Ordering::SeqCst) != 0
    }
}

/// A lane's part: whether an operation is in it, and its count of permits.
#[derive(Debug)]
pub(crate) struct LaneUse {
    busy: AtomicU64,
    /// Permits made in this lane less those that ended in it.
    permits: AtomicU64,
}

/// That a permit was counted. There is one for each, and it ends by [`LaneUse::end_permit`].
#[must_use = "without a permit to end it the count never falls"]
#[derive(Debug)]
pub(crate) struct PermitCount(());

impl LaneUse {
    pub(crate) fn new() -> Self {
        Self {
            busy: AtomicU64::new(0),
            permits: AtomicU64::new(0),
        }
    }

    /// Begins an operation in a lane that belongs to the calling thread. `false` in one already: a
    /// signal handler has interrupted it.
    #[inline]
    pub(crate) fn enter_own(&self) -> bool {
        // Relaxed, both: no other thread sets the flag.
        let free = self.busy.load(Ordering::Relaxed) == 0;
        if free {
            self.busy.store(1, Ordering::Relaxed);
        }
        free
    }

    /// Begins an operation in a lane that threads share, if it is free.
    pub(crate) fn enter_shared(&self) -> bool {
        // Acquire: pairs with the Release in `leave`, so that we see the lane as the thread before us
        // left it.
        self.busy
            .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// A permit was made in the operation.
    #[inline]
    pub(crate) fn add_permit(&self) -> PermitCount {
        // Relaxed, both: the lane is ours; a handle keeps the thing.
        let permits = self.permits.load(Ordering::Relaxed);
        self.permits
            .store(permits.wrapping_add(1), Ordering::Relaxed);
        PermitCount(())
    }

    /// A permit ends in the operation: all that is left to do is to leave. Whether no handle is left, so
    /// that the thread has to look for the last permit after that.
    #[inline]
    pub(crate) fn end_permit(&self, handles: &HandleCount) -> bool {
        // Before the count falls: from then on the handles may be gone.
        let is_closed = handles.is_closed();
        // Relaxed: the lane is ours. Release: pairs with the Acquire in `is_unused`; who sees the
        // count fall sees the lane busy.
        let permits = self.permits.load(Ordering::Relaxed);
        self.permits
            .store(permits.wrapping_sub(1), Ordering::Release);
        is_closed
    }

    /// Ends the operation. After `end_permit` this is the last access that is allowed.
    #[inline]
    pub(crate) fn leave(&self) {
        // Release: pairs with the Acquires in `enter_shared`, `is_busy` and `is_unused`.
        self.busy.store(0, Ordering::Release);
    }

    /// Whether an operation is in it.
    pub(crate) fn is_busy(&self) -> bool {
        // Acquire: pairs with the Release in `leave`.
        self.busy.load(Ordering::Acquire) != 0
    }
}

/// Whether no permit is left and no thread is about to touch the lanes. Only once closed.
pub(crate) fn is_unused<'a>(lanes: impl Iterator<Item = &'a LaneUse> + Clone) -> bool {
    // Acquire: pairs with the Release in `end_permit`.
    let permits = lanes
        .clone()
        .map(|lane| lane.permits.load(Ordering::Acquire))
        .fold(0, u64::wrapping_add);
    permits == 0 && !lanes.into_iter().any(LaneUse::is_busy)
}

/// Runs `pass` over things that wait for their last permit, and again if another thread requested one
/// meanwhile.
///
/// A pass takes all things that wait and puts back those that are still held, each by a read-modify-write that
/// acquires and releases. A thread that finds nothing there because a pass has taken it may go: the thread that
/// puts a thing back after that sees the request, and runs once more.
pub(crate) fn run_until_no_new_requests(requests: &AtomicU64, mut pass: impl FnMut()) {
    // AcqRel, here and below: a thread that finds nothing has made its request before it looked; one that puts
    // something back acquires that look, and with it the request. A read-modify-write reads no old one.
    let mut seen = requests.fetch_add(1, Ordering::AcqRel).wrapping_add(1);
    loop {
        pass();
        let now = requests.fetch_add(0, Ordering::AcqRel);
        if now == seen {
            return;
        }
        seen = now;
    }
}
