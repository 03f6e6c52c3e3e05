mod slots;
mod snapshots;
mod spin_lock;

pub use slots::Slots;
pub use snapshots::{ArcSwapped, MmapSynced, SeqLocked, Statistics};
pub use spin_lock::SpinLock;
