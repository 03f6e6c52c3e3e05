//! The tests of the library and of the choice on aarch64: on such a machine, or in QEMU on another one.

use crate::progress::Part;
use crate::step::{Failed, Step, cargo};
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "aarch64-unknown-linux-gnu";
const COMPILER: &str = "aarch64-linux-gnu-gcc";
/// The names that QEMU has, linked statically and not.
const EMULATORS: [&str; 2] = ["qemu-aarch64-static", "qemu-aarch64"];
/// Where Debian and others have the C library of that machine.
const LIBRARIES: &str = "/usr/aarch64-linux-gnu";

/// The parts of `cargo xtask aarch64`.
pub(crate) fn all() -> Vec<Part<'static>> {
    let test = |name, arguments: &'static str| {
        Part::new(name, move || on_aarch64(cargo(name, arguments))?.run())
    };
    vec![
        test("the library's tests", "test --package headcount --lib"),
        test(
            "the tests of the choice",
            "test --package headcount-tests --test choosing",
        ),
    ]
}

/// The step for that machine, in QEMU if this is another one. Fails if something is missing for that.
fn on_aarch64(step: Step) -> Result<Step, Failed> {
    if cfg!(target_arch = "aarch64") {
        return Ok(step);
    }
    let emulator = EMULATORS.into_iter().find(|name| is_on_path(name));
    let missing = [
        (
            has_standard_library()?,
            "rustup target add aarch64-unknown-linux-gnu",
        ),
        (
            is_on_path(COMPILER),
            "apt-get install gcc-aarch64-linux-gnu",
        ),
        (
            Path::new(LIBRARIES).exists(),
            "apt-get install libc6-dev-arm64-cross",
        ),
        (emulator.is_some(), "apt-get install qemu-user-static"),
    ];
    let missing: Vec<_> = (missing.into_iter())
        .filter_map(|(is_there, remedy)| (!is_there).then_some(remedy))
        .collect();
    let Some(emulator) = emulator.filter(|_| missing.is_empty()) else {
        let missing = missing.join("; ");
        return Err(Failed(format!(
            "to run what is for aarch64 here: {missing}"
        )));
    };
    let runner = format!("{emulator} -L {LIBRARIES}");
    Ok(step
        .args(&["--target", TARGET])
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", COMPILER)
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", &runner))
}

/// Whether the compiler has Rust's standard library for that machine.
fn has_standard_library() -> Result<bool, Failed> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc)
        .args(["--print", "target-libdir", "--target", TARGET])
        .output()
        .map_err(|error| Failed(format!("asking rustc for its libraries: {error}")))?;
    let directory = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    Ok(directory.is_dir())
}

fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}
