//! The checks that every change has to pass.

use crate::progress::Part;
use crate::step::cargo;
use crate::{burst, packages, python};

/// The parts of `cargo xtask test`.
pub(crate) fn all() -> Vec<Part<'static>> {
    let lints = "clippy --workspace --all-targets -- -D warnings";
    let documentation = "doc --workspace --no-deps --document-private-items";
    // All of them even if one fails, so that one run shows everything. The models are a proof, since they
    // take a release build and time.
    let tests = "test --workspace --exclude headcount-loom-tests --no-fail-fast";
    vec![
        cargo("the format", "fmt --all --check").into(),
        cargo("the lints", lints).into(),
        cargo("the documentation", documentation)
            .env("RUSTDOCFLAGS", "-D warnings")
            .into(),
        cargo("the tests", tests).into(),
        Part::new("the packages", packages::check),
        Part::new("the burst example", burst::check),
        Part::new("the Python package", python::test),
    ]
}
