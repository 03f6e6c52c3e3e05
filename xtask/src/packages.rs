//! The packages that users get.

use crate::step::{Failed, cargo, program, root, target};
use std::path::Path;
use std::process::Command;
use std::{fmt, fs};

const PACKAGES: [&str; 5] = [
    "headcount",
    "headcount-metrics",
    "headcount-yardstick",
    "headcount-cli",
    "headcount-server",
];

/// The version of the workspace, which all of them have.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Packs them and compiles what is in the packages. Fails if a file that one needs is not in it.
///
/// Cargo can verify packages itself, but it unpacks each version of a package only once. The next time it would
/// compile the others with the library as it was the first time.
pub(crate) fn check() -> Result<(), Failed> {
    let directory = root().join("target/packages");
    let sources = directory.join("sources");
    pack(&directory)?;
    // Files of an earlier run must not be there.
    if sources.exists() {
        fs::remove_dir_all(&sources).map_err(|error| failed(&sources, &error))?;
    }
    fs::create_dir_all(&sources).map_err(|error| failed(&sources, &error))?;
    for name in PACKAGES {
        let package = directory.join(format!("package/{name}-{VERSION}.crate"));
        // All packed files have the same old time, by which cargo would take them for unchanged.
        let unpack = ["--extract", "--gzip", "--touch", "--file"].map(AsRef::as_ref);
        let into = ["--directory".as_ref(), sources.as_os_str()];
        let unpack = unpack.into_iter().chain([package.as_os_str()]).chain(into);
        program("unpacking", "tar", unpack).run()?;
    }
    let manifest = sources.join("Cargo.toml");
    fs::write(&manifest, workspace()).map_err(|error| failed(&manifest, &error))?;
    let versions = sources.join("Cargo.lock");
    fs::copy(root().join("Cargo.lock"), &versions).map_err(|error| failed(&versions, &error))?;
    cargo("what is in the packages", "check --workspace --offline")
        .args(&["--manifest-path", &manifest.display().to_string()])
        .args(&["--target-dir", &target().display().to_string()])
        .run()
}

fn pack(directory: &Path) -> Result<(), Failed> {
    let mut package = cargo("the packages", "package --quiet --offline --no-verify")
        .args(&["--target-dir", &directory.display().to_string()]);
    for name in PACKAGES {
        package = package.args(&["--package", name]);
    }
    // Without this, cargo refuses to pack sources that are not committed.
    if has_changes() {
        package = package.args(&["--allow-dirty"]);
    }
    package.run()
}

/// Whether the sources differ from the last commit. Without git they do not.
fn has_changes() -> bool {
    let mut status = Command::new("git");
    let status = status.args(["status", "--porcelain"]).current_dir(root());
    status
        .output()
        .is_ok_and(|output| !output.stdout.is_empty())
}

/// The manifest of a workspace of the unpacked packages, in which they find each other.
fn workspace() -> String {
    let members = PACKAGES.map(|name| format!("{name}-{VERSION}"));
    let patches = PACKAGES.map(|name| format!("{name}.path = \"{name}-{VERSION}\"\n"));
    let patches = patches.concat();
    format!("[workspace]\nmembers = {members:?}\nresolver = \"3\"\n\n[patch.crates-io]\n{patches}")
}

fn failed(path: &Path, error: &dyn fmt::Display) -> Failed {
    Failed(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn what_may_be_published_is_packed() {
        let metadata = cargo(
            "metadata",
            "metadata --no-deps --offline --format-version 1",
        );
        let metadata: Value = serde_json::from_slice(&metadata.output().unwrap()).unwrap();
        let packages = metadata["packages"].as_array().unwrap();
        // Null: to any registry. An empty list: to none.
        let may_be_published = |package: &&Value| package["publish"].is_null();
        let names = packages.iter().filter(may_be_published).map(|p| &p["name"]);
        let mut names: Vec<_> = names.map(|name| name.as_str().unwrap()).collect();
        names.sort_unstable();
        let mut packed = PACKAGES;
        packed.sort_unstable();
        assert_eq!(names, packed);
    }
}
