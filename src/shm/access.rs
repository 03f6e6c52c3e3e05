//! What a process may do to a table.

/// Whether a process may change a table, or only read it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    ReadWrite,
    ReadOnly,
}
