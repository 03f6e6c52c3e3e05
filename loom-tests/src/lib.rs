//! Models of headcount's algorithms: the files that ship, compiled over loom's atomics, in the
//! smallest scenes that can break each rule of the contract.
//!
//! Loom runs a scene under every interleaving of its threads' atomic accesses, and under every value
//! that the memory model lets a load return, within the bounds that each model states. A process
//! that dies is a thread that stops for ever after its k-th access, for every k.
//!
//! Run them with `cargo xtask loom`.
#![cfg(test)]

#[allow(dead_code, reason = "the library uses functions that no model uses")]
#[path = "../../src/algorithm/mod.rs"]
mod algorithm;

mod death;
mod explore;
mod models;
mod queue_scene;
mod scene;
