//! `headcount verify`.

use crate::failure::{Failure, Outcome};
use crate::format::count;
use crate::output::{print, printable, printable_json};
use crate::table_arg::PathArgs;
use anstyle::{AnsiColor, Style};
use clap::Args;
use headcount::{Error, Verification};
use serde_json::json;
use std::path::Path;

/// Recount every ledger against every count, and check the file against itself.
///
/// Frontends may go on meanwhile. A part that never stands still long enough to be checked is reported as
/// busy, which is no fault.
#[derive(Args, Debug)]
#[command(after_long_help = JSON)]
pub(crate) struct Verify {
    #[command(flatten)]
    path: PathArgs,
    /// Print one JSON object; `headcount verify --help` says what is in it.
    #[arg(long)]
    json: bool,
}

const JSON: &str = "\
JSON: an object with `schema` (1), `path`, `consistent`, `counts` and `ledgers` (how many were compared),
`busy` (texts: what never stood still) and `faults`. Of each fault: `kind` (header, path, size, mode,
requests, tokens, ledger, slot, lane, engine, cap, queue, publication or unused), `at`, `found` and
`expected`.";

const BAD: Style = AnsiColor::Red.on_default().bold();
const GOOD: Style = AnsiColor::Green.on_default();

impl Verify {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        let table_arg = self.path.table_arg()?;
        match table_arg.open_read_only() {
            Ok(table) => self.report(table_arg.path(), &table.verify()?),
            Err(error) => match kind_of(&error) {
                Some(kind) => self.report_unopened(table_arg.path(), kind, error),
                None => Err(error.into()),
            },
        }
    }

    fn report(&self, path: &Path, found: &Verification) -> Result<Outcome, Failure> {
        let (counts, ledgers) = (found.counts, found.ledgers);
        if self.json {
            let faults = found.faults.iter().map(|fault| {
                json!({
                    "kind": fault.kind.name(),
                    "at": fault.at,
                    "found": fault.found,
                    "expected": fault.expected,
                })
            });
            print_json(path, faults.collect(), &found.busy, counts, ledgers)?;
        } else {
            let mut out = String::new();
            for fault in &found.faults {
                out += &format!("{BAD}{}{BAD:#}\n", printable(&fault.to_string()));
            }
            for busy in &found.busy {
                out += &format!("busy: {}: try again with less traffic\n", printable(busy));
            }
            out += &match (found.faults.len(), found.busy.is_empty()) {
                (0, true) => format!(
                    "{GOOD}consistent{GOOD:#}: {counts} counts are what {ledgers} ledgers hold\n"
                ),
                (0, false) => "consistent, as far as it stood still\n".to_owned(),
                (faults, _) => format!(
                    "{BAD}inconsistent{BAD:#}: {}\n",
                    count(faults as u64, "fault")
                ),
            };
            print(&out)?;
        }
        Ok(outcome(found.is_consistent()))
    }

    /// Reports a table that is too damaged to be opened.
    fn report_unopened(&self, path: &Path, kind: &str, error: Error) -> Result<Outcome, Failure> {
        let error = error.to_string();
        if self.json {
            let fault = json!({ "kind": kind, "at": "the file", "found": error, "expected": null });
            print_json(path, vec![fault], &[], 0, 0)?;
        } else {
            print(&format!("{BAD}{kind}{BAD:#}: {}\n", printable(&error)))?;
        }
        Ok(outcome(false))
    }
}

fn print_json(
    path: &Path,
    faults: Vec<serde_json::Value>,
    busy: &[String],
    counts: usize,
    ledgers: usize,
) -> Result<(), Failure> {
    let json = json!({
        "schema": 1,
        "path": path.display().to_string(),
        "consistent": faults.is_empty(),
        "faults": faults,
        "busy": busy,
        "counts": counts,
        "ledgers": ledgers,
    });
    print(&printable_json(&format!("{json:#}\n")))
}

fn outcome(consistent: bool) -> Outcome {
    if consistent {
        Outcome::Fine
    } else {
        Outcome::CheckFailed
    }
}

/// Returns the kind of fault that keeps a table from being opened, or `None` if it is no table.
fn kind_of(error: &Error) -> Option<&'static str> {
    match error {
        Error::Version { .. } | Error::Checksum { .. } | Error::Geometry { .. } => Some("header"),
        Error::Size { .. } => Some("size"),
        Error::Mode { .. } => Some("mode"),
        _ => None,
    }
}
