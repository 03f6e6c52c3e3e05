//! The checks that every change has to pass.

use crate::progress::Part;
use crate::step::cargo;
use crate::{burst, python};

/// The parts of `cargo xtask test`.
pub(crate) fn all() -> Vec<Part<'static>> {
    vec![
        cargo("the format", "fmt --all --check").into(),
        cargo(
            "the lints",
            "clippy --workspace --all-targets -- -D warnings",
        )
        .into(),
        cargo(
            "the documentation",
            "doc --workspace --no-deps --document-private-items",
        )
        .env("RUSTDOCFLAGS", "-D warnings")
        .into(),
        // All of them even if one fails, so that one run shows everything. The models are a proof, since
        // they take a release build and time.
        cargo(
            "the tests",
            "test --workspace --exclude headcount-loom-tests --no-fail-fast",
        )
        .into(),
        Part::new("the burst example", burst::check),
        Part::new("the Python package", python::test),
    ]
}
