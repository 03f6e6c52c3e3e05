//! The file layer: create, validate, map, lock. The only place that turns bytes into references.

pub(crate) mod clock;
mod fork;
mod kept;
pub(crate) mod layout;
mod lock;
mod mapping;
mod open;

pub(crate) use fork::ProcessToken;
pub(crate) use kept::{Kept, KeptLock};
pub(crate) use lock::{LockFile, holder, is_locked};
pub(crate) use mapping::{EngineRecord, Mapping};
pub(crate) use open::{Access, TableFile, open_to_read};
