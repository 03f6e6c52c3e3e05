//! The header: what a table was created with. It never changes, and a process checks it before it maps the file.
//!
//! ```text
//!  word
//!     0  magic                "HEADCNT\0"
//!     1  format version       0 (32) | version 32
//!     2  header size          bytes 64
//!     3  file size            bytes 64
//!     4  max_engines          0 (51) | engines 13
//!     5  max_frontends        0 (52) | frontends 12
//!     6  lanes                0 (52) | lanes 12
//!     7  engines at creation  0 (51) | engines 13
//!     8  mode                 0 (55) | permission bits 9
//!  9-62  padding
//!    63  checksum             FNV-1a of the words before it 64
//! ```

use super::{Absurd, Geometry, Layout};
use crate::algorithm::record::{Field, fields};
use bytemuck::{Pod, Zeroable};

/// The version of the layout.
pub(crate) const VERSION: u32 = 8;
/// The first eight bytes of a table.
const MAGIC: u64 = u64::from_le_bytes(*b"HEADCNT\0");
/// The bytes of the header.
pub(crate) const HEADER_BYTES: usize = size_of::<HeaderRecord>();

/// The header as it lies in the file, with any values. Its words are little-endian, as those of this machine are.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct HeaderRecord {
    magic: u64,
    version: u64,
    header_size: u64,
    file_size: u64,
    max_engines: u64,
    max_frontends: u64,
    lanes: u64,
    engines: u64,
    mode: u64,
    _unused: [u64; 54],
    checksum: u64,
}

const _: () = assert!(HEADER_BYTES == 512);

/// What a table was created with: the part of the file that never changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Header {
    pub(crate) geometry: Geometry,
    /// How many engines it was created with.
    pub(crate) engines: usize,
    /// Permission bits.
    pub(crate) mode: u32,
}

/// What is wrong with a header.
#[derive(Debug)]
pub(crate) enum BadHeader {
    Magic(u64),
    Version(u32),
    Checksum { found: u64, expected: u64 },
    Absurd(Absurd),
}

impl HeaderRecord {
    pub(crate) const FIELDS: [Field; 11] = fields!(HeaderRecord {
        magic: [Field::new("magic", |found| {
            format!("\"{}\"", found.word.to_le_bytes().escape_ascii())
        })],
        version: [Field::number("format version").of_bits(32)],
        header_size: [Field::number("header size")],
        file_size: [Field::number("file size")],
        max_engines: [Field::number("max_engines").of_bits(13)],
        max_frontends: [Field::number("max_frontends").of_bits(12)],
        lanes: [Field::number("lanes").of_bits(12)],
        engines: [Field::number("engines at creation").of_bits(13)],
        mode: [Field::new("mode", |found| format!("{:04o}", found.word)).of_bits(9)],
        _unused: [Field::padding(54)],
        checksum: [Field::number("checksum")],
    });

    /// Reads a header without a look at what it says.
    pub(crate) fn parse_unchecked(bytes: [u8; HEADER_BYTES]) -> Self {
        bytemuck::cast(bytes)
    }

    /// Returns what the header says if all of it is right.
    pub(crate) fn check(&self) -> Result<Header, BadHeader> {
        if self.magic != MAGIC {
            return Err(BadHeader::Magic(self.magic));
        }
        if self.version != u64::from(VERSION) {
            return Err(BadHeader::Version(self.version as u32));
        }
        let (found, expected) = (self.checksum, self.computed_checksum());
        if found != expected {
            return Err(BadHeader::Checksum { found, expected });
        }
        // A checksum can be forged, so what it covers is checked all the same.
        let geometry = self.geometry();
        geometry.check().map_err(BadHeader::Absurd)?;
        let absurd = |field, found, expected| {
            BadHeader::Absurd(Absurd {
                field,
                found,
                expected,
            })
        };
        let size = Layout::of(geometry).size as u64;
        for (field, found, expected) in [
            ("header size", self.header_size, HEADER_BYTES as u64),
            ("size", self.file_size, size),
        ] {
            if found != expected {
                return Err(absurd(field, found, expected.to_string()));
            }
        }
        if number(self.engines) > geometry.max_engines {
            let expected = format!("0 to {}", geometry.max_engines);
            return Err(absurd("engines", self.engines, expected));
        }
        let mode = u32::try_from(self.mode).ok().filter(|mode| *mode <= 0o777);
        Ok(Header {
            geometry,
            engines: number(self.engines),
            mode: mode.ok_or_else(|| absurd("mode", self.mode, "0 to 0777 (octal)".to_owned()))?,
        })
    }

    /// Whether it is likely to be the header of a table, one that may be damaged.
    pub(crate) fn is_like_a_table(&self) -> bool {
        self.magic == MAGIC || self.header_size == HEADER_BYTES as u64
    }

    /// Returns where things lie in a file of `size` bytes, if the header says what the file can have.
    pub(crate) fn layout_of_file(&self, size: u64) -> Option<Layout> {
        let geometry = self.geometry();
        geometry.check().ok()?;
        let layout = Layout::of(geometry);
        [self.file_size, size]
            .contains(&(layout.size as u64))
            .then_some(layout)
    }

    fn geometry(&self) -> Geometry {
        Geometry {
            max_engines: number(self.max_engines),
            max_frontends: number(self.max_frontends),
            lanes: number(self.lanes),
        }
    }

    fn computed_checksum(&self) -> u64 {
        let words: [u64; HEADER_BYTES / 8] = bytemuck::cast(*self);
        let (_checksum, covered) = words.split_last().expect("a header has words");
        checksum(covered)
    }
}

impl Header {
    /// Reads and checks a header. Any bytes may be given.
    pub(crate) fn parse(bytes: [u8; HEADER_BYTES]) -> Result<Self, BadHeader> {
        HeaderRecord::parse_unchecked(bytes).check()
    }

    pub(crate) fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut record = HeaderRecord {
            magic: MAGIC,
            version: VERSION.into(),
            header_size: HEADER_BYTES as u64,
            file_size: Layout::of(self.geometry).size as u64,
            max_engines: self.geometry.max_engines as u64,
            max_frontends: self.geometry.max_frontends as u64,
            lanes: self.geometry.lanes as u64,
            engines: self.engines as u64,
            mode: self.mode.into(),
            ..Zeroable::zeroed()
        };
        record.checksum = record.computed_checksum();
        bytemuck::cast(record)
    }
}

/// A number that is too large for this machine is too large for each check, too.
fn number(word: u64) -> usize {
    usize::try_from(word).unwrap_or(usize::MAX)
}

/// FNV-1a over 64-bit words: each step is a bijection of the state, so no single changed word goes
/// unnoticed. It guards against accidents, not against people.
pub(crate) fn checksum(words: &[u64]) -> u64 {
    words.iter().fold(0xcbf2_9ce4_8422_2325, |state, word| {
        (state ^ word).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header(engines: usize, frontends: usize, lanes: usize) -> Header {
        Header {
            geometry: Geometry {
                max_engines: engines,
                max_frontends: frontends,
                lanes,
            },
            engines: engines.min(4),
            mode: 0o600,
        }
    }

    #[test]
    fn f2_any_flipped_bit_in_the_header_is_noticed() {
        let good = header(8, 64, 4).to_bytes();
        assert_eq!(Header::parse(good).unwrap(), header(8, 64, 4));
        for bit in 0..HEADER_BYTES * 8 {
            let mut bad = good;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(Header::parse(bad).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn f2_a_forged_checksum_does_not_make_a_header_right() {
        let good = HeaderRecord::parse_unchecked(header(8, 64, 4).to_bytes());
        let forged = |forge: &dyn Fn(&mut HeaderRecord)| {
            let mut record = good;
            forge(&mut record);
            record.checksum = record.computed_checksum();
            record.check()
        };
        forged(&|_| {}).unwrap();
        for (engines, frontends, lanes) in [
            (0, 1, 1),
            (4097, 1, 1),
            (1, 0, 1),
            (1, 4096, 1),
            (1, 2048, 2),
            (1, 1, 0),
            (u64::MAX / 2, 1, 1),
        ] {
            let read = forged(&|record| {
                (record.max_engines, record.max_frontends, record.lanes) =
                    (engines, frontends, lanes);
            });
            assert!(matches!(read, Err(BadHeader::Absurd(_))), "{read:?}");
        }
        let others: [&dyn Fn(&mut HeaderRecord); 4] = [
            &|record| record.header_size += 8,
            &|record| record.file_size += 1,
            &|record| record.engines = 9,
            &|record| record.mode = 0o1000,
        ];
        for forge in others {
            let read = forged(forge);
            assert!(matches!(read, Err(BadHeader::Absurd(_))), "{read:?}");
        }
    }

    proptest! {
        #[test]
        fn f2_no_header_bytes_panic(bytes in prop::collection::vec(any::<u8>(), HEADER_BYTES), keep in 0..HEADER_BYTES) {
            let mut header = header(8, 64, 4).to_bytes();
            header[keep..].copy_from_slice(&bytes[keep..]);
            let _ = Header::parse(header);
        }
    }
}
