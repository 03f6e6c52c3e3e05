//! The recorded observations, and the table in the documentation that is made from them.

use crate::case::Case;
use crate::fronts::Kind;
use crate::judge::Observed;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The observation of each case at each front.
#[derive(Debug, Default, Clone)]
pub(crate) struct Record(BTreeMap<(String, Kind), Observed>);

const HEAD: &str = "\
# Each case of the corpus at each front: the client got | the engine got | places taken by headcount-server.
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
                && let Some(kind) = Kind::ALL.into_iter().find(|k| k.name() == kind)
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
            for kind in Kind::ALL {
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

    /// Whether the table in the documentation is up to date.
    pub(crate) fn is_documented(&self, cases: &[Arc<Case>]) -> bool {
        documentation().1 == self.table(cases)
    }

    /// The cases in which `headcount-server` differs from both others. Those that come out alike share a row.
    fn table(&self, cases: &[Arc<Case>]) -> String {
        let mut rows: Vec<(String, Vec<&str>)> = Vec::new();
        for case in cases {
            let Some(why) = case.because else { continue };
            let [nginx, haproxy, ours] = Kind::ALL.map(|kind| self.get(case.name, kind));
            let seen = [nginx, haproxy, ours].into_iter().flatten();
            let at_engines: BTreeSet<_> = seen.map(|seen| short(&seen.engine)).collect();
            let is_as_ours = |other: &&Observed| {
                ours.is_some_and(|ours| short(&ours.client) == short(&other.client))
            };
            let others = [nginx, haproxy].into_iter().flatten();
            // The engine's side is shown where it makes the difference.
            let says_engine = at_engines.len() > 1 && others.filter(is_as_ours).count() > 0;
            let cell = |seen: Option<&Observed>| {
                let Some(seen) = seen else {
                    return String::new();
                };
                let engine = match says_engine {
                    true => format!("; to the engine: {}", short(&seen.engine)),
                    false => String::new(),
                };
                format!("{}{engine}", short(&seen.client)).replace('|', "\\|")
            };
            let row = format!(
                "{} | {} | {} | {why}",
                cell(nginx),
                cell(haproxy),
                cell(ours)
            );
            match rows.iter_mut().find(|(other, _)| *other == row) {
                Some((_, names)) => names.push(case.name),
                None => rows.push((row, vec![case.name])),
            }
        }
        let mut text =
            "| what comes | nginx | HAProxy | here | why |\n|---|---|---|---|---|\n".to_owned();
        for (row, names) in rows {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "| {} | {row} |", names.join("; "));
        }
        text
    }
}

/// An observation without bodies and their framing.
fn short(seen: &str) -> String {
    let mut text = String::new();
    let (mut is_quoted, mut is_escaped) = (false, false);
    for character in seen.chars() {
        match character {
            '"' if !is_escaped => is_quoted = !is_quoted,
            _ if !is_quoted => text.push(character),
            _ => {}
        }
        is_escaped = character == '\\' && !is_escaped;
    }
    for framing in [" length", " chunked", " until close"] {
        for end in [" ", ";", ",", ""] {
            let is_end = end.is_empty();
            if is_end && text.ends_with(framing) {
                text.truncate(text.len() - framing.len());
            } else if !is_end {
                text = text.replace(&format!("{framing}{end}"), end);
            }
        }
    }
    for (what, by) in [
        ("  ", " "),
        (" ;", ";"),
        (" ,", ","),
        (" [", " with `"),
        ("]", "`"),
    ] {
        text = text.replace(what, by);
    }
    match text.strip_suffix("then ") {
        Some(before) => format!("{before}then something else"),
        None => text.trim_end().to_owned(),
    }
}

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/recorded.txt")
}

fn document() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/server.md")
}

/// The text before the table, the table, and the text after it.
fn documentation() -> (String, String, String) {
    let text = fs::read_to_string(document()).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the table begins");
    let (table, after) = rest.split_once(END).expect("the table ends");
    (before.to_owned(), table.to_owned(), after.to_owned())
}
