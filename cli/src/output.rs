//! Where text goes: coloured on a terminal only, and never with NO_COLOR.

use crate::failure::Failure;
use headcount_metrics::is_unprintable;
pub(crate) use headcount_metrics::printable;
use std::fmt::Write as _;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

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

/// A path as it may be shown.
pub(crate) fn printable_path(path: &Path) -> String {
    printable(&path.display().to_string())
}

/// JSON that says the same, and has nothing in it on which a terminal acts. In JSON such characters stand
/// in texts only, but for the ends of lines.
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

/// Tells how the arguments are wrong, as clap says it.
pub(crate) fn complain_of_arguments(error: &clap::Error) -> ExitCode {
    // What was typed is in it.
    let mut typed = std::env::args_os();
    let written = match typed.any(|word| word.to_string_lossy().contains(is_unprintable)) {
        false => error.print(),
        true => {
            let plain = error.render().to_string();
            let lines: Vec<_> = plain.split('\n').map(printable).collect();
            write!(anstream::stderr(), "{}", lines.join("\n"))
        }
    };
    // Nobody is left to be told if this fails.
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
