//! What the benchmarks share.

/// The alternatives to a table, each as its users would write it.
pub mod alternatives;

/// Processes that publish in the background.
pub mod background;

/// How a benchmark ends.
pub mod outcome;
