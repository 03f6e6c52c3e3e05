//! F1: a table is created and opened while others create, open and remove it. A process that opens it sees a
//! finished table or none, and two creators end in one table.

use super::Pair;
use crate::Result;
use crate::scene::{ensure, on};
use headcount::{Error, FaultKind, Options, Request, Table, Verification};
use headcount_tests::{Lead, Tracee, directory};
use std::path::Path;

type Open = fn(&Path) -> headcount::Result<Table>;

/// Two that create or open, and what may come of it: what the first has, then the second.
struct Openers {
    name: &'static str,
    /// Whether the file is there before.
    exists: bool,
    first: Open,
    second: Open,
    /// By whether each of them was successful.
    may: fn(bool, bool) -> bool,
    /// Whether those that were successful have the same table.
    same: bool,
}

const OPENERS: [Openers; 8] = [
    Openers {
        name: "OpenOrCreate-OpenOrCreate",
        exists: false,
        first: open_or_create,
        second: open_or_create,
        may: |first, second| first && second,
        same: true,
    },
    Openers {
        name: "OpenOrCreate-Create",
        exists: false,
        first: open_or_create,
        second: create,
        may: |first, _| first,
        same: true,
    },
    Openers {
        name: "Create-OpenOrCreate",
        exists: false,
        first: create,
        second: open_or_create,
        may: |_, second| second,
        same: true,
    },
    Openers {
        name: "Create-Create",
        exists: false,
        first: create,
        second: create,
        may: |first, second| first != second,
        same: true,
    },
    Openers {
        name: "Create-Open",
        exists: false,
        first: create,
        second: |path| Table::open(path),
        may: |first, _| first,
        same: true,
    },
    Openers {
        name: "OpenOrCreate-Open",
        exists: true,
        first: open_or_create,
        second: |path| Table::open(path),
        may: |first, second| first && second,
        same: true,
    },
    Openers {
        name: "Open-Unlink",
        exists: true,
        first: |path| Table::open(path),
        second: unlink,
        may: |_, second| !second,
        same: false,
    },
    Openers {
        name: "OpenOrCreate-UnlinkAndCreate",
        exists: true,
        first: open_or_create,
        second: |path| {
            unlink(path).ok();
            create(path)
        },
        may: |first, _| first,
        same: false,
    },
];

pub(super) fn pairs() -> Vec<Pair> {
    OPENERS
        .into_iter()
        .map(|pair| Pair::new(pair.name, move |lead| pair.point(lead)).every(29))
        .collect()
}

fn options() -> Options {
    let options = Table::options().engines(2).max_engines(2);
    options.max_frontends(3).threads(0)
}

fn open_or_create(path: &Path) -> headcount::Result<Table> {
    options().open_or_create(path)
}

fn create(path: &Path) -> headcount::Result<Table> {
    options().create(path)
}

/// Removes the file. Never has a table.
fn unlink(path: &Path) -> headcount::Result<Table> {
    // One that is not there is as good as removed.
    let _ = std::fs::remove_file(path);
    Table::open(path)
}

/// What the first has of its table when the second has admitted a request: whether it is a finished
/// one, and how many requests it counts.
type Seen = std::result::Result<(bool, u32), String>;

fn seen(table: headcount::Result<Table>) -> Seen {
    let table = table.map_err(|error| error.to_string())?;
    let seen = (is_finished(&table), on(&table.view(), 1));
    std::mem::forget(table);
    Ok(seen)
}

fn is_finished(table: &Table) -> bool {
    let view = table.view();
    let names: Vec<_> = view.engines.iter().map(|engine| &engine.name).collect();
    // One whose file was removed meanwhile is finished all the same.
    let is_whole = |found: Verification| found.faults.iter().all(|f| f.kind == FaultKind::Path);
    names == ["0", "1"] && table.verify().is_ok_and(is_whole)
}

impl Openers {
    fn point(&self, lead: &mut Lead) -> Result<bool> {
        let directory = directory();
        let path = directory.path().join("table");
        if self.exists {
            create(&path)?;
        }
        let mut child: Tracee<Seen> = Tracee::fork(|| (), |()| (self.first)(&path), seen)?;
        lead.lead(&mut child)?;
        let was_there = path.exists();
        let second = match (self.second)(&path) {
            Ok(table) => Some(table),
            Err(Error::NotFound { .. } | Error::Exists { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        child.finish()?;
        let frontend = second.as_ref().map(Table::join).transpose()?;
        let request = Request::new().pin(1);
        let permit = (frontend.as_ref()).map(|frontend| frontend.route_with(&request));
        let permit = permit.transpose()?;
        ensure(second.as_ref().is_none_or(is_finished), || {
            "F1: the second saw an unfinished table".into()
        })?;
        let first = child.report()?;
        ensure((self.may)(first.is_ok(), second.is_some()), || {
            format!("F1: {first:?}, and for the second {second:?}")
        })?;
        if let Ok((is_finished, in_flight)) = first {
            ensure(is_finished, || "F1: it saw an unfinished table".into())?;
            let fits = !self.same || (in_flight == 1) == permit.is_some();
            ensure(fits, || "F1: they have two tables".into())?;
        }
        Ok(self.exists || !was_there)
    }
}
