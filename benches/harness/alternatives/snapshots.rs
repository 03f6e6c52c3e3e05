//! Statistics of eight engines that one writes and others read whole.

use arc_swap::ArcSwap;
use headcount_yardstick::{MeasureError, Workload};
use mmap_sync::guard::ReadResult;
use mmap_sync::synchronizer::Synchronizer;
use rkyv::{Archive, Deserialize, Serialize};
use seqlock::SeqLock;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Of one engine.
#[derive(Archive, Serialize, Deserialize, Clone, Copy, PartialEq, Debug, Default)]
#[archive(check_bytes)]
#[archive_attr(derive(Clone, Copy))]
pub struct Row {
    /// Requests in its queue.
    pub waiting: u32,
    /// Requests in its batch.
    pub running: u32,
    /// The share of its cache in use.
    pub kv_usage: f32,
    /// As counted when it was sampled.
    pub in_flight: u32,
}

/// Of all engines.
#[derive(Archive, Serialize, Deserialize, Clone, Copy, PartialEq, Debug, Default)]
#[archive(check_bytes)]
#[archive_attr(derive(Clone, Copy))]
pub struct Statistics {
    /// When they were published.
    pub published_at: u64,
    /// One for each engine.
    pub engines: [Row; 8],
}

/// The crate `seqlock`: readers copy the value out, and again if it was written meanwhile. Within one
/// process.
#[derive(Debug, Default)]
pub struct SeqLocked(SeqLock<Statistics>);

impl SeqLocked {
    /// A copy for each read.
    pub fn read(&self) -> Workload<'_> {
        Box::new(|times| {
            for _ in 0..times {
                black_box(self.0.read());
            }
            Ok(())
        })
    }
}

/// The crate `mmap-sync`: two copies in files, readers count themselves in and out.
#[expect(missing_debug_implementations)] // the crate's type has none
pub struct MmapSynced(Synchronizer);

impl MmapSynced {
    /// Writes statistics into files that begin with this path.
    pub fn create(path: &Path) -> Result<Self, MeasureError> {
        let mut synchronizer = Synchronizer::new(path.as_os_str());
        let written = synchronizer.write(&Statistics::default(), Duration::from_secs(1));
        written.map_err(|error| MeasureError(format!("mmap-sync does not write: {error}")))?;
        Ok(Self(synchronizer))
    }

    /// A copy for each read, though one could also read the values where they lie while the guard
    /// holds them there.
    pub fn read(mut self) -> Workload<'static> {
        Box::new(move |times| {
            for _ in 0..times {
                // SAFETY: `create` has written it, by the same type.
                let guard: ReadResult<'_, Statistics> = unsafe { self.0.read(false) }
                    .map_err(|error| MeasureError(format!("mmap-sync does not read: {error}")))?;
                black_box(*guard);
            }
            Ok(())
        })
    }
}

/// The crate `arc-swap`: readers borrow the value that a pointer leads to. Within one process, so not
/// what is asked for, but the floor.
#[derive(Debug)]
pub struct ArcSwapped(ArcSwap<Statistics>);

impl Default for ArcSwapped {
    fn default() -> Self {
        Self(ArcSwap::new(Arc::new(Statistics::default())))
    }
}

impl ArcSwapped {
    /// A copy for each read.
    pub fn read(&self) -> Workload<'_> {
        Box::new(|times| {
            for _ in 0..times {
                black_box(**self.0.load());
            }
            Ok(())
        })
    }
}
