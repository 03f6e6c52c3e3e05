//! The file word by word, each with what it means: for bug reports.

mod unopenable;

use crate::algorithm::counter::PLANES;
use crate::algorithm::registry::SlotWord;
use crate::algorithm::rows::{Limits, ScanHints};
use crate::algorithm::word::{Amount, Intent, TokenWord, Witness, Word};
use crate::error::Result;
use crate::publication::record::{Origin, PackedEngineStats};
use crate::shm::is_locked;
use crate::shm::layout::{
    DEPLOYMENT_LOCK, HEADER_BYTES, Layout, PUBLICATION_HEAD, PUBLICATION_ROW, PUBLISHER_LOCK,
    Section,
};
use crate::table::Table;
use crate::table::refusals::Refusals;
use std::fmt::Write;
use std::io;
use std::os::fd::AsFd;

/// A part of the file, and how to read it.
pub(crate) struct Part {
    name: &'static str,
    section: Section,
    /// Words of an element.
    words: usize,
    means: Meaning,
}

/// What the n-th of an element's words means.
type Meaning = Box<dyn Fn(&[u64], usize) -> String>;

impl Table {
    /// The file word by word, each with what it means; words that are zero are left out. For a bug
    /// report.
    ///
    /// The words are read one after the other, so those of a table that is in use may be of different
    /// moments. Reads only and disturbs nobody. Some 100 bytes for each word that is not zero.
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
        for part in parts(layout) {
            write(&mut out, &part, read).map_err(|e| self.failed("reading", e))?;
        }
        Ok(out)
    }
}

/// Reads what there is of so many bytes; fewer only where the file ends.
pub(crate) fn read_at(file: impl AsFd, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < bytes.len() {
        match rustix::io::pread(&file, &mut bytes[done..], offset + done as u64)? {
            0 => break,
            read => done += read,
        }
    }
    Ok(done)
}

/// Writes the words of a part that are not zero. Says whether all of it was there.
pub(crate) fn write(
    out: &mut String,
    part: &Part,
    read: impl Fn(&mut [u8], u64) -> io::Result<usize>,
) -> io::Result<bool> {
    let bytes = part.words * 8;
    let section = part.section;
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "\n{} at {:#x}: {} of {bytes} bytes",
        part.name, section.offset, section.count
    );
    let mut element = vec![0; bytes];
    for index in 0..section.count {
        let offset = section.offset + index * bytes;
        element.fill(0);
        let there = read(&mut element, offset as u64)?;
        let (chunks, _) = element.as_chunks::<8>();
        let words: Vec<_> = chunks.iter().map(|c| u64::from_le_bytes(*c)).collect();
        for (n, &word) in words.iter().enumerate() {
            if word != 0 {
                let at = offset + n * 8;
                let means = (part.means)(&words, n);
                let _ = writeln!(out, "{at:8x}  [{index}]  {word:016x}  {means}");
            }
        }
        if there < bytes {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What a table of this layout consists of, in the order of the file.
pub(crate) fn parts(layout: &Layout) -> [Part; 11] {
    fn part(
        name: &'static str,
        section: Section,
        words: usize,
        means: impl Fn(usize, u64) -> String + 'static,
    ) -> Part {
        let means = Box::new(move |words: &[u64], n: usize| means(n, words[n]));
        Part {
            name,
            section,
            words,
            means,
        }
    }
    let of_words = |section: Section, words: usize| Section {
        count: section.count / words,
        ..section
    };
    let publication = PUBLICATION_HEAD + layout.geometry.max_engines * PUBLICATION_ROW;
    let stride = layout.geometry.plane_stride();
    let ledger = PLANES * stride;
    [
        header(),
        part("control", layout.control, 48, in_the_control),
        part("words", layout.words, 1, |_, word| {
            format!("{:?}", bytemuck::cast::<u64, Word>(word))
        }),
        part("tokens", layout.tokens, 1, |_, word| {
            let tokens = bytemuck::cast::<u64, TokenWord>(word).tokens();
            format!("{tokens} tokens, version {}", word as u32)
        }),
        part("limits", layout.limits, 1, |_, word| {
            let limits = bytemuck::cast::<u64, Limits>(word);
            format!("weight {}, cap {}", limits.weight(), limits.max_in_flight())
        }),
        part("token caps", layout.token_caps, 1, |_, word| {
            word.to_string()
        }),
        part("engines", layout.engines, 32, in_an_engine),
        part("slots", layout.slots, 8, in_a_slot),
        part("lanes", layout.lanes, 16, in_a_lane),
        part(
            "ledgers",
            of_words(layout.ledgers, ledger),
            ledger,
            move |n, word| in_a_ledger(n / stride, n % stride, word),
        ),
        Part {
            name: "publications",
            section: of_words(layout.publications, publication),
            words: publication,
            means: Box::new(in_a_publication),
        },
    ]
}

/// The part whose place is the same in all layouts.
pub(crate) fn header() -> Part {
    Part {
        name: "header",
        section: Section {
            offset: 0,
            count: 1,
        },
        words: HEADER_BYTES / 8,
        means: Box::new(|words, n| in_the_header(n, words[n])),
    }
}

fn in_the_header(n: usize, word: u64) -> String {
    let name = match n {
        0 => return format!("magic \"{}\"", word.to_le_bytes().escape_ascii()),
        1 => "format version",
        2 => "header size",
        3 => "file size",
        4 => "max_engines",
        5 => "max_frontends",
        6 => "lanes",
        7 => "engines at creation",
        8 => return format!("mode {word:04o}"),
        63 => return "checksum".to_owned(),
        _ => "?",
    };
    format!("{name} {word}")
}

fn in_the_control(n: usize, word: u64) -> String {
    let name = match n {
        0 => "anonymous tags",
        16 => {
            let pressure = if word & 1 == 1 {
                ", under pressure"
            } else {
                ""
            };
            return format!("sequence of the last publication {}{pressure}", word >> 1);
        }
        32 => {
            let hints = bytemuck::cast::<u64, ScanHints>(word);
            let weights = match hints.weights_differ() {
                true => "weights that differ",
                false => "equal weights",
            };
            let caps = if hints.any_cap() { "caps" } else { "no cap" };
            let (in_use, version) = (hints.in_use(), hints.version());
            let total = match hints.has_total_cap() {
                true => "the table has a cap",
                false => "the table has no cap",
            };
            return format!(
                "engine slots in use {in_use}, {weights}, {caps}, {total}, version {version}"
            );
        }
        33 => "engines ever put into slots",
        34 => "eras begun",
        35 => "publisher's pid",
        36 => "engine changer's pid",
        37 => "deployment's pid",
        38 if word == u64::MAX => return "max_in_flight of the table: none".to_owned(),
        39 if word == u64::MAX => return "max_tokens of the table: none".to_owned(),
        38 => "max_in_flight of the table",
        39 => "max_tokens of the table",
        40 => "configured engines, as a number that stands for them,",
        41 if word == u64::MAX => return "configured max_in_flight of the table: none".to_owned(),
        42 if word == u64::MAX => return "configured max_tokens of the table: none".to_owned(),
        41 => return format!("configured max_in_flight of the table {}", word - 1),
        42 => return format!("configured max_tokens of the table {}", word - 1),
        _ => "?",
    };
    format!("{name} {word}")
}

fn in_an_engine(n: usize, word: u64) -> String {
    match n {
        0 => format!("generation {word}"),
        1 => format!("name of {word} bytes"),
        31 => format!("{word} requests admitted before this engine"),
        _ => format!("\"{}\"", word.to_le_bytes().escape_ascii()),
    }
}

fn in_a_slot(n: usize, word: u64) -> String {
    match n {
        0 => {
            let slot = bytemuck::cast::<u64, SlotWord>(word);
            let state = match (slot.is_taken(), slot.is_reaping()) {
                (false, false) => "vacant",
                (true, false) => "taken",
                (_, true) => "being reaped",
            };
            format!("{state}, joined {} times", slot.joins())
        }
        1 => format!("pid {word}"),
        2 => format!("joined {word} ns after the Unix epoch"),
        _ => "?".to_owned(),
    }
}

fn in_a_lane(n: usize, word: u64) -> String {
    match n {
        0 => format!("operation {word}"),
        1 => match bytemuck::cast::<u64, Intent>(word).operation() {
            Some((row, tag)) => format!("intent: row {row}, {tag:?}"),
            None => "no intent".to_owned(),
        },
        2 => format!("change {:?}", bytemuck::cast::<u64, Amount>(word)),
        3 => format!("{word} before, of the total it changes"),
        4 => format!("{} tokens held before", word as i64),
        5 => {
            let tokens = bytemuck::cast::<u64, TokenWord>(word).tokens();
            format!("{tokens} tokens before, version {}", word as u32)
        }
        6 => format!("era {word}"),
        8 => format!("confirmed {word}"),
        9..14 => {
            let (reason, _) = Refusals::default().by_reason()[n - 9];
            format!("{word} calls refused: {reason}")
        }
        _ => "?".to_owned(),
    }
}

fn in_a_ledger(plane: usize, row: usize, word: u64) -> String {
    match plane {
        0 => format!("row {row}: {word} requests admitted"),
        1 => format!("row {row}: {word} requests finished"),
        2 => format!("row {row}: {} tokens", word as i64),
        _ => format!("row {row}: {:?}", Witness::from_bits(word)),
    }
}

fn in_a_publication(words: &[u64], n: usize) -> String {
    let (word, rows) = (words[n], words[3] as usize);
    let Some(n) = n.checked_sub(PUBLICATION_HEAD) else {
        return match n {
            0 => format!("published at {word} ns of the monotonic clock"),
            1 | 2 => format!("the publisher's word {}", n - 1),
            3 => format!("{word} engines"),
            4 => format!("{word} engines ever put into slots"),
            _ => "?".to_owned(),
        };
    };
    if n < rows {
        return format!("engine {n}: {:?}", PackedEngineStats::from_word(word));
    }
    // What lies beyond is of an earlier and longer publication.
    match n - rows {
        engine if engine < rows => format!("engine {engine}: {:?}", Origin::from_word(word)),
        _ => "?".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shm::layout::{Geometry, Layout};

    #[test]
    fn every_byte_between_the_parts_is_padding() {
        let geometry = Geometry {
            max_engines: 5,
            max_frontends: 3,
            lanes: 2,
        };
        let layout = Layout::of(geometry);
        let mut end = 0;
        for part in parts(&layout) {
            assert_eq!(part.section.offset, end, "{}", part.name);
            end = part.section.offset + part.section.count * part.words * 8;
            end = end.next_multiple_of(128);
        }
        assert_eq!(end, layout.size);
    }

    #[test]
    fn a_dump_says_what_is_in_a_table() {
        let table = Table::options().engines(2).memfd().unwrap();
        let frontend = table.join().unwrap();
        let _permits = frontend.route_many(3).unwrap();
        let _more = table.join().unwrap().route().unwrap();
        let dump = table.dump().unwrap();
        for said in [
            "magic \"HEADCNT",
            "2 Active by",
            "taken, joined 1 times",
            "row 1: 1 requests admitted",
            "row 1: saw 1/",
        ] {
            assert!(dump.contains(said), "{said:?} in {dump}");
        }
    }
}
