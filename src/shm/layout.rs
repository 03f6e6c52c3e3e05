//! The file, byte by byte. Nobody else knows an offset.
//!
//! ```text
//!      0  header       512  fixed at creation, checksummed, read once before mapping
//!    512  control      384  a line of its own for each: rewrites; sequence; hints, eras, publisher
//!   then, each on a 128-byte boundary, with E = max_engines, R = E + 1, S = max_frontends,
//!   L = S * lanes:
//!         words        R * 8    what is in flight: an engine a row, the last row is the table's own
//!         tokens       R * 8    the tokens of the same requests
//!         limits       R * 8    weight and request cap
//!         token caps   R * 8
//!         engines      E * 256  generation and name, and what the slot had admitted before
//!         slots        S * 64   who has joined
//!         lanes        L * 128  the operation that each lane is in
//!         ledgers      L * 4 * R' * 8   what each lane has admitted, has finished, and holds of tokens, and
//!                               what it has seen take effect; R' is R rounded up to 16
//!         publications 4 * (64 + E * 16)   statistics: the last publication and three before it
//! ```
//!
//! All words are 64 bits, little-endian, and are touched atomically only, except for the header.
//!
//! Locks (open-file-description locks on bytes of the file, which have nothing to do with what lies
//! at those bytes): 0 the publisher, 1 the process that changes the list of engines, 2 the deployment, 16 + 4 s the
//! frontend in slot s. A process that reaps slot s, or looks whether it is free, locks the byte after
//! that one as well, in the same call: the length of a lock tells the two apart. No lock of a slot
//! touches the next one's, for the kernel makes adjacent locks of one open file into one.

use crate::algorithm::counter::PLANES;
use crate::algorithm::seqlatch::COPIES;
use crate::algorithm::word::MAX_LANES;

/// The version of this layout.
pub(crate) const VERSION: u32 = 5;
/// The first eight bytes of a table.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"HEADCNT\0");
/// The bytes of the header.
pub(crate) const HEADER_BYTES: usize = 512;
/// The most engines that a table can have.
pub(crate) const MAX_ENGINES: usize = 4096;
/// The longest engine name in bytes.
pub(crate) const MAX_NAME: usize = NAME_WORDS * 8;
/// How many of a frontend's lanes all threads share that have none of their own.
pub(crate) const SHARED_LANES: usize = 1;
/// The words of an engine's name.
pub(crate) const NAME_WORDS: usize = 29;
/// The words of a publication before its first engine.
pub(crate) const PUBLICATION_HEAD: usize = 8;
/// The words of an engine in a publication.
pub(crate) const PUBLICATION_ROW: usize = 2;

/// The byte whose lock makes a process the publisher.
pub(crate) const PUBLISHER_LOCK: u64 = 0;
/// The byte whose lock one needs to change the list of engines.
pub(crate) const ENGINES_LOCK: u64 = 1;
/// The byte whose lock makes a process the deployment.
pub(crate) const DEPLOYMENT_LOCK: u64 = 2;
/// The byte whose lock makes a process the frontend in slot 0.
const FIRST_SLOT_LOCK: u64 = 16;
/// How far the locks of two slots are apart: more than the two bytes that a reaper locks.
const SLOT_LOCK_STRIDE: u64 = 4;

/// The byte whose lock makes a process the frontend in `slot`.
pub(crate) fn slot_lock(slot: usize) -> u64 {
    FIRST_SLOT_LOCK + SLOT_LOCK_STRIDE * slot as u64
}
/// From here on, bytes that are locked for moments, to see whether a fork copies the lock.
pub(crate) const FIRST_CANARY_LOCK: u64 = 1 << 40;

const LINE: usize = 128;

/// The sizes from which every offset follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Geometry {
    pub(crate) max_engines: usize,
    pub(crate) max_frontends: usize,
    pub(crate) lanes: usize,
}

/// A size that cannot be: which, its value, and what it may be.
#[derive(Debug)]
pub(crate) struct Absurd {
    pub(crate) field: &'static str,
    pub(crate) found: u64,
    pub(crate) expected: String,
}

impl Geometry {
    pub(crate) fn check(&self) -> Result<(), Absurd> {
        let within = |field, found: usize, most: usize| {
            if (1..=most).contains(&found) {
                return Ok(());
            }
            Err(Absurd {
                field,
                found: found as u64,
                expected: format!("1 to {most}"),
            })
        };
        within("max_engines", self.max_engines, MAX_ENGINES)?;
        within("max_frontends", self.max_frontends, MAX_LANES)?;
        let most_lanes = MAX_LANES / self.max_frontends;
        within("lanes", self.lanes, most_lanes).map_err(|absurd| Absurd {
            expected: format!(
                "{}, for {} frontends and {MAX_LANES} lanes in all",
                absurd.expected, self.max_frontends
            ),
            ..absurd
        })
    }

    pub(crate) fn rows(&self) -> usize {
        self.max_engines + 1
    }

    pub(crate) fn all_lanes(&self) -> usize {
        self.max_frontends * self.lanes
    }

    /// How far two planes of the ledgers are apart, in words: no two lanes write to one line.
    pub(crate) fn plane_stride(&self) -> usize {
        self.rows().next_multiple_of(LINE / 8)
    }
}

/// Where a part of the file lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Section {
    /// In bytes from the start of the file.
    pub(crate) offset: usize,
    /// How many elements.
    pub(crate) count: usize,
}

/// Where everything lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    pub(crate) geometry: Geometry,
    pub(crate) control: Section,
    pub(crate) words: Section,
    pub(crate) tokens: Section,
    pub(crate) limits: Section,
    pub(crate) token_caps: Section,
    pub(crate) engines: Section,
    pub(crate) slots: Section,
    pub(crate) lanes: Section,
    pub(crate) ledgers: Section,
    pub(crate) publications: Section,
    /// The bytes of the whole file.
    pub(crate) size: usize,
}

impl Layout {
    /// The layout of a checked geometry.
    pub(crate) fn of(geometry: Geometry) -> Self {
        let mut end = HEADER_BYTES;
        let mut section = |count: usize, bytes: usize| {
            let offset = end.next_multiple_of(LINE);
            end = offset + count * bytes;
            Section { offset, count }
        };
        let rows = geometry.rows();
        let publication = PUBLICATION_HEAD + geometry.max_engines * PUBLICATION_ROW;
        let planes = geometry.all_lanes() * PLANES;
        Self {
            geometry,
            control: section(1, 3 * LINE),
            words: section(rows, 8),
            tokens: section(rows, 8),
            limits: section(rows, 8),
            token_caps: section(rows, 8),
            engines: section(geometry.max_engines, 256),
            slots: section(geometry.max_frontends, 64),
            lanes: section(geometry.all_lanes(), 128),
            ledgers: section(planes * geometry.plane_stride(), 8),
            publications: section(COPIES * publication, 8),
            size: end.next_multiple_of(LINE),
        }
    }
}

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

const HEADER_WORDS: usize = HEADER_BYTES / 8;
const CHECKSUM_AT: usize = HEADER_WORDS - 1;

impl Header {
    /// The bytes of this header: nine words that say something, zeros, and the checksum.
    pub(crate) fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut words = [0; HEADER_WORDS];
        words[..9].copy_from_slice(&[
            MAGIC,
            VERSION.into(),
            HEADER_BYTES as u64,
            Layout::of(self.geometry).size as u64,
            self.geometry.max_engines as u64,
            self.geometry.max_frontends as u64,
            self.geometry.lanes as u64,
            self.engines as u64,
            self.mode.into(),
        ]);
        words[CHECKSUM_AT] = checksum(&words[..CHECKSUM_AT]);
        let mut bytes = [0; HEADER_BYTES];
        for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Reads a header; whatever the bytes are, this returns.
    pub(crate) fn from_bytes(bytes: &[u8; HEADER_BYTES]) -> Result<Self, BadHeader> {
        let (chunks, _) = bytes.as_chunks::<8>();
        let mut words = [0; HEADER_WORDS];
        for (word, chunk) in words.iter_mut().zip(chunks) {
            *word = u64::from_le_bytes(*chunk);
        }
        if words[0] != MAGIC {
            return Err(BadHeader::Magic(words[0]));
        }
        if words[1] != u64::from(VERSION) {
            return Err(BadHeader::Version(words[1] as u32));
        }
        let (found, expected) = (words[CHECKSUM_AT], checksum(&words[..CHECKSUM_AT]));
        if found != expected {
            return Err(BadHeader::Checksum { found, expected });
        }
        // A checksum can be forged, so what it covers is checked all the same.
        let size = |at: usize| usize::try_from(words[at]).unwrap_or(usize::MAX);
        let geometry = Geometry {
            max_engines: size(4),
            max_frontends: size(5),
            lanes: size(6),
        };
        geometry.check().map_err(BadHeader::Absurd)?;
        let layout = Layout::of(geometry);
        let absurd = |field, at: usize, expected: String| {
            BadHeader::Absurd(Absurd {
                field,
                found: words[at],
                expected,
            })
        };
        if words[2] != HEADER_BYTES as u64 {
            return Err(absurd("header size", 2, HEADER_BYTES.to_string()));
        }
        if words[3] != layout.size as u64 {
            return Err(absurd("size", 3, layout.size.to_string()));
        }
        if size(7) > geometry.max_engines {
            return Err(absurd(
                "engines",
                7,
                format!("0 to {}", geometry.max_engines),
            ));
        }
        Ok(Self {
            geometry,
            engines: size(7),
            mode: u32::try_from(words[8])
                .ok()
                .filter(|mode| *mode <= 0o777)
                .ok_or_else(|| absurd("mode", 8, "0 to 0777 (octal)".to_owned()))?,
        })
    }
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
        assert_eq!(Header::from_bytes(&good).unwrap(), header(8, 64, 4));
        for bit in 0..HEADER_BYTES * 8 {
            let mut bad = good;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(Header::from_bytes(&bad).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn f2_a_forged_checksum_does_not_make_a_geometry_right() {
        for (engines, frontends, lanes) in [
            (0, 1, 1),
            (4097, 1, 1),
            (1, 0, 1),
            (1, 4096, 1),
            (1, 2048, 2),
            (1, 1, 0),
            (usize::MAX / 2, 1, 1),
        ] {
            // Written by hand, since `to_bytes` would have to lay such a table out.
            let mut bytes = header(1, 1, 1).to_bytes();
            for (at, value) in [(4, engines), (5, frontends), (6, lanes)] {
                bytes[at * 8..][..8].copy_from_slice(&(value as u64).to_le_bytes());
            }
            let words: Vec<u64> = bytes
                .chunks_exact(8)
                .map(|chunk| u64::from_le_bytes(chunk.try_into().unwrap()))
                .collect();
            bytes[CHECKSUM_AT * 8..]
                .copy_from_slice(&checksum(&words[..CHECKSUM_AT]).to_le_bytes());
            let read = Header::from_bytes(&bytes);
            assert!(matches!(read, Err(BadHeader::Absurd(_))), "{read:?}");
        }
    }

    proptest! {
        #[test]
        fn f2_no_header_bytes_panic(bytes in prop::collection::vec(any::<u8>(), HEADER_BYTES), keep in 0..HEADER_BYTES) {
            let mut header = header(8, 64, 4).to_bytes();
            header[keep..].copy_from_slice(&bytes[keep..]);
            let _ = Header::from_bytes(&header);
        }

        #[test]
        fn sections_do_not_overlap(engines in 1..=MAX_ENGINES, frontends in 1..=1024_usize, lanes in 1..=3_usize) {
            let layout = Layout::of(Geometry { max_engines: engines, max_frontends: frontends, lanes });
            let sections = [
                (layout.control, 384), (layout.words, 8), (layout.tokens, 8), (layout.limits, 8),
                (layout.token_caps, 8), (layout.engines, 256), (layout.slots, 64),
                (layout.lanes, 128), (layout.ledgers, 8), (layout.publications, 8),
            ];
            let mut end = HEADER_BYTES;
            for (section, bytes) in sections {
                prop_assert!(section.offset >= end && section.offset % LINE == 0);
                end = section.offset + section.count * bytes;
            }
            prop_assert!(layout.size >= end);
        }
    }
}
