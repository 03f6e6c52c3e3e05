//! All faults in one form: those of the list, and those that are generated from the sources.

use super::list::{self, Catcher};
use super::weaken::{self, Weakening};
use crate::step::Failed;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// A fault, and what has to catch it.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub(super) name: String,
    pub(super) file: String,
    change: Change,
    pub(super) catcher: Catcher,
    /// The reason for which the catcher does not catch it, if it does not.
    pub(super) not_caught: Option<&'static str>,
}

#[derive(Clone, Debug)]
enum Change {
    /// Texts and their replacements. Each text stands in the file exactly once.
    Edits(&'static [(&'static str, &'static str)]),
    Weakened(Weakening),
}

/// The directory of the algorithms.
const ALGORITHM: &str = "src/algorithm";

/// All faults of the sources in this directory. Fails if the table of orderings does not match them.
pub(super) fn all(sources: &Path) -> Result<Vec<Fault>, Failed> {
    let (weakened, unmatched) = weakened(sources)?;
    match unmatched.as_slice() {
        [] => Ok(listed().chain(weakened).collect()),
        lines => Err(Failed(lines.join("\n"))),
    }
}

/// The faults that are written by hand.
fn listed() -> impl Iterator<Item = Fault> {
    list::all().map(|mutant| Fault {
        name: mutant.name.to_owned(),
        file: mutant.file.to_owned(),
        change: Change::Edits(mutant.edits),
        catcher: mutant.catcher,
        not_caught: mutant.harmless,
    })
}

/// The weakened orderings of the sources in this directory; and messages about each ordering without a line in
/// the table and each line without an ordering.
pub(super) fn weakened(sources: &Path) -> Result<(Vec<Fault>, Vec<String>), Failed> {
    let failed = |what: &str, why: &dyn std::fmt::Display| Failed(format!("{what}: {why}"));
    let table = list::orderings::TABLE;
    let listed = table.iter().map(|(file, _)| (*file).to_owned());
    let there = files(&sources.join(ALGORITHM), "").map_err(|error| failed(ALGORITHM, &error))?;
    let (mut faults, mut unmatched) = (Vec::new(), Vec::new());
    for file in listed.chain(there).collect::<BTreeSet<_>>() {
        let path = format!("{ALGORITHM}/{file}");
        let source = fs::read_to_string(sources.join(&path)).unwrap_or_default();
        let found = weaken::weakenings(&source).map_err(|error| failed(&path, &error))?;
        let mut entries: Vec<_> = (table.iter())
            .filter(|(of, _)| *of == file)
            .flat_map(|(_, entries)| *entries)
            .collect();
        for weakening in found {
            let (place, change) = (&weakening.place, weakening.change());
            let name = format!(
                "{file}, {} {}, {}: {change}",
                place.function, place.nth, place.access
            );
            let is_its = |entry: &&list::orderings::Entry| {
                (entry.function, entry.nth, entry.change) == (&*place.function, place.nth, &*change)
            };
            let Some(index) = entries.iter().position(is_its) else {
                unmatched.push(format!("{name}: the table has no line for it"));
                continue;
            };
            let entry = entries.remove(index);
            faults.push(Fault {
                name,
                file: path.clone(),
                change: Change::Weakened(weakening),
                catcher: Catcher::Model(entry.models),
                not_caught: entry.not_caught,
            });
        }
        unmatched.extend(entries.into_iter().map(|entry| {
            let (function, nth, change) = (entry.function, entry.nth, entry.change);
            format!("{file}, {function} {nth}: {change}: there is no such ordering, or it is listed twice")
        }));
    }
    Ok((faults, unmatched))
}

/// The Rust files in `directory`, by their paths from there, with `prefix` before each.
fn files(directory: &Path, prefix: &str) -> std::io::Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().display());
        match entry.file_type()?.is_dir() {
            true => found.extend(files(&entry.path(), &format!("{name}/"))?),
            false if name.ends_with(".rs") => found.push(name),
            false => {}
        }
    }
    Ok(found)
}

impl Fault {
    /// Puts it into the sources in this directory.
    pub(super) fn apply(&self, sources: &Path) -> Result<(), Failed> {
        let path = sources.join(&self.file);
        let read = fs::read_to_string(&path).map_err(|error| error.to_string());
        let changed = read.and_then(|source| self.change.apply(&source));
        changed
            .and_then(|to| fs::write(&path, to).map_err(|error| error.to_string()))
            .map_err(|why| Failed(format!("{}, in {}: {why}", self.name, self.file)))
    }
}

impl Change {
    fn apply(&self, source: &str) -> Result<String, String> {
        let edits = match self {
            Self::Edits(edits) => *edits,
            Self::Weakened(weakening) => return Ok(weakening.apply(source)),
        };
        let mut source = source.to_owned();
        for (find, replace) in edits {
            let found = source.matches(find).count();
            if found != 1 {
                return Err(format!("{find:?} stands there {found} times"));
            }
            source = source.replacen(find, replace, 1);
        }
        Ok(source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
    }

    #[test]
    fn each_fault_still_has_its_place_in_the_sources() {
        let lost = |fault: &Fault| {
            let source = fs::read_to_string(sources().join(&fault.file)).unwrap_or_default();
            let why = fault.change.apply(&source).err()?;
            Some(format!("{}, in {}: {why}", fault.name, fault.file))
        };
        let lost: Vec<_> = listed().filter_map(|fault| lost(&fault)).collect();
        assert!(lost.is_empty(), "{}", lost.join("\n"));
    }

    #[test]
    fn each_ordering_of_the_algorithms_is_in_the_table_and_nothing_else_is() {
        let (faults, unmatched) = weakened(sources()).unwrap();
        assert!(!faults.is_empty());
        assert!(unmatched.is_empty(), "{}", unmatched.join("\n"));
    }

    #[test]
    fn each_model_that_has_to_catch_a_fault_exists() {
        let models = Path::new("loom-tests/src/models");
        let mut names = Vec::new();
        for file in files(&sources().join(models), "").unwrap() {
            let source = fs::read_to_string(sources().join(models).join(&file)).unwrap();
            let module = file.trim_end_matches(".rs");
            let functions = source.split("#[test]\nfn ").skip(1);
            let function = |text: &str| text.split('(').next().unwrap_or_default().to_owned();
            names.extend(functions.map(|text| format!("models::{module}::{}", function(text))));
        }
        for fault in all(sources()).unwrap() {
            if let Catcher::Model(filter) = fault.catcher {
                let exists = names.iter().any(|name| name.contains(filter));
                assert!(exists, "{}: no model is named {filter}", fault.name);
            }
        }
    }

    #[test]
    fn the_documentation_says_how_many_there_are() {
        let page = include_str!("../../../docs/guarantees.md");
        let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
        let (all, weakened) = (all(sources()).unwrap(), weakened(sources()).unwrap().0);
        let said = format!(
            "{} deliberate faults, {} of them",
            all.len(),
            weakened.len()
        );
        assert!(page.contains(&said), "the page does not say {said:?}");
    }

    #[test]
    fn the_documentation_says_how_many_models_there_are() {
        let page = include_str!("../../../docs/guarantees.md");
        let models = sources().join("loom-tests/src/models");
        let files = files(&models, "").unwrap();
        let count = |file: &String| {
            let source = fs::read_to_string(models.join(file)).unwrap();
            source.matches("#[test]").count()
        };
        let said = format!("{} models.", files.iter().map(count).sum::<usize>());
        assert!(page.contains(&said), "the page does not say {said:?}");
    }
}
