//! Damage to the file of a table, at offsets that its dump tells.

use headcount::Table;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A table's file that is open to be damaged.
#[derive(Debug)]
pub struct Damage {
    file: File,
    dump: String,
}

/// A part of the file.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    offset: u64,
    element: u64,
}

impl Part {
    /// Where the n-th word of an element lies.
    fn place(self, index: u64, n: u64) -> u64 {
        self.offset + index * self.element + n * 8
    }
}

impl Damage {
    /// Opens the file of a table.
    pub fn to(table: &Table, path: &Path) -> Self {
        let file = OpenOptions::new().read(true).write(true).open(path);
        Self {
            file: file.expect("opens the table's file"),
            dump: table.dump().expect("dumps the table"),
        }
    }

    /// The part of that name, as in "words at 0x380: 65 of 8 bytes".
    pub fn part(&self, name: &str) -> Part {
        let head = format!("{name} at 0x");
        let mut lines = self.dump.lines();
        let line = lines.find_map(|line| line.strip_prefix(&head));
        let line = line.unwrap_or_else(|| panic!("the dump has {name}"));
        let (offset, rest) = line.split_once(": ").expect("an offset");
        let element = rest.split(' ').nth(2).expect("the bytes of an element");
        Part {
            offset: u64::from_str_radix(offset, 16).expect("a hexadecimal offset"),
            element: element.parse().expect("a number of bytes"),
        }
    }

    /// The n-th word of an element.
    pub fn word(&self, part: &str, index: u64, n: u64) -> u64 {
        self.at(self.part(part).place(index, n))
    }

    /// Changes the n-th word of an element.
    pub fn change(&self, part: &str, index: u64, n: u64, change: impl FnOnce(u64) -> u64) {
        let at = self.part(part).place(index, n);
        let changed = change(self.at(at)).to_le_bytes();
        self.file.write_all_at(&changed, at).expect("writes");
    }

    fn at(&self, at: u64) -> u64 {
        let mut word = [0; 8];
        self.file.read_exact_at(&mut word, at).expect("reads");
        u64::from_le_bytes(word)
    }

    /// The file itself.
    pub fn file(&self) -> &File {
        &self.file
    }
}
