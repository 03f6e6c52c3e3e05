//! `headcount list`.

use crate::failure::{Failure, Outcome};
use crate::output::{print, printable, printable_json, printable_path};
use crate::table_arg::{Owner, TableArg};
use crate::text_table::{Cell, align};
use clap::Args;
use headcount::{Error, Table};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use serde::Serialize;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// List the tables of this machine: those in /dev/shm and its directories, or elsewhere.
///
/// A table of another user is listed with an error, unless --any-owner is given.
#[derive(Args, Debug)]
#[command(after_long_help = JSON)]
pub(crate) struct List {
    /// Directories to search for tables, with the directories in them; or tables [default: /dev/shm].
    #[arg(value_name = "DIRECTORY|PATH", value_hint = clap::ValueHint::AnyPath)]
    places: Vec<PathBuf>,
    /// Print one JSON object; `headcount list --help` says what is in it.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    owner: Owner,
}

const JSON: &str = "\
JSON: an object with `schema` (1), `tables` and `unreadable`: how many files could not be read.
Of each table: `path`, `engines` and `in_flight` (how many), `frontends` (how many live), `dead_frontends`
(not reaped yet), `publisher` and `deployment` (pids), and `error`: why it could not be opened, and then
all else is null.";

/// A table in the list. It was opened unless there is an error.
#[derive(Default, Serialize)]
struct Listed {
    path: String,
    engines: Option<usize>,
    in_flight: Option<u64>,
    frontends: Option<usize>,
    dead_frontends: Option<usize>,
    publisher: Option<u32>,
    deployment: Option<u32>,
    error: Option<String>,
}

#[derive(Serialize)]
struct All {
    schema: u32,
    tables: Vec<Listed>,
    unreadable: usize,
}

impl List {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        let shm = vec![PathBuf::from("/dev/shm")];
        let places = if self.places.is_empty() {
            shm
        } else {
            self.places
        };
        let (mut tables, mut unreadable) = (Vec::new(), 0);
        for place in &places {
            let failed = |error| {
                let place = place.display();
                Failure::no_table(format!("reading {place}: {error}; check the path"))
            };
            if !fs::metadata(place).map_err(failed)?.is_dir() {
                tables.push(listed(place, self.owner));
                continue;
            }
            let (mut files, directories) = entries(place).map_err(failed)?;
            for directory in directories {
                match entries(&directory) {
                    Ok((more, _)) => files.extend(more),
                    // It was removed meanwhile.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(_) => unreadable += 1,
                }
            }
            files.sort();
            for path in files {
                match is_table(&path) {
                    Ok(true) => tables.push(listed(&path, self.owner)),
                    Ok(false) | Err(Errno::NOENT) => {}
                    Err(_) => unreadable += 1,
                }
            }
        }
        let all = All {
            schema: 1,
            tables,
            unreadable,
        };
        if self.json {
            print(&in_json(&all)?)?;
        } else {
            print(&in_text(&all, &places))?;
        }
        Ok(Outcome::Fine)
    }
}

/// Returns the files and the directories in a directory.
fn entries(directory: &Path) -> io::Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let (mut files, mut directories) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        // It may have been removed meanwhile.
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        if kind.is_file() {
            files.push(entry.path());
        } else if kind.is_dir() {
            directories.push(entry.path());
        }
    }
    Ok((files, directories))
}

/// Whether a file begins as tables do.
fn is_table(path: &Path) -> Result<bool, Errno> {
    const BEGINNING: &[u8; 8] = b"HEADCNT\0";
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    let mut found = [0; BEGINNING.len()];
    let read = rustix::io::pread(file, &mut found, 0)?;
    Ok(read == found.len() && found == *BEGINNING)
}

fn listed(path: &Path, owner: Owner) -> Listed {
    let table = TableArg::new(path.to_owned(), owner).open_read_only();
    let listed = Listed {
        path: path.display().to_string(),
        ..Listed::default()
    };
    match table {
        Ok(table) => with_counts(&table, listed),
        Err(error) => Listed {
            error: Some(sentence(error)),
            ..listed
        },
    }
}

fn with_counts(table: &Table, listed: Listed) -> Listed {
    let view = table.view();
    let alive = view.frontends.iter().filter(|f| f.alive).count();
    Listed {
        engines: Some(view.engines.len()),
        in_flight: Some(view.engines.iter().map(|e| u64::from(e.in_flight)).sum()),
        frontends: Some(alive),
        dead_frontends: Some(view.frontends.len() - alive),
        publisher: view.publisher,
        deployment: view.deployment,
        ..listed
    }
}

fn sentence(error: Error) -> String {
    Failure::from(error).sentence
}

fn in_json(all: &All) -> Result<String, Failure> {
    serde_json::to_string_pretty(all)
        .map(|json| printable_json(&json) + "\n")
        .map_err(|error| Failure::failed(format!("writing JSON: {error}; report this")))
}

fn in_text(all: &All, places: &[PathBuf]) -> String {
    let heads = [
        "TABLE",
        "ENGINES",
        "IN-FL",
        "FRONTENDS",
        "DEAD",
        "PUBLISHER",
        "DEPLOYMENT",
    ];
    let mut rows = vec![heads.map(Cell::right).to_vec()];
    rows[0][0] = Cell::left(heads[0]);
    let (mut errors, mut out) = (String::new(), String::new());
    for table in &all.tables {
        if let Some(error) = &table.error {
            errors += &format!("! {}\n", printable(error));
            continue;
        }
        let number = |number: Option<u64>| {
            Cell::right(number.map_or("-".to_owned(), |number| number.to_string()))
        };
        let size = |size: Option<usize>| number(size.map(|size| size as u64));
        rows.push(vec![
            Cell::left(printable(&table.path)),
            size(table.engines),
            number(table.in_flight),
            size(table.frontends),
            size(table.dead_frontends),
            number(table.publisher.map(u64::from)),
            number(table.deployment.map(u64::from)),
        ]);
    }
    if rows.len() > 1 {
        out += &align(&rows, usize::MAX);
    } else if errors.is_empty() {
        let places: Vec<_> = places.iter().map(|place| printable_path(place)).collect();
        out += &format!("no tables in {}\n", places.join(", "));
    }
    out += &errors;
    if all.unreadable > 0 {
        let unreadable = all.unreadable;
        out += &format!("not searched for lack of permission: {unreadable}\n");
    }
    out
}
