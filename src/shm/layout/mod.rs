//! The file, word by word. This module and the records that it names are the only ones that know an offset.
//!
//! With E = `max_engines`, Q = E + 1 rounded up to 16, R = Q + 5, S = `max_frontends`, L = S * `lanes`, R' = R rounded up to 16, and L' = L
//! rounded up to 32. All words have 64 bits and are little-endian. The bits of a word are listed from the most significant one, with widths.
//!
//! ```text
//!  part          elements of bytes      word  field                 bits
//!
//!  header        1 of 512                  0  magic                 "HEADCNT\0"
//!                                          1  format version        0 (32) | version 32
//!                                          2  header size           bytes 64
//!                                          3  file size             bytes 64
//!                                          4  max_engines           0 (51) | engines 13
//!                                          5  max_frontends         0 (52) | frontends 12
//!                                          6  lanes                 0 (52) | lanes 12
//!                                          7  engines at creation   0 (51) | engines 13
//!                                          8  mode                  0 (55) | permission bits 9
//!                                       9-62  padding
//!                                         63  checksum              FNV-1a of the words before it 64
//!
//!  control       1 of 384                  0  anonymous tags        count 64
//!                                       1-15  padding
//!                                         16  sequence              publication 63 | under pressure 1
//!                                      17-31  padding
//!                                         32  hints                 version 30 | limits are being changed 1 |
//!                                                                   the table has a cap 1 | engine slots in use 32
//!                                         33  arrivals              engines ever put into slots 64
//!                                         34  publisher's pid       0 (32) | pid 32
//!                                         35  changer's pid         0 (32) | pid 32
//!                                         36  deployment's pid      0 (32) | pid 32
//!                                         37  total max_in_flight   0 (32) | cap 32; all ones: none
//!                                         38  total max_tokens      0 (32) | cap 32; all ones: none
//!                                         39  configured engines    fingerprint 64; 0: not known
//!                                         40  configured max_in_flight   cap + 1 64; all ones: none; 0: not known
//!                                         41  configured max_tokens      cap + 1 64; all ones: none; 0: not known
//!                                      42-47  padding
//!
//!  queue         1 of 256                  0  max_waiting           0 (44) | requests, 0 for no queue: 20
//!                                        1-4  max_waiting of class  0 (44) | requests, 0 for no own bound: 20
//!                                          5  by tokens             0 (63) | tenants share tokens 1
//!                                       6-15  padding
//!                                      16-19  served                0 (2) | start 62
//!                                         20  slots                 0 (52) | slots 12
//!                                         21  last served at        ns of the monotonic clock 64
//!                                         22  pace                  ns 64
//!                                         23  reaped at             ns of the monotonic clock 64
//!                                      24-27  drawn                 0 (2) | start 62
//!                                      28-31  padding
//!
//!  tenants       512 of 8                  0  next start            by class without a tenant, then by tenant: 64
//!
//!  words         R of 8                    0  requests              state 2 | value 20 | lane 12 | tokens 1 | tag 29
//!  tokens        R of 8                    0  tokens                tokens 32 | version 32
//!  limits        R of 8                    0  limits                weight, an f32: 32 | 0 (12) | request cap 20
//!  token caps    R of 8                    0  max_tokens            0 (32) | token cap 32
//!
//!  engines       E of 256                  0  generation            engines of this slot times two 63 | changing 1
//!                                          1  length of name        bytes 64
//!                                       2-30  name                  bytes, then zeros
//!                                         31  admitted before       requests 64
//!
//!  slots         S of 64                   0  slot                  joins 62 | being reaped 1 | taken 1
//!                                          1  pid                   0 (32) | pid 32
//!                                          2  since                 ns of the Unix epoch 64
//!                                        3-7  padding
//!
//!  heads         S of 384               0-13  tag                   class 2 | start, 0 for no head: 62
//!                                         14  wake                  count 64
//!                                         15  woken at              ns of the monotonic clock 64
//!                                      16-29  engines               0 (1) | only one 1 | how many 3 | places but one 7 | four engines 52
//!                                      30-31  padding
//!                                      32-45  size                  since, ms of the monotonic clock 32 | tokens 32
//!                                      46-47  padding
//!
//!  waited        S of 256               0-15  served                requests, by how long they waited 64
//!                                         16  waited                ns 64
//!                                         17  refused               requests 64
//!                                         18  timed out             requests 64
//!                                         19  cancelled             requests 64
//!                                      20-31  padding
//!
//!  lanes         L of 128                  0  operation             number 64
//!                                          1  intent                active 1 | 0 (21) | row 13 | tag 29
//!                                          2  change                requests, signed: 24 | tokens, signed: 40
//!                                          3  total before          requests 64
//!                                          4  held tokens before    tokens, signed: 64
//!                                          5  tokens before         tokens 32 | version 32
//!                                        6-7  padding
//!                                          8  confirmed             number 64
//!                                       9-13  refusals              calls, by reason 64
//!                                      14-15  padding
//!
//!  ledgers       L of 24 R'             0 ..  admitted              requests 64: a word for each of R rows
//!                                      R' ..  finished              requests 64: as above
//!                                   2 R' ..  held                  tokens, signed: 64: as above
//!
//!  witnesses     L of 4 L'             0 ..  witness               0 (2) | is there 1 | tag 29 | 0 (2) | is there 1 | tag 29
//!                                 L / 2 ..  padding
//!
//!  publications  4 of 64 + 16 E            0  published at          ns of the monotonic clock 64
//!                                        1-2  own words             64
//!                                          3  rows                  0 (51) | engines 13
//!                                          4  arrivals              engines ever put into slots 64
//!                                        5-7  padding
//!                                       8 ..  row                   waiting 17 | running 17 | KV usage, of an f32: 30
//!                                8 + rows ..                        generation 44 | in flight 20
//! ```
//!
//! Row E is the table's own, and those before it are the engines'. Row Q counts the requests that wait, and the four after
//! it those of each class; the rows between count nothing. Each part starts at a multiple of 128
//! bytes. Padding is zero. All words but those of the header are touched only by atomic operations. Processes also
//! hold locks on bytes of the file, whatever is in these bytes: see [`lock_bytes`].

pub(crate) mod control;
mod engine;
mod header;
mod lock_bytes;
pub(crate) mod publication;

pub(crate) use control::Control;
pub(crate) use engine::{EngineRecord, MAX_NAME};
pub(crate) use header::{BadHeader, HEADER_BYTES, Header, HeaderRecord, VERSION, checksum};
pub(crate) use lock_bytes::{
    DEPLOYMENT_LOCK, ENGINES_LOCK, FIRST_CANARY_LOCK, PUBLISHER_LOCK, slot_lock,
};

use crate::algorithm::queue::TENANTS;
use crate::algorithm::queue::order::CLASSES;
use crate::algorithm::record::heads::HeadsRecord;
use crate::algorithm::record::lane::LaneRecord;
use crate::algorithm::record::ledger::{self, PLANES};
use crate::algorithm::record::queue::QueueRecord;
use crate::algorithm::record::slot::SlotRecord;
use crate::algorithm::record::waited::WaitedRecord;
use crate::algorithm::record::{self, Field, Found};
use crate::algorithm::rows::{Limits, TOKEN_CAP};
use crate::algorithm::seqlatch::COPIES;
use crate::algorithm::word::{MAX_LANES, TokenWord, Word, witness_fields};
use publication::{HEAD_WORDS, ROW_WORDS};

/// The most engines that a table can have.
pub(crate) const MAX_ENGINES: usize = 4096;

/// How many of a frontend's lanes all threads share that have none of their own.
pub(crate) const SHARED_LANES: usize = 1;

/// When the next request of a tenant would be served.
const TENANT: Field = Field::new("next start", |found| format!("start {}", found.word));

/// Bytes that processors fetch together: two cache lines.
const LINE: usize = 128;

/// The sizes from which every offset follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Geometry {
    pub(crate) max_engines: usize,
    pub(crate) max_frontends: usize,
    pub(crate) lanes: usize,
}

/// A value that a header cannot have.
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

    /// Returns the table's own row. Those before it are the engines'.
    pub(crate) fn total_row(&self) -> usize {
        self.max_engines
    }

    /// Returns the first of the queue's rows, which are the last ones: of all that wait, and of each class. They begin a
    /// line, which no process writes while no request waits.
    pub(crate) fn queue_row(&self) -> usize {
        (self.total_row() + 1).next_multiple_of(LINE / 8)
    }

    fn rows(&self) -> usize {
        self.queue_row() + 1 + CLASSES
    }

    fn all_lanes(&self) -> usize {
        self.max_frontends * self.lanes
    }

    /// How far two planes of the ledgers are apart, in words: no two lanes write to one line.
    pub(crate) fn plane_stride(&self) -> usize {
        self.rows().next_multiple_of(LINE / 8)
    }

    /// How far the witnesses of two lanes are apart, in halves of words: no two lanes write to one line.
    pub(crate) fn witness_stride(&self) -> usize {
        self.all_lanes().next_multiple_of(LINE / 4)
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
    pub(crate) queue: Section,
    pub(crate) tenants: Section,
    pub(crate) words: Section,
    pub(crate) tokens: Section,
    pub(crate) limits: Section,
    pub(crate) token_caps: Section,
    pub(crate) engines: Section,
    pub(crate) slots: Section,
    pub(crate) heads: Section,
    pub(crate) waited: Section,
    pub(crate) lanes: Section,
    /// In words.
    pub(crate) ledgers: Section,
    /// In halves of words.
    pub(crate) witnesses: Section,
    /// In words.
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
        let ledger = PLANES * geometry.plane_stride();
        let publication = HEAD_WORDS + geometry.max_engines * ROW_WORDS;
        Self {
            geometry,
            control: section(1, size_of::<Control>()),
            queue: section(1, size_of::<QueueRecord>()),
            tenants: section(CLASSES + TENANTS, 8),
            words: section(rows, 8),
            tokens: section(rows, 8),
            limits: section(rows, 8),
            token_caps: section(rows, 8),
            engines: section(geometry.max_engines, size_of::<EngineRecord>()),
            slots: section(geometry.max_frontends, size_of::<SlotRecord>()),
            heads: section(geometry.max_frontends, size_of::<HeadsRecord>()),
            waited: section(geometry.max_frontends, size_of::<WaitedRecord>()),
            lanes: section(geometry.all_lanes(), size_of::<LaneRecord>()),
            ledgers: section(geometry.all_lanes() * ledger, 8),
            witnesses: section(geometry.all_lanes() * geometry.witness_stride(), 4),
            publications: section(COPIES * publication, 8),
            size: end.next_multiple_of(LINE),
        }
    }

    /// Returns the parts of the file, in its order, with the fields of their words. Together they are the whole file.
    pub(crate) fn parts(&self) -> Vec<Part> {
        let part = |name, section, fields: &[Field]| Part {
            name,
            section,
            fields: fields.to_vec(),
        };
        // Elements of so many words, in a section of words.
        let in_words = |name, section: Section, fields: Vec<Field>| {
            let count = section.count / record::words(&fields);
            let section = Section { count, ..section };
            Part {
                name,
                section,
                fields,
            }
        };
        let geometry = &self.geometry;
        let ledger = ledger::fields(geometry.rows(), geometry.plane_stride()).collect();
        let publication = publication::fields(geometry.max_engines);
        let lanes = geometry.all_lanes();
        let witnesses = Section {
            count: lanes,
            ..self.witnesses
        };
        let parts = [
            Part::header(),
            part("control", self.control, &Control::FIELDS),
            part("queue", self.queue, &QueueRecord::FIELDS),
            part("tenants", self.tenants, &[TENANT]),
            part("words", self.words, &[Word::FIELD]),
            part("tokens", self.tokens, &[TokenWord::field("tokens")]),
            part("limits", self.limits, &[Limits::FIELD]),
            part("token caps", self.token_caps, &[TOKEN_CAP]),
            part("engines", self.engines, &EngineRecord::FIELDS),
            part("slots", self.slots, &SlotRecord::FIELDS),
            part("heads", self.heads, &HeadsRecord::FIELDS),
            part("waited", self.waited, &WaitedRecord::FIELDS),
            part("lanes", self.lanes, &LaneRecord::FIELDS),
            in_words("ledgers", self.ledgers, ledger),
            part(
                "witnesses",
                witnesses,
                &witness_fields(lanes, geometry.witness_stride()),
            ),
            in_words("publications", self.publications, publication),
        ];
        let next = parts.iter().skip(1).map(|part| part.section.offset);
        let gaps: Vec<_> = (parts.iter().zip(next.chain([self.size])))
            .map(|(part, next)| Part::gap(part.end(), next))
            .collect();
        parts
            .into_iter()
            .zip(gaps)
            .flat_map(|(part, gap)| [part, gap])
            .filter(|part| part.section.count > 0)
            .collect()
    }
}

/// A part of the file: elements of one kind, and the fields of each.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) name: &'static str,
    pub(crate) section: Section,
    fields: Vec<Field>,
}

impl Part {
    /// Returns the part that lies at the same place in all layouts.
    pub(crate) fn header() -> Self {
        Self {
            name: "header",
            section: Section {
                offset: 0,
                count: 1,
            },
            fields: HeaderRecord::FIELDS.to_vec(),
        }
    }

    /// Returns what lies between two other parts.
    fn gap(from: usize, to: usize) -> Self {
        Self {
            name: "padding",
            section: Section {
                offset: from,
                count: to.saturating_sub(from) / 8,
            },
            fields: vec![Field::padding(1)],
        }
    }

    /// Whether nothing lies here.
    pub(crate) fn is_padding(&self) -> bool {
        self.fields.iter().all(Field::is_padding)
    }

    /// Returns the words of an element.
    pub(crate) fn words(&self) -> usize {
        record::words(&self.fields)
    }

    /// Returns the byte of the file at which an element starts.
    pub(crate) fn start(&self, element: usize) -> usize {
        self.section.offset + element * self.words() * 8
    }

    fn end(&self) -> usize {
        self.start(self.section.count)
    }

    /// Returns what each word of an element means.
    pub(crate) fn describe<'a>(&'a self, element: &'a [u64]) -> impl Iterator<Item = String> + 'a {
        let places = (self.fields.iter())
            .flat_map(|field| (0..field.words).map(move |index| (field, index)));
        places.zip(element).map(|((field, index), &word)| {
            field.describe(Found {
                word,
                index,
                record: element,
            })
        })
    }

    /// Returns the fields of an element in which some bits are not used, each with its first word.
    pub(crate) fn not_fully_used(&self) -> impl Iterator<Item = (usize, &Field)> {
        let mut start = 0;
        self.fields.iter().filter_map(move |field| {
            let at = start;
            start += field.words;
            (field.used != u64::MAX).then_some((at, field))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn layout(max_engines: usize, max_frontends: usize, lanes: usize) -> Layout {
        Layout::of(Geometry {
            max_engines,
            max_frontends,
            lanes,
        })
    }

    proptest! {
        #[test]
        fn sections_do_not_overlap(engines in 1..=MAX_ENGINES, frontends in 1..=1024_usize, lanes in 1..=3_usize) {
            let layout = layout(engines, frontends, lanes);
            let mut end = 0;
            for part in layout.parts() {
                prop_assert_eq!(part.section.offset, end, "{}", part.name);
                prop_assert!(part.is_padding() || end % LINE == 0, "{}", part.name);
                prop_assert!(!part.is_padding() || part.section.count < LINE / 8);
                end = part.end();
            }
            prop_assert_eq!(end, layout.size);
        }
    }

    /// Returns the bits of a word that a picture shows as used; `None` if it does not show all bits by their widths.
    fn used(bits: &str) -> Option<u64> {
        let (mut used, mut shown) = (0_u64, 0);
        for part in bits.split('|').map(str::trim) {
            let zeros = part.strip_prefix("0 (").and_then(|it| it.strip_suffix(")"));
            let width: u32 = zeros.or(part.split(' ').next_back())?.parse().ok()?;
            shown += width;
            let ones = u64::MAX.checked_shr(u64::BITS - width)?;
            used = used.checked_shl(width).unwrap_or(0) | if zeros.is_some() { 0 } else { ones };
        }
        (shown == u64::BITS).then_some(used)
    }

    #[test]
    fn the_pictures_show_each_field() {
        // The padding after the rows of a ledger is not in the picture, which says how far its planes are apart.
        let parts = layout(15, 2, 1).parts();
        let pictures = [
            (include_str!("mod.rs"), None),
            (include_str!("header.rs"), Some("header")),
            (include_str!("control.rs"), Some("control")),
            (include_str!("engine.rs"), Some("engines")),
            (include_str!("publication.rs"), Some("publications")),
            (
                include_str!("../../algorithm/record/slot.rs"),
                Some("slots"),
            ),
            (
                include_str!("../../algorithm/record/queue.rs"),
                Some("queue"),
            ),
            (
                include_str!("../../algorithm/record/heads.rs"),
                Some("heads"),
            ),
            (
                include_str!("../../algorithm/record/waited.rs"),
                Some("waited"),
            ),
            (
                include_str!("../../algorithm/record/lane.rs"),
                Some("lanes"),
            ),
            (
                include_str!("../../algorithm/record/ledger.rs"),
                Some("ledgers"),
            ),
        ];
        for (source, name) in pictures {
            let mut lines = source.lines().filter_map(|line| line.strip_prefix("//!"));
            let parts = (parts.iter())
                .filter(|part| name.map_or(part.name != "padding", |name| part.name == name));
            for part in parts {
                let mut start = 0;
                for field in part.fields.iter().filter(|field| field.words > 0) {
                    let last = start + field.words - 1;
                    if part.name == "ledgers" && field.is_padding() {
                        start = last + 1;
                        continue;
                    }
                    let words = match field.words {
                        1 => start.to_string(),
                        _ => format!("{start}-{last}"),
                    };
                    let field_at = |words: &str| format!(" {words}  {}  ", field.name);
                    let shown = lines.find_map(|line| {
                        let line = format!("{line}  ");
                        let (_, bits) = line
                            .split_once(&field_at(&words))
                            .or_else(|| line.split_once(&field_at("..")))?;
                        Some(bits.to_owned())
                    });
                    let name = field.name;
                    let bits = shown.unwrap_or_else(|| panic!("{}: {words}  {name}", part.name));
                    let used = used(&bits).unwrap_or(u64::MAX);
                    assert!(field.is_padding() || used == field.used, "{name}: {bits}");
                    start = last + 1;
                }
            }
        }
    }
}
