//! A name that is read while it may change: a sequence lock over its words.
//!
//! The one process that may change names makes the generation odd, writes, and makes it even again. A
//! reader that sees an odd generation, or another one after the name than before it, has no name.

use super::record::{Field, fields};
use crate::algorithm::primitive::{AtomicU64, Ordering, fence};

/// A name of at most `WORDS * 8` bytes, and how many there were before it.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Name<const WORDS: usize> {
    /// Counts the names; moves before and after one changes.
    generation: AtomicU64,
    /// In bytes.
    length: AtomicU64,
    words: [AtomicU64; WORDS],
}

impl<const WORDS: usize> Name<WORDS> {
    pub(crate) const FIELDS: [Field; 3] = fields!(Self {
        generation: [Field::number("generation")],
        length: [Field::new("length of name", |found| format!(
            "{} bytes",
            found.word
        ))],
        words: [Field::new("name", |found| {
            format!("\"{}\"", found.word.to_le_bytes().escape_ascii())
        })
        .times(WORDS)],
    });

    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self {
            generation: AtomicU64::new(0),
            length: AtomicU64::new(0),
            words: core::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// As a writer leaves it that dies.
    #[cfg(loom)]
    pub(crate) fn leave_half_way(&self) {
        self.generation.fetch_add(1, Ordering::Relaxed);
    }

    /// Which of the names that were ever here is here now; odd while it changes.
    #[inline]
    pub(crate) fn generation(&self) -> u64 {
        // Acquire: pairs with the Release at the end of `write`; who sees the generation must see its
        // name.
        self.generation.load(Ordering::Acquire)
    }

    /// How many bytes the name has, for a look at a name that may be wrong.
    pub(crate) fn length(&self) -> u64 {
        // Relaxed: the caller looks at the generation before and after.
        self.length.load(Ordering::Relaxed)
    }

    /// The bytes of the name and its generation. `None` while it changes.
    pub(crate) fn read(&self) -> Option<(Vec<u8>, u64)> {
        let generation = self.generation();
        // Relaxed, both: between the Acquire above and the fence below.
        let length = self.length.load(Ordering::Relaxed);
        let bytes = (self.words.iter())
            .flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes())
            .take(usize::try_from(length).unwrap_or(usize::MAX))
            .collect();
        // Acquire fence: pairs with the Release fence in `write`; who reads a byte of a later name must
        // see that the generation has moved.
        fence(Ordering::Acquire);
        // Relaxed: ordered by the fence.
        let stood = self.generation.load(Ordering::Relaxed) == generation;
        (stood && generation.is_multiple_of(2)).then_some((bytes, generation))
    }

    /// Changes the name. The caller is the only one to do so.
    pub(crate) fn write(&self, name: &[u8]) {
        // Relaxed: only the changer writes it. A changer that died half-way has left it odd.
        let generation = self.generation.load(Ordering::Relaxed) | 1;
        self.generation.store(generation, Ordering::Relaxed);
        // Release fence: pairs with the Acquire fence in `read`.
        fence(Ordering::Release);
        // Relaxed, both: between the fence and the Release below.
        self.length.store(name.len() as u64, Ordering::Relaxed);
        let mut chunks = name.chunks(8);
        for word in &self.words {
            let mut bytes = [0; 8];
            let chunk = chunks.next().unwrap_or_default();
            bytes[..chunk.len()].copy_from_slice(chunk);
            word.store(u64::from_le_bytes(bytes), Ordering::Relaxed);
        }
        // Release: pairs with the Acquire in `generation`.
        (self.generation).store(generation.wrapping_add(1), Ordering::Release);
    }
}
