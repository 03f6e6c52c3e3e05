//! The file layer: create, validate, map, lock. The only place that turns bytes into references.

mod access;
mod awaited;
pub(crate) mod clock;
mod fork;
pub(crate) mod futex;
mod kept;
pub(crate) mod layout;
mod lock;
mod mapping;
mod open;

pub(crate) use access::Access;
pub(crate) use awaited::Awaited;
pub(crate) use fork::ProcessToken;
pub(crate) use kept::{Kept, KeptLock};
pub(crate) use lock::{LockFile, holder, is_locked};
pub(crate) use mapping::Mapping;
pub(crate) use open::{TableFile, open_to_read};
