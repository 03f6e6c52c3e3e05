//! The file word by word, each with what it means: for bug reports.

mod unopenable;

use crate::error::Result;
use crate::inspect::read::{read_at, words};
use crate::shm::is_locked;
use crate::shm::layout::{DEPLOYMENT_LOCK, PUBLISHER_LOCK, Part};
use crate::table::Table;
use std::fmt::Write;
use std::io;
use std::os::fd::AsFd;

impl Table {
    /// Returns the file word by word, each with what it means; words that are zero are left out. For a bug report.
    ///
    /// The words are read one after the other, so those of a table that is in use may be of different
    /// moments. Reads only, and disturbs no other process. Takes some 100 bytes for each word that is not
    /// zero.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the file cannot be read any more.
    pub fn dump(&self) -> Result<String> {
        let layout = self.mapping().layout();
        let mut out = String::new();
        let held = |byte| match is_locked(self.as_fd(), byte) {
            Ok(true) => "held",
            Ok(false) => "free",
            Err(_) => "unknown",
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{} bytes, {:?}, lock of the publisher {}, of the deployment {}",
            layout.size,
            layout.geometry,
            held(PUBLISHER_LOCK),
            held(DEPLOYMENT_LOCK)
        );
        let read = |bytes: &mut [u8], offset| match read_at(self, bytes, offset) {
            Ok(read) if read < bytes.len() => Err(io::ErrorKind::UnexpectedEof.into()),
            read => read,
        };
        for part in layout.parts() {
            write(&mut out, &part, read).map_err(|e| self.failed("reading", e))?;
        }
        Ok(out)
    }
}

/// Writes the words of a part that are not zero. Returns whether all of it was there.
fn write(
    out: &mut String,
    part: &Part,
    read: impl Fn(&mut [u8], u64) -> io::Result<usize>,
) -> io::Result<bool> {
    let mut bytes = vec![0; part.words() * 8];
    let section = part.section;
    // Writing to a string cannot fail, here and below.
    if !part.is_padding() {
        let _ = writeln!(
            out,
            "\n{} at {:#x}: {} of {} bytes",
            part.name,
            section.offset,
            section.count,
            bytes.len()
        );
    }
    for element in 0..section.count {
        let offset = part.start(element);
        bytes.fill(0);
        let there = read(&mut bytes, offset as u64)?;
        let words: Vec<_> = words(&bytes).collect();
        let places = (offset..).step_by(8).zip(&words);
        for ((at, word), means) in places.zip(part.describe(&words)) {
            if *word != 0 {
                let _ = writeln!(out, "{at:8x}  [{element}]  {word:016x}  {means}");
            }
        }
        if there < bytes.len() {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::os::unix::fs::FileExt;

    /// From which word of an element on a dump has to say this.
    type Meanings = &'static [(usize, &'static str)];

    /// What a dump has to say of each word of a table of 2 engines and one frontend of two lanes: for each part
    /// its offset, how many elements of how many words it has, and what is said from which word on. `{}` is the word
    /// as a number. Words that are not here are padding.
    const MEANINGS: &[(usize, usize, usize, Meanings)] = &[
        (
            0,
            1,
            64,
            &[
                (0, "magic: \""),
                (1, "format version: {}"),
                (2, "header size: {}"),
                (3, "file size: {}"),
                (4, "max_engines: {}"),
                (5, "max_frontends: {}"),
                (6, "lanes: {}"),
                (7, "engines at creation: {}"),
                (8, "mode: "),
                (9, "padding"),
                (63, "checksum: {}"),
            ],
        ),
        (
            512,
            1,
            48,
            &[
                (0, "anonymous tags: {}"),
                (1, "padding"),
                (16, "sequence: publication "),
                (17, "padding"),
                (
                    32,
                    "hints: {} engine slots in use, the table has no cap, version 0",
                ),
                (33, "arrivals: {} engines ever put into slots"),
                (34, "publisher's pid: {}"),
                (35, "changer's pid: {}"),
                (36, "deployment's pid: {}"),
                (37, "total max_in_flight: {}"),
                (38, "total max_tokens: {}"),
                (39, "configured engines: fingerprint {}"),
                (40, "configured max_in_flight: "),
                (41, "configured max_tokens: "),
                (42, "padding"),
            ],
        ),
        (
            896,
            1,
            32,
            &[
                (0, "max_waiting: {}"),
                (1, "max_waiting of class: class 0: {}"),
                (2, "max_waiting of class: class 1: {}"),
                (3, "max_waiting of class: class 2: {}"),
                (4, "max_waiting of class: class 3: {}"),
                (5, "by tokens: tenants share tokens"),
                (6, "padding"),
                (16, "served: class 0: start {}"),
                (17, "served: class 1: start {}"),
                (18, "served: class 2: start {}"),
                (19, "served: class 3: start {}"),
                (20, "slots: {}"),
                (21, "last served at: {} ns of the monotonic clock"),
                (22, "pace: {} ns from one to the next"),
                (23, "reaped at: {} ns of the monotonic clock"),
                (24, "drawn: class 0: start {}"),
                (25, "drawn: class 1: start {}"),
                (26, "drawn: class 2: start {}"),
                (27, "drawn: class 3: start {}"),
                (28, "padding"),
            ],
        ),
        (1152, 512, 1, &[(0, "next start: start {}")]),
        (5248, 21, 1, &[(0, "requests: 0 Removed by 0/{}")]),
        (5504, 21, 1, &[(0, "tokens: 0, version {}")]),
        (5760, 21, 1, &[(0, "limits: weight 0, cap {}")]),
        (6016, 21, 1, &[(0, "max_tokens: {}")]),
        (
            6272,
            2,
            32,
            &[
                (0, "generation: {}"),
                (1, "length of name: {} bytes"),
                (2, "name: \""),
                (31, "admitted before: {} requests"),
            ],
        ),
        (
            6784,
            1,
            8,
            &[
                (0, "slot: "),
                (1, "pid: {}"),
                (2, "since: {} ns after the Unix epoch"),
                (3, "padding"),
            ],
        ),
        (
            6912,
            1,
            48,
            &[
                (0, "tag: class 0, start {}"),
                (14, "wake: {}"),
                (15, "woken at: {} ns of the monotonic clock"),
                (16, "engines: any engine"),
                (30, "padding"),
                (32, "size: {} tokens, since 0 ms"),
                (46, "padding"),
            ],
        ),
        (
            7296,
            1,
            32,
            &[
                (0, "served: {} requests within 1 ms"),
                (1, "served: {} requests within 2.5 ms"),
                (2, "served: {} requests within 5 ms"),
                (3, "served: {} requests within "),
                (14, "served: {} requests within 60000 ms"),
                (15, "served: {} requests later"),
                (16, "waited: {} ns"),
                (17, "refused: {}"),
                (18, "timed out: {}"),
                (19, "cancelled: {}"),
                (20, "padding"),
            ],
        ),
        (
            7552,
            2,
            16,
            &[
                (0, "operation: {}"),
                (1, "intent: none"),
                (2, "change: 0 requests, {} tokens"),
                (3, "total before: {}"),
                (4, "held tokens before: {}"),
                (5, "tokens before: 0, version {}"),
                (6, "padding"),
                (8, "confirmed: {}"),
                (9, "refusals: {} calls refused: engine_requests"),
                (10, "refusals: {} calls refused: engine_tokens"),
                (11, "refusals: {} calls refused: table_requests"),
                (12, "refusals: {} calls refused: table_tokens"),
                (13, "refusals: {} calls refused: unavailable"),
                (14, "padding"),
            ],
        ),
        (
            7808,
            2,
            96,
            &[
                (0, "admitted: row 0: {} requests"),
                (1, "admitted: row 1: {} requests"),
                (2, "admitted: row "),
                (20, "admitted: row 20: {} requests"),
                (21, "padding"),
                (32, "finished: row 0: {} requests"),
                (33, "finished: row 1: {} requests"),
                (34, "finished: row "),
                (52, "finished: row 20: {} requests"),
                (53, "padding"),
                (64, "held: row 0: {} tokens"),
                (65, "held: row 1: {} tokens"),
                (66, "held: row "),
                (84, "held: row 20: {} tokens"),
                (85, "padding"),
            ],
        ),
        (
            9344,
            2,
            16,
            &[
                (0, "witness: lane 1: saw tag {}, lane 2: saw none"),
                (1, "padding"),
            ],
        ),
        (
            9600,
            4,
            12,
            &[
                (0, "published at: {} ns of the monotonic clock"),
                (1, "own words: the publisher's word 0: {}"),
                (2, "own words: the publisher's word 1: {}"),
                (3, "rows: 1 engines"),
                (4, "arrivals: {} engines ever put into slots"),
                (5, "padding"),
                (8, "row: engine 0: PackedEngineStats"),
                (9, "row: engine 0: generation 0, {} in flight"),
                (10, "row: of an earlier publication"),
            ],
        ),
    ];

    #[test]
    fn a_dump_names_each_word() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("table");
        let options = Table::options().engines(2).max_engines(2);
        let table = options.max_frontends(1).threads(1).create(&path).unwrap();
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        let size = table.mapping().layout().size;
        assert_eq!(size, 9984);
        let mut expected: BTreeMap<_, _> = (0..size)
            .step_by(8)
            .map(|at| (at, (at as u64 + 100_000, "padding")))
            .collect();
        for (offset, elements, words, meanings) in MEANINGS {
            for element in 0..*elements {
                for word in 0..*words {
                    let at = offset + (element * words + word) * 8;
                    let (_, means) = meanings.iter().rfind(|(from, _)| *from <= word).unwrap();
                    let value = match *means {
                        "rows: 1 engines" => 1,
                        _ => at as u64 + 100_000,
                    };
                    expected.insert(at, (value, means));
                }
            }
        }
        for (at, (value, _)) in &expected {
            file.write_all_at(&value.to_le_bytes(), *at as u64).unwrap();
        }
        let dump = table.dump().unwrap();
        let lines: BTreeMap<_, _> = dump
            .lines()
            .filter_map(|line| {
                let (at, rest) = line.trim_start().split_once("  [")?;
                let (_, rest) = rest.split_once("]  ")?;
                Some((usize::from_str_radix(at, 16).ok()?, rest))
            })
            .collect();
        assert_eq!(lines.len(), expected.len());
        for (at, (value, means)) in expected {
            let means = means.replace("{}", &value.to_string());
            let start = format!("{value:016x}  {means}");
            assert!(
                lines[&at].starts_with(&start),
                "{}, not {start}",
                lines[&at]
            );
            assert!(!lines[&at].contains('?'), "{}", lines[&at]);
        }
    }

    #[test]
    fn refusals_are_called_the_same_in_the_file_and_in_a_view() {
        use crate::algorithm::record::lane::REFUSED_FOR;
        let names = crate::Refusals::default().by_reason().map(|(name, _)| name);
        assert_eq!(names, REFUSED_FOR);
    }

    #[test]
    fn a_dump_says_what_is_in_a_table() {
        let table = Table::options().engines(2).memfd().unwrap();
        let frontend = table.join().unwrap();
        let _permits = frontend.route_many(3).unwrap();
        let _more = table.join().unwrap().route().unwrap();
        let dump = table.dump().unwrap();
        for said in [
            "magic: \"HEADCNT",
            "2 Active by",
            "taken, joined 1 times",
            "admitted: row 1: 1 requests",
            "lane 1: saw tag",
        ] {
            assert!(dump.contains(said), "{said:?} in {dump}");
        }
    }
}
