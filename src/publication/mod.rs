//! Statistics of the engines: what a publication says, how it is published, and how it is read.

mod publisher;
mod read;
pub(crate) mod record;

pub use crate::shm::layout::publication::PackedEngineStats;
pub use publisher::Publisher;
pub use read::PublicationHead;
pub use record::EngineStats;
