//! Reading a table's file by system calls, whatever is mapped.

use std::io;
use std::os::fd::AsFd;

/// Reads what there is of so many bytes; fewer only where the file ends.
pub(crate) fn read_at(file: impl AsFd, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < bytes.len() {
        match rustix::io::pread(&file, &mut bytes[done..], offset + done as u64)? {
            0 => break,
            read => done += read,
        }
    }
    Ok(done)
}

/// Returns the words of these bytes, as many as are whole.
pub(crate) fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let (chunks, _) = bytes.as_chunks::<8>();
    chunks.iter().map(|chunk| u64::from_le_bytes(*chunk))
}
