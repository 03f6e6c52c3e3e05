//! The file layer: create, validate, map, lock. The only place that turns bytes into references.

mod fork;
mod kept;
mod lock;
mod mapping;
mod open;
mod pass;

pub(crate) use fork::Birth;
pub(crate) use kept::{Kept, KeptLock};
pub(crate) use lock::{LockFile, holder, is_locked};
pub(crate) use mapping::{EngineRecord, Mapping};
pub(crate) use open::{Access, TableFile, open_to_read};
