//! A lane's ledger: what the lane has done on each row.
//!
//! Three planes, each with a word for each row, and padding up to R': the number of rows, rounded up to 16.
//!
//! ```text
//!    word
//!    0 ..  admitted  requests, in total 64
//!   R' ..  finished  requests, in total 64
//! 2 R' ..  held      tokens of the requests in flight, signed: 64
//! ```

use super::Field;

/// The requests and tokens that a lane has admitted and finished on a row.
///
/// Only the sum over all lanes of a frontend says what the frontend holds, since one lane may finish what another has
/// admitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Ledger {
    /// Requests that it has admitted, in total.
    pub(crate) admitted: u64,
    /// Requests that it has finished, in total.
    pub(crate) finished: u64,
    /// The tokens of the former less those of the latter.
    pub(crate) tokens: i64,
}

impl Ledger {
    /// The requests that are admitted and not finished.
    pub(crate) fn requests(&self) -> i64 {
        self.admitted.wrapping_sub(self.finished) as i64
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            admitted: self.admitted.wrapping_add(other.admitted),
            finished: self.finished.wrapping_add(other.finished),
            tokens: self.tokens.wrapping_add(other.tokens),
        }
    }
}

/// One of the three words that a lane keeps of every row.
#[derive(Clone, Copy)]
pub(crate) enum Plane {
    Admitted = 0,
    Finished = 1,
    Tokens = 2,
}

/// How many planes there are.
pub(crate) const PLANES: usize = 3;

impl Plane {
    const ALL: [Self; PLANES] = [Self::Admitted, Self::Finished, Self::Tokens];

    const fn field(self) -> Field {
        match self {
            Self::Admitted => Field::new("admitted", |found| {
                format!("row {}: {} requests", found.index, found.word)
            }),
            Self::Finished => Field::new("finished", |found| {
                format!("row {}: {} requests", found.index, found.word)
            }),
            Self::Tokens => Field::new("held", |found| {
                format!("row {}: {} tokens", found.index, found.signed())
            }),
        }
    }
}

/// Returns the lines of a ledger of so many rows, whose planes are `stride` words apart.
pub(crate) fn fields(rows: usize, stride: usize) -> impl Iterator<Item = Field> {
    (Plane::ALL.into_iter())
        .flat_map(move |plane| [plane.field().times(rows), Field::padding(stride - rows)])
}
