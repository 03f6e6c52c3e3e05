//! What the deployment tells about itself: counters, the access log, and pages.

pub(crate) mod counters;
pub(crate) mod pages;
pub(crate) mod record;
