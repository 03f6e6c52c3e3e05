//! The most that a table can hold, whatever it was created with.

use crate::algorithm::word::{MAX_LANES, MAX_REQUESTS};
use crate::shm::layout;

/// The longest name of an engine, in bytes of UTF-8: 232. The shortest has one.
pub const MAX_NAME_LEN: usize = layout::MAX_NAME;

/// The most engines of a table: 4,096.
pub const MAX_ENGINES: usize = layout::MAX_ENGINES;

/// The most frontends of a table: 4,095, if each has one lane. The lanes of all frontends together are at
/// most so many.
pub const MAX_FRONTENDS: usize = MAX_LANES;

/// The most requests in flight on one engine: 1,048,575.
pub const MAX_IN_FLIGHT: u32 = MAX_REQUESTS;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limits_are_those_that_the_documentation_names() {
        assert_eq!((MAX_NAME_LEN, MAX_ENGINES), (232, 4_096));
        assert_eq!((MAX_FRONTENDS, MAX_IN_FLIGHT), (4_095, 1_048_575));
    }
}
