//! Deliberate faults: each is put into a copy of the sources, alone, and something must catch it.

mod list;

use crate::python;
use crate::step::{Failed, Step, cargo};
use list::{Catcher, Mutant};
use std::fs;
use std::ops::Not;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Applies the mutants whose name contains `filter`, one at a time.
pub(crate) fn run(filter: Option<String>) -> Result<(), Failed> {
    let copy = PathBuf::from("target/mutants/source");
    let chosen =
        list::all().filter(|mutant| filter.as_ref().is_none_or(|f| mutant.name.contains(f)));
    let mut survivors = Vec::new();
    let mut caught = 0;
    for mutant in chosen {
        renew(&copy)?;
        apply(mutant, &copy)?;
        let start = Instant::now();
        let is_caught = catch(mutant.catcher, &copy)?;
        let took = start.elapsed().as_secs();
        match (is_caught, mutant.harmless) {
            (true, None) => println!("caught    {} by {} ({took} s)", mutant.name, mutant.catcher),
            (false, Some(why)) => println!("harmless  {}: {why}", mutant.name),
            (false, None) => survivors.push(mutant.name),
            (true, Some(_)) => return Err(Failed(format!("{} is not harmless", mutant.name))),
        }
        caught += usize::from(is_caught);
    }
    println!("{caught} caught, {} not", survivors.len());
    match survivors.as_slice() {
        [] => Ok(()),
        names => Err(Failed(format!("nothing catches: {}", names.join("; ")))),
    }
}

/// Copies what git tracks, so that nothing but the fault differs.
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
        // Files that are the same keep their time, so that cargo does not build them again.
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

fn apply(mutant: &Mutant, copy: &Path) -> Result<(), Failed> {
    edit(&copy.join(mutant.file), mutant.edits)
        .and_then(|()| match mutant.narrow_tags {
            true => edit(
                &copy.join("src/algorithm/word.rs"),
                &[("const TAG_BITS: u32 = 29;", "const TAG_BITS: u32 = 2;")],
            ),
            false => Ok(()),
        })
        .map_err(|what| Failed(format!("{}: {what}", mutant.name)))
}

fn edit(path: &Path, edits: &[(&str, &str)]) -> Result<(), String> {
    let mut source = fs::read_to_string(path).map_err(|error| error.to_string())?;
    for (find, replace) in edits {
        let found = source.matches(find).count();
        if found != 1 {
            return Err(format!(
                "{find:?} stands {found} times in {}",
                path.display()
            ));
        }
        source = source.replacen(find, replace, 1);
    }
    fs::write(path, source).map_err(|error| error.to_string())
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

/// Whether a program fails that leads processes instruction by instruction.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_still_has_its_place_in_the_sources() {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut lost = Vec::new();
        for mutant in list::all() {
            let mut source = fs::read_to_string(sources.join(mutant.file)).unwrap_or_default();
            for (find, replace) in mutant.edits {
                if source.matches(find).count() != 1 {
                    lost.push(format!("{}, in {}: {find}", mutant.name, mutant.file));
                }
                source = source.replacen(find, replace, 1);
            }
        }
        assert!(lost.is_empty(), "{}", lost.join("\n"));
    }

    #[test]
    fn the_documentation_says_how_many_there_are() {
        let page = include_str!("../../../docs/guarantees.md");
        let said = format!("{} deliberate faults,", list::all().count());
        assert!(
            page.contains(&said),
            "there are {said} and not what the page says"
        );
    }
}
