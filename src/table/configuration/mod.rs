//! How a deployment says what a table is to have: by its options, when a table is opened and later.

mod apply;
mod configured;
mod deployment;
mod difference;

pub use apply::Changes;
pub use deployment::Deployment;
