//! The algorithms: pure, over atomics that they are handed.
//!
//! Nothing here maps a file, asks the kernel for anything or knows where its atomics live, so the
//! same code runs over a mapped table and under loom.

pub(crate) mod choose;
pub(crate) mod counter;
pub(crate) mod lane_cell;
pub(crate) mod lifetime;
pub(crate) mod name;
pub(crate) mod owner;
pub(crate) mod place;
pub(crate) mod primitive;
pub(crate) mod queue;
pub(crate) mod record;
pub(crate) mod registry;
pub(crate) mod rows;
pub(crate) mod scan;
pub(crate) mod seqlatch;
pub(crate) mod terms;
pub(crate) mod total;
pub(crate) mod word;
