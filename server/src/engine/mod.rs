//! Engines: how they are written, where they are reached, and the connections to them.

pub(crate) mod address;
pub(crate) mod dial;
pub(crate) mod engine_client;
pub(crate) mod entry;
pub(crate) mod names;
pub(crate) mod resolve;
pub(crate) mod wire;
