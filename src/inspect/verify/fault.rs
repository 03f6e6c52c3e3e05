//! One inconsistency.

use std::fmt;

/// What [`Table::verify`](crate::Table::verify) has found to be inconsistent.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Fault {
    /// What sort of inconsistency.
    pub kind: FaultKind,
    /// Where: `engine 3 ("gpu-3")`, say.
    pub at: String,
    /// What is there.
    pub found: String,
    /// What should be there.
    pub expected: String,
}

/// A sort of inconsistency.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FaultKind {
    /// The header is not the one that the table was opened with.
    Header,
    /// The file does not lie at the path any more at which it was opened; see
    /// [`Table::path_state`](crate::Table::path_state).
    Path,
    /// The file is longer or shorter than its header says.
    Size,
    /// The file is open to more users than its creator said.
    Mode,
    /// A count of requests is not what the ledgers add up to.
    Requests,
    /// A count of tokens is not what the ledgers add up to.
    Tokens,
    /// The ledgers of a place that no frontend has do not add up to nothing.
    Ledger,
    /// A place for a frontend says something impossible.
    Slot,
    /// A lane says something impossible of the operation it is in.
    Lane,
    /// An engine has an impossible name, weight or cap, or a slot that it cannot have.
    Engine,
    /// The table has a cap of its own that cannot be, or does not heed the one that it has.
    Cap,
    /// The last publication says something impossible.
    Publication,
    /// A bit that nothing uses is not zero.
    Unused,
}

impl FaultKind {
    /// One word for it, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Path => "path",
            Self::Size => "size",
            Self::Mode => "mode",
            Self::Requests => "requests",
            Self::Tokens => "tokens",
            Self::Ledger => "ledger",
            Self::Slot => "slot",
            Self::Lane => "lane",
            Self::Engine => "engine",
            Self::Cap => "cap",
            Self::Publication => "publication",
            Self::Unused => "unused",
        }
    }
}

impl Fault {
    pub(super) fn new(
        kind: FaultKind,
        at: impl fmt::Display,
        found: impl fmt::Display,
        expected: impl fmt::Display,
    ) -> Self {
        Self {
            kind,
            at: at.to_string(),
            found: found.to_string(),
            expected: expected.to_string(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            at,
            found,
            expected,
        } = self;
        let kind = kind.name();
        write!(f, "{kind}: {at}: {found}, but should be {expected}")
    }
}
