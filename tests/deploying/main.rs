//! One deployment a table, and a table that is brought to another configuration.
//!
//! Rules: docs/contract.md.

mod apply;
mod caps;
mod deployment;
mod operator;
