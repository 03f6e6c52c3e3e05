//! The whole table, for people and metrics: shown, checked, and printed word by word.

mod dump;
mod read;
mod verify;
mod view;

pub use verify::{Fault, FaultKind, Verification};
pub use view::{EngineView, FrontendView, SnapshotView, View};
