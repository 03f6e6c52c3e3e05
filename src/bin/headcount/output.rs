//! Where text goes: coloured on a terminal only, and never with NO_COLOR.

use crate::failure::Failure;
use std::io::{self, ErrorKind, Write};

/// Writes to standard output. Whoever has read enough of it (`| head -1`) may close it.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    print_on(text).map(drop)
}

/// The same, and says whether anybody still reads it.
pub(crate) fn print_on(text: &str) -> Result<bool, Failure> {
    let mut stdout = anstream::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(unwritten(error)),
    }
}

/// Starts over at the top of an empty screen. Not a colour, so NO_COLOR has no say.
pub(crate) fn clear_screen() {
    // If it fails, so will what is printed next.
    let _ = io::stdout().write_all(b"\x1b[H\x1b[J");
}

/// Says on standard error what is wrong.
pub(crate) fn complain(sentence: &str) {
    // Nobody is left to be told if this fails.
    let _ = writeln!(anstream::stderr(), "headcount: {}", printable(sentence));
}

fn unwritten(error: io::Error) -> Failure {
    Failure::failed(format!(
        "writing to standard output: {error}; check where it goes"
    ))
}

/// A name as it may be shown: a damaged table could hold sequences that terminals act on.
pub(crate) fn printable(name: &str) -> String {
    name.replace(|c: char| c.is_control() || is_invisible(c), "\u{fffd}")
}

/// Characters that turn the direction of what follows, or show as nothing.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}
