//! A mapped table: the one place where an offset becomes a reference.

use super::access::Access;
use crate::algorithm::counter::Counter;
use crate::algorithm::primitive::{Atomic, AtomicU64};
use crate::algorithm::queue::Queue;
use crate::algorithm::record::heads::HeadsRecord;
use crate::algorithm::record::lane::LaneRecord;
use crate::algorithm::record::queue::QueueRecord;
use crate::algorithm::record::slot::SlotRecord;
use crate::algorithm::record::waited::WaitedRecord;
use crate::algorithm::registry::Registry;
use crate::algorithm::rows::{Limits, Rows};
use crate::algorithm::seqlatch::SeqLatch;
use crate::algorithm::word::{TokenWord, Witness, Word};
use crate::shm::layout::publication::HEAD_WORDS;
use crate::shm::layout::{Control, EngineRecord, Layout, Section};
use memmap2::{MmapOptions, MmapRaw};
use std::fmt;
use std::fs::File;
use std::io;
use std::panic::{RefUnwindSafe, UnwindSafe};

/// A table's bytes as atomics. Whatever they hold, every method here is in bounds.
pub(crate) struct Mapping {
    /// References into `map`, made once. Declared before it, and never handed out for longer than
    /// `self` is borrowed.
    parts: Parts<'static>,
    layout: Layout,
    _map: MmapRaw,
}

/// The parts of a mapped table.
struct Parts<'a> {
    control: &'a Control,
    rows: Rows<'a>,
    engines: &'a [EngineRecord],
    slots: &'a [SlotRecord],
    queue: &'a QueueRecord,
    tenants: &'a [AtomicU64],
    heads: &'a [HeadsRecord],
    waited: &'a [WaitedRecord],
    latch: SeqLatch<'a, HEAD_WORDS>,
}

/// Types of which any bytes are a value, and which change under shared references only atomically.
///
/// # Safety
/// The implementor must be made of atomics and padding, and nothing else.
unsafe trait Shared {}

// SAFETY: each is an atomic of 64 bits whose every bit pattern is a value.
unsafe impl Shared for AtomicU64 {}
// SAFETY: an atomic whose every bit pattern is a value, since its type is `Pod`.
unsafe impl<T: bytemuck::Pod> Shared for Atomic<T> {}
// SAFETY: made of the above.
unsafe impl Shared for Control {}
// SAFETY: made of the above.
unsafe impl Shared for EngineRecord {}
// SAFETY: made of the above.
unsafe impl Shared for SlotRecord {}
// SAFETY: made of the above.
unsafe impl Shared for LaneRecord {}
// SAFETY: made of the above.
unsafe impl Shared for QueueRecord {}
// SAFETY: made of the above.
unsafe impl Shared for HeadsRecord {}
// SAFETY: made of the above.
unsafe impl Shared for WaitedRecord {}

const _: () = assert!(size_of::<Atomic<Word>>() == 8 && align_of::<Atomic<Word>>() == 8);
const _: () = assert!(size_of::<Atomic<Witness>>() == 4 && align_of::<Atomic<Witness>>() == 4);

impl Mapping {
    /// Maps a file whose size is that of the layout.
    pub(crate) fn new(file: &File, layout: Layout, access: Access) -> io::Result<Self> {
        let mut options = MmapOptions::new();
        options.len(layout.size);
        let map = match access {
            Access::ReadWrite => options.map_raw(file)?,
            Access::ReadOnly => options.map_raw_read_only(file)?,
        };
        let bytes = Bytes(&map);
        let control = &bytes.section::<Control>(layout.control)[0];
        let parts = Parts {
            control,
            rows: Rows {
                counter: Counter {
                    words: bytes.section::<Atomic<Word>>(layout.words),
                    tokens: bytes.section::<Atomic<TokenWord>>(layout.tokens),
                    lanes: bytes.section::<LaneRecord>(layout.lanes),
                    ledgers: bytes.section::<AtomicU64>(layout.ledgers),
                    plane_stride: layout.geometry.plane_stride(),
                    anonymous_tags: &control.anonymous_tags.word,
                    total_row: layout.geometry.total_row(),
                    queue_row: layout.geometry.queue_row(),
                    witnesses: bytes.section::<Atomic<Witness>>(layout.witnesses),
                    witness_stride: layout.geometry.witness_stride(),
                },
                hints: &control.hints,
                limits: bytes.section::<Atomic<Limits>>(layout.limits),
                token_caps: bytes.section::<AtomicU64>(layout.token_caps),
                total_caps: &control.total_caps,
            },
            engines: bytes.section::<EngineRecord>(layout.engines),
            slots: bytes.section::<SlotRecord>(layout.slots),
            queue: &bytes.section::<QueueRecord>(layout.queue)[0],
            tenants: bytes.section::<AtomicU64>(layout.tenants),
            heads: bytes.section::<HeadsRecord>(layout.heads),
            waited: bytes.section::<WaitedRecord>(layout.waited),
            latch: SeqLatch::new(
                &control.sequence.word,
                bytes.section::<AtomicU64>(layout.publications),
            )
            .ok_or(io::ErrorKind::InvalidData)?,
        };
        // SAFETY: the parts lie in the mapping, which stays where it is until `_map` is dropped, after
        // `parts`; and no method hands them out for longer than it borrows `self`.
        let parts = unsafe { std::mem::transmute::<Parts<'_>, Parts<'static>>(parts) };
        Ok(Self {
            parts,
            layout,
            _map: map,
        })
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    #[inline]
    pub(crate) fn control(&self) -> &Control {
        self.parts.control
    }

    #[inline]
    pub(crate) fn rows(&self) -> &Rows<'_> {
        &self.parts.rows
    }

    #[inline]
    pub(crate) fn counter(&self) -> &Counter<'_> {
        &self.parts.rows.counter
    }

    #[inline]
    pub(crate) fn latch(&self) -> &SeqLatch<'_, HEAD_WORDS> {
        &self.parts.latch
    }

    pub(crate) fn registry(&self) -> Registry<'_> {
        Registry {
            slots: self.parts.slots,
            lanes_per_slot: self.layout.geometry.lanes,
            counter: self.parts.rows.counter,
            heads: self.parts.heads,
        }
    }

    #[inline]
    pub(crate) fn queue(&self) -> Queue<'_> {
        Queue {
            rows: self.parts.rows,
            record: self.parts.queue,
            tenants: self.parts.tenants,
            heads: self.parts.heads,
        }
    }

    /// What has become of waiting requests, by slot.
    pub(crate) fn waited(&self) -> &[WaitedRecord] {
        self.parts.waited
    }

    #[inline]
    pub(crate) fn engines(&self) -> &[EngineRecord] {
        self.parts.engines
    }
}

/// Says how much is mapped, not what: a table has many words, and handles are printed into logs.
impl fmt::Debug for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.layout.size)
    }
}

// A panic leaves the table as a death at that place would, and better: what it was holding is dropped.
impl UnwindSafe for Mapping {}
impl RefUnwindSafe for Mapping {}

/// A mapping, before anything in it has a type.
struct Bytes<'a>(&'a MmapRaw);

impl<'a> Bytes<'a> {
    fn section<T: Shared>(&self, section: Section) -> &'a [T] {
        assert!(section.offset.is_multiple_of(align_of::<T>()));
        assert!(section.offset + section.count * size_of::<T>() <= self.0.len());
        // SAFETY: just checked to lie within the mapping.
        let start = unsafe { self.0.as_ptr().add(section.offset) };
        // SAFETY: just checked to lie within the mapping and to be aligned, since mappings start at
        // pages. `T` is `Shared`: any bytes are a value, and other processes change them as atomics
        // do. The borrow of the mapping keeps it mapped. In a mapping for reading only, callers only
        // load (`Table` refuses everything else).
        unsafe { std::slice::from_raw_parts(start.cast::<T>(), section.count) }
    }
}
