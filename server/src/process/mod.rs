//! Processes of the deployment: how one starts another, and how each is told to end.

pub(crate) mod child;
pub(crate) mod ending;
pub(crate) mod shutdown;
