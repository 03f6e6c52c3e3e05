//! The checks that every change has to pass.

use crate::progress::Part;
use crate::step::{Step, cargo, root};
use crate::{burst, python};
use std::process::Command;

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
        packages().into(),
        Part::new("the burst example", burst::check),
        Part::new("the Python package", python::test),
    ]
}

/// The packages that users get.
const PACKAGES: [&str; 5] = [
    "headcount",
    "headcount-metrics",
    "headcount-yardstick",
    "headcount-cli",
    "headcount-server",
];

/// Packs what users get, and builds each package from what is in it and in the others.
fn packages() -> Step {
    let mut package = cargo("the packages", "package --quiet --offline");
    for name in PACKAGES {
        package = package.args(&["--package", name]);
    }
    // Cargo packs nothing that is not committed, unless it is told to.
    match has_changes() {
        true => package.args(&["--allow-dirty"]),
        false => package,
    }
}

/// Whether the sources differ from the last commit. False if they are not kept by git.
fn has_changes() -> bool {
    let mut status = Command::new("git");
    let status = status.args(["status", "--porcelain"]).current_dir(root());
    status
        .output()
        .is_ok_and(|output| !output.stdout.is_empty())
}
