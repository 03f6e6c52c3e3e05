//! What a process writes down, line by line, so that it stays when the process is killed.

use headcount_tests::monotonic_ns;
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum What {
    /// A request of this class begins to want a place.
    Begins(u8),
    /// It has one.
    Holds,
    /// It is about to finish.
    Finishes,
    /// It has given up.
    GivesUp,
    /// It was told what it must not be told.
    Fails,
    /// A thread could run and did not, for so many nanoseconds until then.
    Late(u64),
}

/// A thread of a process, the time, and what happened then.
pub(crate) type Event = (usize, u64, What);

/// A file to which the threads of a process write.
#[derive(Debug)]
pub(crate) struct Record(File);

impl Record {
    pub(crate) fn create(path: &Path) -> Self {
        let mut options = File::options();
        let file = options.append(true).create(true).open(path);
        Self(file.expect("creates a record"))
    }

    /// Writes down what happens now. When this returns, it stays, whatever becomes of the process.
    pub(crate) fn note(&self, thread: usize, what: What) {
        let (letter, number) = match what {
            What::Begins(class) => ('b', class.into()),
            What::Holds => ('h', 0),
            What::Finishes => ('f', 0),
            What::GivesUp => ('g', 0),
            What::Fails => ('x', 0),
            What::Late(nanoseconds) => ('l', nanoseconds),
        };
        let time = monotonic_ns();
        let line = format!("{thread} {time} {letter} {number}\n");
        (&self.0)
            .write_all(line.as_bytes())
            .expect("writes a record");
    }
}

/// Reads a record. The process may have been killed in the middle of the last line.
pub(crate) fn read(path: &Path) -> Vec<Event> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let event = |line: &str| {
        let mut words = line.strip_suffix('\n')?.split(' ');
        let thread = words.next()?.parse().ok()?;
        let time = words.next()?.parse().ok()?;
        let letter = words.next()?;
        let number: u64 = words.next()?.parse().ok()?;
        let what = match letter {
            "b" => What::Begins(number as u8),
            "h" => What::Holds,
            "f" => What::Finishes,
            "g" => What::GivesUp,
            "x" => What::Fails,
            _ => What::Late(number),
        };
        Some((thread, time, what))
    };
    text.split_inclusive('\n').filter_map(event).collect()
}
