//! The rooms of the library, and which way they import each other.

use std::fs;
use std::path::{Path, PathBuf};

/// The rooms of `src/`, each above those that it may import from. `error` stands beside them: each room may use
/// it, but for the first.
const ROOMS: [&str; 6] = [
    "algorithm",
    "shm",
    "table",
    "publication",
    "frontend",
    "inspect",
];

fn sources(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|e| e.unwrap().path());
    entries
        .flat_map(|path| match path.is_dir() {
            true => sources(&path),
            false => vec![path],
        })
        .collect()
}

/// The names that follow `crate::` in the code of a file, up to its tests.
fn imports(source: &str) -> Vec<&str> {
    let code = source.split("\n#[cfg(test)]\nmod tests").next().unwrap();
    let lines = code.lines().map(|line| line.split("//").next().unwrap());
    lines
        .flat_map(|line| line.split("crate::").skip(1))
        .map(|rest| {
            rest.split(|c: char| !c.is_alphanumeric() && c != '_')
                .next()
                .unwrap()
        })
        .collect()
}

#[test]
fn imports_run_one_way() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("../src");
    let mut wrong = Vec::new();
    let mut seen = 0;
    for (floor, room) in ROOMS.iter().enumerate() {
        for path in sources(&src.join(room)) {
            let source = fs::read_to_string(&path).unwrap();
            for import in imports(&source) {
                seen += 1;
                let is_below = ROOMS[..=floor].contains(&import);
                // A room beside this one, on the same floor.
                let is_beside = floor > 0 && import == "error";
                if !is_below && !is_beside {
                    wrong.push(format!("{} imports {import}", path.display()));
                }
            }
        }
    }
    assert!(seen > 200, "only {seen} imports were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_reader_finds_few_things_in_src() {
    let entries = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../src"));
    let mut names: Vec<_> = (entries.unwrap())
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let mut expected: Vec<_> = ROOMS.map(str::to_owned).into();
    expected.extend(["error", "lib.rs"].map(str::to_owned));
    expected.sort();
    assert_eq!(names, expected);
}
