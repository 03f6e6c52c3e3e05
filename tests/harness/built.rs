//! Programs of other packages of this workspace, which a test cannot name as its own.

use std::path::PathBuf;
use std::process::Command;

/// The path of a package's program. Builds it first, as this test was built.
pub fn built(package: &str, program: &str) -> PathBuf {
    let test = std::env::current_exe().expect("the test's own program");
    // The tests lie in `deps`, beside which programs lie.
    let directory = test
        .ancestors()
        .find(|path| path.ends_with("debug") || path.ends_with("release"))
        .expect("a directory of a profile");
    let mut build = Command::new(env!("CARGO"));
    build
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .args(["build", "--quiet", "--package", package, "--bin", program])
        .arg("--target-dir")
        .arg(directory.parent().expect("a target directory"));
    if directory.ends_with("release") {
        build.arg("--release");
    }
    let status = build.status().expect("starts cargo");
    assert!(status.success(), "{package} does not build");
    directory.join(program)
}
