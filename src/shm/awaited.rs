//! Whether a request waits, for those who ask so at each request.

use super::open::TableFile;
use crate::algorithm::primitive::{Atomic, Ordering, fence_after_swap};
use crate::algorithm::word::Word;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

/// The word that counts all requests that wait, found once and not at each look.
#[derive(Debug)]
pub(crate) struct Awaited {
    /// A reference into the mapping, never handed out.
    word: &'static Atomic<Word>,
    _file: Arc<TableFile>,
}

impl Awaited {
    pub(crate) fn new(file: &Arc<TableFile>) -> Self {
        let counter = file.mapping.counter();
        let word: *const _ = &counter.words[counter.queue_row];
        Self {
            // SAFETY: the word lies in the mapping, which stays where it is for as long as the file is kept.
            word: unsafe { &*word },
            _file: Arc::clone(file),
        }
    }

    /// Whether a request waits, as of a moment ago: one load of a line that no process writes while none waits.
    #[inline]
    pub(crate) fn is_so(&self) -> bool {
        // Acquire: as in `Counter::load`. The row is never given a state, so its rank is its value.
        self.word.load(Ordering::Acquire).rank() > 0
    }

    /// As [`Queue::is_awaited_after`](crate::algorithm::queue::Queue::is_awaited_after).
    #[inline]
    pub(crate) fn is_so_after_a_swap(&self) -> bool {
        fence_after_swap();
        self.is_so()
    }
}

// A panic leaves the table as a death at that place would, and better: what it was holding is dropped.
impl UnwindSafe for Awaited {}
impl RefUnwindSafe for Awaited {}
