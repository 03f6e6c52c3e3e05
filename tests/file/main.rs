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

/// A finished table's file to be damaged, without anybody who has it open.
pub(crate) fn left_behind() -> (TempDir, PathBuf) {
    let directory = directory();
    let path = directory.path().join("table");
    options().create(&path).unwrap();
    (directory, path)
}

/// The error, whose message must say something to do.
pub(crate) fn refused<T: std::fmt::Debug>(result: Result<T, Error>) -> Error {
    let error = result.unwrap_err();
    let message = error.to_string();
    assert!(message.contains("; "), "says what to do: {message}");
    println!("{message}");
    error
}
