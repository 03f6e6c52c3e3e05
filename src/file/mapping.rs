//! A mapped table: the one place where an offset becomes a reference.

use super::open::Access;
use crate::algorithm::counter::{Counter, Lane};
use crate::algorithm::latch::Latch;
use crate::algorithm::registry::{Registry, Slot};
use crate::algorithm::word::{Amount, TokenWord, Word};
use crate::engine::Limits;
use crate::layout::{Layout, NAME_WORDS, Section};
use crate::primitive::{Atomic, AtomicU64};
use memmap2::{MmapOptions, MmapRaw};
use std::fs::File;
use std::io;

/// The words that belong to no row and no lane, each line with its own writers.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Control {
    /// Source of the tags of words that nobody's lane has written.
    pub(crate) marks: Line,
    /// The number of the last complete publication.
    pub(crate) sequence: Line,
    /// One more than the highest engine slot ever used: where a scan may end.
    pub(crate) engines_in_use: AtomicU64,
    /// The publisher as it sees itself: for people only.
    pub(crate) publisher_pid: AtomicU64,
    /// Whoever changes the engines, as it sees itself: for people only.
    pub(crate) changer_pid: AtomicU64,
}

/// A word on a line of its own.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Line(pub(crate) AtomicU64);

/// What an engine slot says of the engine in it.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct EngineRecord {
    /// Counts the engines that this slot has had; moves before and after the name changes.
    pub(crate) generation: AtomicU64,
    /// Bytes of the name.
    pub(crate) name_length: AtomicU64,
    pub(crate) name: [AtomicU64; NAME_WORDS],
}

/// A table's bytes as atomics. Whatever they hold, every method here is in bounds.
#[derive(Debug)]
pub(crate) struct Mapping {
    map: MmapRaw,
    layout: Layout,
}

/// Types of which any bytes are a value, and which change under shared references only atomically.
///
/// # Safety
/// The implementor must be made of 64-bit atomics and padding, and nothing else.
unsafe trait Shared {}

// SAFETY: each is an atomic of 64 bits whose every bit pattern is a value.
unsafe impl Shared for AtomicU64 {}
// SAFETY: as above; the words are `Pod`.
unsafe impl<T: bytemuck::Pod> Shared for Atomic<T> {}
// SAFETY: made of the above.
unsafe impl Shared for Control {}
// SAFETY: made of the above.
unsafe impl Shared for EngineRecord {}
// SAFETY: made of the above.
unsafe impl Shared for Slot {}
// SAFETY: made of the above.
unsafe impl Shared for Lane {}

const _: () = assert!(size_of::<Control>() == 384);
const _: () = assert!(size_of::<EngineRecord>() == 128);
const _: () = assert!(size_of::<Slot>() == 64);
const _: () = assert!(size_of::<Lane>() == 128);
const _: () = assert!(size_of::<Atomic<Word>>() == 8 && align_of::<Atomic<Word>>() == 8);

impl Mapping {
    /// Maps a file whose size is that of the layout.
    pub(crate) fn new(file: &File, layout: Layout, access: Access) -> io::Result<Self> {
        let mut options = MmapOptions::new();
        options.len(layout.size);
        let map = match access {
            Access::ReadWrite => options.map_raw(file)?,
            Access::ReadOnly => options.map_raw_read_only(file)?,
        };
        Ok(Self { map, layout })
    }

    #[inline]
    fn section<T: Shared>(&self, section: Section) -> &[T] {
        debug_assert!(section.offset.is_multiple_of(align_of::<T>()));
        debug_assert!(section.offset + section.count * size_of::<T>() <= self.map.len());
        // SAFETY: the layout was computed from a checked geometry and the file has its size, so the
        // offset lies within the mapping.
        let start = unsafe { self.map.as_ptr().add(section.offset) };
        // SAFETY: the section lies within the mapping for the same reason, and is aligned, since
        // sections start at multiples of 128 and mappings at pages. `T` is `Shared`: any bytes are a
        // value, and other processes change them as atomics do. The mapping lives as long as self.
        // In a mapping for reading only, callers only load (`Table` refuses everything else).
        unsafe { std::slice::from_raw_parts(start.cast::<T>(), section.count) }
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    #[inline]
    pub(crate) fn control(&self) -> &Control {
        &self.section(self.layout.control)[0]
    }

    #[inline]
    pub(crate) fn counter(&self) -> Counter<'_> {
        Counter {
            words: self.section::<Atomic<Word>>(self.layout.words),
            tokens: self.section::<Atomic<TokenWord>>(self.layout.tokens),
            lanes: self.section::<Lane>(self.layout.lanes),
            ledgers: self.section::<Atomic<Amount>>(self.layout.ledgers),
            ledger_stride: self.layout.geometry.ledger_stride(),
            marks: &self.control().marks.0,
        }
    }

    #[inline]
    pub(crate) fn latch(&self) -> Latch<'_> {
        Latch {
            sequence: &self.control().sequence.0,
            words: self.section::<AtomicU64>(self.layout.publications),
        }
    }

    pub(crate) fn registry(&self) -> Registry<'_> {
        Registry {
            slots: self.section::<Slot>(self.layout.slots),
            lanes_per_slot: self.layout.geometry.lanes,
            counter: self.counter(),
        }
    }

    #[inline]
    pub(crate) fn limits(&self) -> &[Atomic<Limits>] {
        self.section(self.layout.limits)
    }

    #[inline]
    pub(crate) fn token_caps(&self) -> &[AtomicU64] {
        self.section(self.layout.token_caps)
    }

    pub(crate) fn engines(&self) -> &[EngineRecord] {
        self.section(self.layout.engines)
    }
}
