//! The sizes with which a table was created.

use crate::shm::layout::VERSION;
use crate::table::Table;
use crate::table::options::threads_of;

/// The sizes, mode and format with which a table was created; none of it ever changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Dimensions {
    /// The version of the file's format.
    pub format: u32,
    /// The bytes of the file.
    pub size: u64,
    /// How many engines it has room for.
    pub max_engines: usize,
    /// How many frontends can join.
    pub max_frontends: usize,
    /// How many threads of each frontend have a lane of their own.
    pub threads: usize,
    /// How many engines it was created with.
    pub engines: usize,
    /// The permission bits it was created with.
    pub mode: u32,
}

impl Table {
    /// Returns the sizes with which the table was created. Costs nothing: they were read when it was opened.
    pub fn dimensions(&self) -> Dimensions {
        let header = self.header();
        Dimensions {
            format: VERSION,
            size: self.mapping().layout().size as u64,
            max_engines: header.geometry.max_engines,
            max_frontends: header.geometry.max_frontends,
            threads: threads_of(header.geometry.lanes),
            engines: header.engines,
            mode: header.mode,
        }
    }
}
