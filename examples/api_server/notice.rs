//! Lines for the operator. That nobody reads them any more is no reason to fail.

use std::fmt::Display;
use std::io::Write;

/// Writes a line to standard error, for what happens.
pub(crate) fn say(line: impl Display) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Writes a line to standard output, for what was asked for.
pub(crate) fn tell(line: impl Display) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
