//! What was seen when it was last recorded, and the table in the documentation that follows from it.

use crate::case::Case;
use crate::fronts::Kind;
use crate::judge::Observed;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What came of each case at each front.
#[derive(Debug, Default, Clone)]
pub(crate) struct Record(BTreeMap<(String, Kind), Observed>);

const KINDS: [Kind; 3] = [Kind::Nginx, Kind::Haproxy, Kind::Ours];

const HEAD: &str = "\
# What came of each case of the corpus: what the client got | what the engine got | places taken.
# Written by HEADCOUNT_CORPUS=record cargo test -p headcount-tests --test corpus; do not edit.
";

/// Between these lines, the documentation has the table.
const BEGIN: &str = "<!-- written by tests/corpus: begin -->\n";
const END: &str = "<!-- written by tests/corpus: end -->\n";

impl Record {
    pub(crate) fn read() -> Self {
        let text = fs::read_to_string(file()).unwrap_or_default();
        let mut record = Self::default();
        let mut name = "";
        for line in text.lines() {
            if let Some(new) = line.strip_prefix("== ") {
                name = new;
            } else if let Some((kind, seen)) = line.split_once(": ")
                && let Some(kind) = KINDS.into_iter().find(|k| k.name() == kind)
                && let Some(seen) = Observed::parse(seen)
            {
                record.set(name, kind, seen);
            }
        }
        record
    }

    pub(crate) fn get(&self, name: &str, kind: Kind) -> Option<&Observed> {
        self.0.get(&(name.to_owned(), kind))
    }

    pub(crate) fn set(&mut self, name: &str, kind: Kind, seen: Observed) {
        self.0.insert((name.to_owned(), kind), seen);
    }

    /// Writes it, and the documentation's table.
    pub(crate) fn write(&self, cases: &[Arc<Case>]) {
        let mut text = HEAD.to_owned();
        for case in cases {
            // Writing to a string cannot fail, here and below.
            let _ = writeln!(text, "\n== {}", case.name);
            for kind in KINDS {
                if let Some(seen) = self.get(case.name, kind) {
                    let _ = writeln!(text, "{}: {seen}", kind.name());
                }
            }
        }
        fs::write(file(), text).unwrap();
        let (before, _, after) = documentation();
        let table = self.table(cases);
        fs::write(document(), format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
    }

    /// Whether the documentation has the table that it should have.
    pub(crate) fn is_documented(&self, cases: &[Arc<Case>]) -> bool {
        documentation().1 == self.table(cases)
    }

    /// The cases in which `api_server` differs from both others.
    fn table(&self, cases: &[Arc<Case>]) -> String {
        let mut text =
            "| what comes | nginx | HAProxy | here | why |\n|---|---|---|---|---|\n".to_owned();
        for case in cases {
            let Some(why) = case.because else { continue };
            let _ = write!(text, "| {} ", case.name);
            for kind in KINDS {
                let seen = self.get(case.name, kind);
                let seen = seen.map_or("", |seen| &seen.client).replace('|', "\\|");
                let _ = write!(text, "| {seen} ");
            }
            let _ = writeln!(text, "| {why} |");
        }
        text
    }
}

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/recorded.txt")
}

fn document() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/api_server.md")
}

/// What stands before the table, the table, and what stands after it.
fn documentation() -> (String, String, String) {
    let text = fs::read_to_string(document()).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the table begins");
    let (table, after) = rest.split_once(END).expect("the table ends");
    (before.to_owned(), table.to_owned(), after.to_owned())
}
