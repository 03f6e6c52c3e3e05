//! F1 to F4: what is created, what is opened, and what is refused.
//!
//! Rules: docs/contract.md.

mod create;
mod memory;
mod open;
mod owner;
mod path;

use headcount::{Error, Options, Table};
use headcount_tests::directory;
use std::path::PathBuf;
use tempfile::TempDir;

pub(crate) fn options() -> Options {
    Table::options().engines(4)
}

/// Creates a table that no process has open, whose file can be damaged.
pub(crate) fn left_behind() -> (TempDir, PathBuf) {
    let directory = directory();
    let path = directory.path().join("table");
    options().create(&path).unwrap();
    (directory, path)
}

/// Returns the error, whose message must say what to do.
pub(crate) fn refused<T: std::fmt::Debug>(result: Result<T, Error>) -> Error {
    let error = result.unwrap_err();
    let message = error.to_string();
    assert!(message.contains("; "), "says what to do: {message}");
    println!("{message}");
    error
}
