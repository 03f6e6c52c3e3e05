//! Sleeping on a word of the table, and waking who sleeps on it, across processes.

use rustix::io::Errno;
use rustix::thread::futex;
use rustix::time::Timespec;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::Duration;

/// Why a sleep has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Woken {
    /// The word has changed, another thread has called [`wake`], the time is over, or for no reason.
    Look,
    /// A signal handler has run in this thread.
    Signal,
}

/// Sleeps for at most `time`, and only while the lower half of `word` is that of `seen`.
pub(crate) fn sleep(word: &AtomicU64, seen: u64, time: Duration) -> Woken {
    let time = Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: time.subsec_nanos().into(),
    };
    // Not private to the process: the word lies in memory that processes share.
    match futex::wait(
        lower_half(word),
        futex::Flags::empty(),
        seen as u32,
        Some(&time),
    ) {
        Err(Errno::INTR) => Woken::Signal,
        _ => Woken::Look,
    }
}

/// Wakes the threads of a frontend that sleep on a word which was changed before: one of those that wait, and that of its
/// tasks.
pub(crate) fn wake(word: &AtomicU64) {
    // It fails only for a word that is not mapped.
    let _ = futex::wake(lower_half(word), futex::Flags::empty(), 2);
}

/// The half of a word that the kernel looks at.
fn lower_half(word: &AtomicU64) -> &AtomicU32 {
    let word = std::ptr::from_ref(word).cast::<AtomicU32>();
    // SAFETY: the first half of a word that lives as long, which is the lower one on a little-endian machine. It is
    // accessed by the kernel alone: this crate hands it on and reads and writes whole words.
    unsafe { &*word }
}
