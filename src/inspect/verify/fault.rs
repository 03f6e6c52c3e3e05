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

/// Declares the kinds with their names, so that no list of them lacks one.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal,)*) => {
        /// A sort of inconsistency.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[non_exhaustive]
        pub enum FaultKind {
            $($(#[$doc])* $kind,)*
        }

        impl FaultKind {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$kind),*];

            /// Returns its name: one word, in lower case.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }
        }
    };
}

kinds! {
    /// The header is not the one that the table was opened with.
    Header = "header",
    /// The file does not lie at the path any more at which it was opened; see
    /// [`Table::path_state`](crate::Table::path_state).
    Path = "path",
    /// The file is longer or shorter than its header says.
    Size = "size",
    /// The file is open to more users than its creator said.
    Mode = "mode",
    /// A count of requests is not what the ledgers add up to.
    Requests = "requests",
    /// A count of tokens is not what the ledgers add up to.
    Tokens = "tokens",
    /// The ledgers of a place that no frontend has do not add up to nothing.
    Ledger = "ledger",
    /// A place for a frontend says something impossible.
    Slot = "slot",
    /// A lane says something impossible of the operation it is in.
    Lane = "lane",
    /// An engine has an impossible name, weight or cap, or a slot that it cannot have.
    Engine = "engine",
    /// The table has a cap of its own that cannot be, or does not heed the one that it has.
    Cap = "cap",
    /// The queue says something impossible: of its bounds, of how far it has come, or of a request that waits.
    Queue = "queue",
    /// The last publication says something impossible.
    Publication = "publication",
    /// A bit that nothing uses is not zero.
    Unused = "unused",
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
