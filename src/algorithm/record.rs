//! The records that the algorithms work on, as they lie in the file: each has a file of its own, with a picture of its
//! words, its struct, and a line for each field.
//!
//! The lines of a record are its `FIELDS`. `dump` reads there how to print a word, and `verify` which bits nothing uses.
//! The macro [`fields`] compares the lines with the struct, so a field without a line does not compile. What the bits
//! of a single word mean stands beside the type of that word, in [`word`](super::word) and [`rows`](super::rows).

pub(crate) mod heads;
pub(crate) mod lane;
pub(crate) mod ledger;
pub(crate) mod queue;
pub(crate) mod slot;
pub(crate) mod waited;

/// A line of a record's description: one word, or several words of one kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    /// How many words it has.
    pub(crate) words: usize,
    /// The bits of a word that are used. The others are zero.
    pub(crate) used: u64,
    /// Prints one of its words.
    show: fn(Found<'_>) -> String,
}

/// A word that was found in the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found<'a> {
    pub(crate) word: u64,
    /// Its place among the words of its field.
    pub(crate) index: usize,
    /// All words of its record.
    pub(crate) record: &'a [u64],
}

impl Found<'_> {
    /// Returns the word as the type that it has in the table.
    pub(crate) fn typed<T: bytemuck::Pod>(self) -> T {
        bytemuck::cast(self.word)
    }

    /// Prints the word as a signed number.
    pub(crate) fn signed(self) -> String {
        (self.word as i64).to_string()
    }
}

impl Field {
    /// Describes one word, which `show` prints.
    pub(crate) const fn new(name: &'static str, show: fn(Found<'_>) -> String) -> Self {
        Self {
            name,
            words: 1,
            used: u64::MAX,
            show,
        }
    }

    /// Describes one word, which is a plain number.
    pub(crate) const fn number(name: &'static str) -> Self {
        Self::new(name, |found| found.word.to_string())
    }

    /// Describes words that nothing uses.
    pub(crate) const fn padding(words: usize) -> Self {
        let padding = Self::new("padding", |_| "should be zero".to_owned());
        padding.times(words).using(0)
    }

    /// Describes so many words of this kind.
    pub(crate) const fn times(mut self, words: usize) -> Self {
        self.words = words;
        self
    }

    /// Says that only these bits of a word are used.
    pub(crate) const fn using(mut self, bits: u64) -> Self {
        self.used = bits;
        self
    }

    /// Says that only so many of a word's lower bits are used.
    pub(crate) const fn of_bits(self, bits: u32) -> Self {
        self.using(u64::MAX >> (u64::BITS - bits))
    }

    /// Whether nothing uses these words.
    pub(crate) fn is_padding(&self) -> bool {
        self.used == 0
    }

    /// Returns what a word of this field means, as people read it.
    pub(crate) fn describe(&self, found: Found<'_>) -> String {
        format!("{}: {}", self.name, (self.show)(found))
    }
}

/// Returns how many words these fields have.
pub(crate) const fn words(fields: &[Field]) -> usize {
    let (mut words, mut index) = (0, 0);
    while index < fields.len() {
        words += fields[index].words;
        index += 1;
    }
    words
}

/// Makes the lines of a record from those of each field of its struct, and does not compile unless they agree: each
/// field of the struct is there, in the order of the struct, and has as many words as up to the next one.
macro_rules! fields {
    ($record:ident { $($field:ident: $lines:expr),+ $(,)? }) => {{
        // Without `..`, so that a field without a line is an error.
        let _: fn(&$record) = |$record { $($field: _),+ }| {};
        $crate::algorithm::record::join(
            &[$(&$lines),+],
            &[$(core::mem::offset_of!($record, $field)),+, size_of::<$record>()],
        )
    }};
}
pub(crate) use fields;

/// Joins the lines of a struct's fields. `offsets` are those of the fields, and the size of the struct at the end.
pub(crate) const fn join<const LINES: usize>(
    fields: &[&[Field]],
    offsets: &[usize],
) -> [Field; LINES] {
    let mut joined = [Field::padding(0); LINES];
    let (mut line, mut field) = (0, 0);
    while field < fields.len() {
        assert!(
            offsets[field] + words(fields[field]) * 8 == offsets[field + 1],
            "the lines of a field have as many words as the field, and stand in the order of the struct"
        );
        let mut index = 0;
        while index < fields[field].len() {
            joined[line] = fields[field][index];
            line += 1;
            index += 1;
        }
        field += 1;
    }
    assert!(line == LINES, "as many lines as the type says");
    joined
}
