//! The whole table, for people and metrics: shown, checked, and printed word by word.

mod dump;
mod queue;
mod read;
mod verify;
mod view;

pub use queue::{ClassView, QueueView, WaitedView};
pub use verify::{Fault, FaultKind, Verification};
pub use view::{EngineView, FrontendView, SnapshotView, View};
