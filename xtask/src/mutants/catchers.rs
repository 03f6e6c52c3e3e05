//! Checks that each test that has to catch a fault is there, under the name by which the list of faults knows it.

use super::list::Catcher;
use super::{fault, root};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The suites of the package of tests by their names, each with the file at its root.
fn suites(tests: &Path) -> BTreeMap<String, PathBuf> {
    let manifest = fs::read_to_string(tests.join("Cargo.toml")).unwrap();
    let sections = manifest.split("\n[[test]]\n").skip(1);
    let value = |section: &str, key: &str| {
        let mut lines = section.lines().map_while(|line| line.split_once(" = "));
        let (_, value) = lines.find(|(found, _)| *found == key).unwrap();
        value.trim_matches('"').to_owned()
    };
    let suite = |section| (value(section, "name"), tests.join(value(section, "path")));
    sections.map(suite).collect()
}

/// The tests of a suite, as its program names them: `module::test`.
fn tests_of(root: &Path) -> Vec<String> {
    let mut names = Vec::new();
    if root.file_name().is_some_and(|name| name == "main.rs") {
        let folder = root.parent().unwrap();
        add_folder(folder, "", &mut names);
    } else {
        add_file(root, "", &mut names);
    }
    names
}

fn add_folder(folder: &Path, modules: &str, names: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let inner = match stem {
            "main" | "mod" => modules.to_owned(),
            module => format!("{modules}{module}::"),
        };
        if path.is_dir() {
            add_folder(&path, &inner, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            add_file(&path, &inner, names);
        }
    }
}

/// Adds the functions of a file that follow `#[test]`, other attributes and comments in between.
fn add_file(file: &Path, modules: &str, names: &mut Vec<String>) {
    let source = fs::read_to_string(file).unwrap();
    let mut is_test = false;
    for line in source.lines().map(str::trim) {
        if line == "#[test]" {
            is_test = true;
        } else if is_test && !line.starts_with("#[") && !line.starts_with("//") {
            let name = line.trim_start_matches("async ").strip_prefix("fn ");
            let name = name.and_then(|name| name.split('(').next());
            names.extend(name.map(|name| format!("{modules}{name}")));
            is_test = false;
        }
    }
}

#[test]
fn each_test_that_has_to_catch_a_fault_is_there() {
    let root = root();
    let suites = suites(&root.join("tests"));
    let tests: BTreeMap<_, _> = (suites.iter())
        .map(|(suite, root)| (suite.as_str(), tests_of(root)))
        .collect();
    let mut missing = BTreeSet::new();
    for fault in fault::all(&root).unwrap() {
        let Catcher::Test(suite, filter) = fault.catcher else {
            continue;
        };
        let named = tests.get(suite).into_iter().flatten();
        if !named.into_iter().any(|name| name.contains(filter)) {
            missing.insert(format!("{suite}: {filter}, for {}", fault.name));
        }
    }
    let missing: Vec<_> = missing.into_iter().collect();
    assert!(missing.is_empty(), "no such test:\n{}", missing.join("\n"));
    for (suite, tests) in tests {
        assert!(!tests.is_empty(), "no test was found in {suite}");
    }
}
