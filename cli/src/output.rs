//! Output: coloured on a terminal only, and never with NO_COLOR.

use crate::failure::Failure;
use headcount_metrics::is_unprintable;
pub(crate) use headcount_metrics::printable;
use std::fmt::Write as _;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

/// Writes to standard output. A reader that has enough (`| head -1`) may close it.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    print_on(text).map(drop)
}

/// Writes to standard output, and returns whether it is still read.
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

/// Clears the screen and goes to its top. That is no colour, so NO_COLOR does not matter.
pub(crate) fn clear_screen() {
    // If it fails, so will what is printed next.
    let _ = io::stdout().write_all(b"\x1b[H\x1b[J");
}

/// Writes an error to standard error.
pub(crate) fn complain(sentence: &str) {
    // If this fails, there is no place left to report it.
    let _ = writeln!(anstream::stderr(), "headcount: {}", printable(sentence));
}

fn unwritten(error: io::Error) -> Failure {
    Failure::failed(format!(
        "writing to standard output: {error}; check where it goes"
    ))
}

/// Returns a path without unprintable characters.
pub(crate) fn printable_path(path: &Path) -> String {
    printable(&path.display().to_string())
}

/// Escapes the characters on which a terminal acts. In JSON they stand in strings only, except for the ends of
/// lines.
pub(crate) fn printable_json(json: &str) -> String {
    let mut printable = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            c if c == '\n' || !is_unprintable(c) => printable.push(c),
            c => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    // Writing to a string cannot fail.
                    let _ = write!(printable, "\\u{unit:04x}");
                }
            }
        }
    }
    printable
}

/// Reports wrong arguments in the words of clap.
pub(crate) fn complain_of_arguments(error: &clap::Error) -> ExitCode {
    // The error repeats the arguments.
    let mut arguments = std::env::args_os();
    let written = if arguments.any(|word| word.to_string_lossy().contains(is_unprintable)) {
        let plain = error.render().to_string();
        let lines: Vec<_> = plain.split('\n').map(printable).collect();
        write!(anstream::stderr(), "{}", lines.join("\n"))
    } else {
        error.print()
    };
    // If this fails, there is no place left to report it.
    drop(written);
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_escaped_and_says_the_same() {
        let name = "\u{9b}2J \u{202e}\u{e0041} \u{1b} \u{7f} ü 日本";
        let json = serde_json::json!({ "name": name });
        let shown = printable_json(&format!("{json:#}\n"));
        assert!(
            !shown.contains(|c| c != '\n' && is_unprintable(c)),
            "{shown:?}"
        );
        assert!(shown.contains("ü 日本"), "{shown}");
        let read: serde_json::Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(read, json);
    }
}
