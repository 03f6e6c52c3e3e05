//! Programs of other packages of this workspace, for which cargo gives a test no path.

use std::path::PathBuf;
use std::process::Command;

/// Builds a package's program as this test was built, and returns its path.
pub fn built(package: &str, program: &str) -> PathBuf {
    build(package, "--bin", program).join(program)
}

/// Builds a package's example as this test was built, and returns its path.
pub fn built_example(package: &str, example: &str) -> PathBuf {
    let directory = build(package, "--example", example);
    directory.join("examples").join(example)
}

/// Builds one target of a package. Returns the directory of the profile, in which programs lie.
fn build(package: &str, kind: &str, name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("the test's own program");
    // The tests lie in `deps`, beside which programs lie.
    let directory = test
        .ancestors()
        .find(|path| path.ends_with("debug") || path.ends_with("release"))
        .expect("a directory of a profile");
    let mut build = Command::new(env!("CARGO"));
    build
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .args(["build", "--quiet", "--package", package, kind, name])
        .arg("--target-dir")
        .arg(directory.parent().expect("a target directory"));
    if directory.ends_with("release") {
        build.arg("--release");
    }
    let status = build.status().expect("starts cargo");
    assert!(status.success(), "{package} does not build");
    directory.to_owned()
}
