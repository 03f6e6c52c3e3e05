//! Deliberate faults. Each is put into a copy of the sources, alone, and a model, test or proof must catch it.

#[cfg(test)]
mod catchers;
mod fault;
mod list;
mod weaken;

use crate::python;
use crate::step::{Failed, Step, cargo, root};
use fault::Fault;
use list::Catcher;
use std::fs;
use std::ops::Not;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Puts in the faults whose name contains `filter`, one at a time. Fails if one is not caught as it should be.
pub(crate) fn run(filter: Option<String>) -> Result<(), Failed> {
    let copy = PathBuf::from("target/mutants/source");
    let faults = fault::all(&root())?;
    let chosen: Vec<_> = (faults.iter())
        .filter(|fault| filter.as_ref().is_none_or(|f| fault.name.contains(f)))
        .collect();
    if chosen.is_empty() {
        return Err(Failed("no fault is named so".to_owned()));
    }
    let (mut caught, mut not_caught, mut missed) = (0, 0, Vec::new());
    for (index, fault) in chosen.iter().enumerate() {
        renew(&copy)?;
        fault.apply(&copy)?;
        let start = Instant::now();
        let is_caught = catch(fault.catcher, &copy)?;
        let Fault { name, catcher, .. } = fault;
        let (done, all, took) = (index + 1, chosen.len(), start.elapsed().as_secs());
        print!("[{done}/{all}] ");
        match (is_caught, fault.not_caught) {
            (true, None) => {
                println!("caught: {name}, by {catcher} ({took} s)");
                caught += 1;
            }
            (false, Some(why)) => {
                println!("not caught: {name}: {why} ({took} s)");
                not_caught += 1;
            }
            (false, None) => {
                println!("MISSED: {name}, by {catcher} ({took} s)");
                missed.push(&**name);
            }
            (true, Some(_)) => {
                return Err(Failed(format!(
                    "{name}: caught by {catcher}, not as listed"
                )));
            }
        }
    }
    println!("{caught} caught; {not_caught} not caught, for the reasons above");
    match missed.as_slice() {
        [] => Ok(()),
        names => Err(Failed(format!("nothing catches {}", names.join("; ")))),
    }
}

/// Copies the files that git tracks, so that nothing but the fault differs.
fn renew(copy: &Path) -> Result<(), Failed> {
    let failed = |error: std::io::Error| Failed(format!("copying the sources: {error}"));
    let listed = std::process::Command::new("git")
        .args(["ls-files", "-z"])
        .output()
        .map_err(failed)?;
    for name in String::from_utf8_lossy(&listed.stdout).split_terminator('\0') {
        let (from, to) = (Path::new(name), copy.join(name));
        let Ok(content) = fs::read(from) else {
            continue;
        };
        // A file that is the same keeps its time, so that cargo does not build it again.
        if fs::read(&to).is_ok_and(|old| old == content) {
            continue;
        }
        to.parent()
            .map_or(Ok(()), fs::create_dir_all)
            .map_err(failed)?;
        fs::write(&to, content).map_err(failed)?;
    }
    Ok(())
}

/// Whether the catcher fails. A fault that does not compile is a mistake in the list.
fn catch(catcher: Catcher, copy: &Path) -> Result<bool, Failed> {
    let (package, filter) = match catcher {
        Catcher::Model(name) => ("--release --package headcount-loom-tests".to_owned(), name),
        Catcher::Unit(name) => ("--package headcount --lib".to_owned(), name),
        Catcher::Test(suite, name) => (format!("--package headcount-tests --test {suite}"), name),
        Catcher::Python(test) => return python::catches(copy, test),
        Catcher::Step(pair) => return catch_traced("step", pair, copy),
        Catcher::Crash(operation) => return catch_traced("crash", operation, copy),
    };
    let test = |arguments: &[&str]| in_copy("test", copy, &package).args(arguments);
    compile(test(&["--no-run"]), copy)?;
    test(&["--", filter]).succeeds().map(Not::not)
}

/// Whether this program, which leads processes instruction by instruction, fails.
fn catch_traced(program: &str, which: &str, copy: &Path) -> Result<bool, Failed> {
    let package = format!("--release --package headcount-tests --bin {program}");
    compile(in_copy("build", copy, &package), copy)?;
    let run = in_copy("run", copy, &package).args(&["--", "1", which]);
    run.succeeds().map(Not::not)
}

fn compile(build: Step, copy: &Path) -> Result<(), Failed> {
    build.succeeds()?.then_some(()).ok_or_else(|| {
        let copy = copy.display();
        Failed(format!("this fault does not compile; see {copy}"))
    })
}

/// A call of cargo on the copy. It compiles only what a fault has changed, also in a release build.
fn in_copy(task: &str, copy: &Path, package: &str) -> Step {
    let manifest = copy.join("Cargo.toml").display().to_string();
    cargo("the catcher", &format!("{task} --quiet {package}"))
        .args(&["--manifest-path", &manifest])
        .env("CARGO_INCREMENTAL", "1")
        .quiet()
}
