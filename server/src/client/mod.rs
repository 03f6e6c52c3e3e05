//! Clients' connections: the listening socket, how many are accepted, how long each may be silent, and its end.

pub(crate) mod acceptor;
pub(crate) mod descriptors;
pub(crate) mod linger;
pub(crate) mod listener;
pub(crate) mod silence;
pub(crate) mod socket;
