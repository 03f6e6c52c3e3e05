//! Files with a list: one entry a line.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Reads the entries of a file, each with the number of its line. Empty lines and lines that begin with # are
/// skipped.
pub(crate) fn read(path: &Path) -> io::Result<Vec<(usize, String)>> {
    let text = text_of(path)?;
    let lines = text.lines().map(str::trim).enumerate();
    let entries = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    Ok((entries.map(|(number, line)| (number + 1, line.to_owned()))).collect())
}

/// Reads a file. A pipe is refused: the parent would wait for its writer, and the next reload would find nothing
/// left to read.
fn text_of(path: &Path) -> io::Result<String> {
    // Otherwise opening a pipe waits for its writer.
    let mut file = (OpenOptions::new().read(true))
        .custom_flags(libc::O_NONBLOCK)
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    // Some editors mark a file as UTF-8 with these bytes.
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}
