//! The file of a table that cannot be opened, as far as it can be read: for bug reports.

use crate::error::{Error, Result};
use crate::inspect::dump;
use crate::inspect::read::{read_at, words};
use crate::shm::layout::{HEADER_BYTES, HeaderRecord, Part};
use crate::shm::open_to_read;
use crate::table::options::Options;
use std::fmt::Write;
use std::fs::File;
use std::io;
use std::path::Path;

/// Larger than any table; the rest of a longer file is not printed.
const MOST: u64 = 1 << 30;

impl Options {
    /// Returns what can be read of a file that [`open_read_only`](Self::open_read_only) refuses because it is
    /// damaged: word by word, as [`Table::dump`](crate::Table::dump) shows a table that can be
    /// opened. For a bug report.
    ///
    /// Where things lie follows from the header. If the header agrees neither with itself nor with the size of the
    /// file, the words after it are shown without their fields. Words that are zero are left out. Nothing is mapped,
    /// so the file may change or shrink meanwhile.
    ///
    /// Takes some 100 bytes of memory for each word that is not zero, of the first GiB of the file.
    ///
    /// # Errors
    /// [`Error::NotATable`] also for a file that does not begin as a table does;
    /// [`Error::NotFound`], [`Error::Symlink`], [`Error::Owner`], [`Error::Io`].
    pub fn dump_unopenable(&self, path: impl AsRef<Path>) -> Result<String> {
        let path = path.as_ref();
        let (file, size) = open_to_read(path, self.allows_any_owner())?;
        write(&file, size)
            .map_err(|source| Error::Io {
                doing: "reading",
                path: path.into(),
                source,
            })?
            .ok_or_else(|| Error::NotATable {
                path: path.into(),
                found: "a file that has nothing of a table's header".into(),
            })
    }
}

/// Returns `None` if it does not look like a table.
fn write(file: &File, size: u64) -> io::Result<Option<String>> {
    let mut bytes = [0; HEADER_BYTES];
    read_at(file, &mut bytes, 0)?;
    let header = HeaderRecord::parse_unchecked(bytes);
    if !header.is_like_a_table() {
        return Ok(None);
    }
    let read = |bytes: &mut [u8], offset| read_at(file, bytes, offset);
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{size} bytes, which cannot be opened");
    match header.layout_of_file(size) {
        Some(layout) => {
            for part in layout.parts() {
                if !dump::write(&mut out, &part, read)? {
                    let _ = writeln!(out, "\nthe file ends here, of {} bytes", layout.size);
                    break;
                }
            }
        }
        None => {
            dump::write(&mut out, &Part::header(), read)?;
            let _ = writeln!(out, "\nwords whose meaning does not follow from the header");
            write_unexplained(&mut out, file)?;
        }
    }
    Ok(Some(out))
}

/// Writes the words after the header, each with its place alone.
fn write_unexplained(out: &mut String, file: &File) -> io::Result<()> {
    let mut piece = vec![0; 1 << 16];
    let mut offset = HEADER_BYTES as u64;
    while offset < MOST {
        let there = read_at(file, &mut piece, offset)?;
        for (at, word) in (offset..).step_by(8).zip(words(&piece[..there])) {
            if word != 0 {
                let _ = writeln!(out, "{at:8x}       {word:016x}");
            }
        }
        if there < piece.len() {
            break;
        }
        offset += there as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Table;
    use std::os::unix::fs::FileExt;

    /// A table of two engines in a file of its own, of which each case damages something.
    fn damaged(damage: impl FnOnce(&File)) -> String {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("table");
        Table::options().engines(2).create(&path).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        damage(&file);
        Table::open(&path).unwrap_err();
        Table::options().dump_unopenable(&path).unwrap()
    }

    #[test]
    fn what_the_header_still_says_is_believed_if_it_agrees() {
        for word in [0, 1, 2, 7, 11, 63] {
            let dump = damaged(|file| file.write_all_at(&[7; 8], word * 8).unwrap());
            assert!(dump.contains("0707070707070707"), "{dump}");
            assert!(
                dump.contains("length of name: 1 bytes"),
                "word {word}: {dump}"
            );
        }
        // Between the words of the engines and their names.
        let cut = damaged(|file| file.set_len(8192).unwrap());
        assert!(cut.contains("0 Active"), "{cut}");
        assert!(cut.contains("the file ends here"), "{cut}");
    }

    #[test]
    fn a_geometry_that_is_not_the_file_s_explains_nothing() {
        let dump = damaged(|file| file.write_all_at(&[1, 0, 0, 0, 0, 0, 0, 0], 32).unwrap());
        assert!(dump.contains("max_engines: 1\n"), "{dump}");
        assert!(!dump.contains("length of name"), "{dump}");
        assert!(
            dump.contains("0000000000000031\n"),
            "the name \"1\": {dump}"
        );
    }
}
