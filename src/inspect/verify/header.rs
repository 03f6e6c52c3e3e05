//! The file and its header, as they are now.

use super::{Fault, FaultKind, Verification};
use crate::error::Result;
use crate::shm::layout::{BadHeader, HEADER_BYTES, Header, VERSION};
use crate::table::Table;
use crate::table::path_state::PathState;

impl Table {
    pub(super) fn verify_header(&self, found: &mut Verification) -> Result<()> {
        let stat = rustix::fs::fstat(self).map_err(|e| self.failed("examining", e.into()))?;
        let size = self.mapping().layout().size as u64;
        if stat.st_size.max(0) as u64 != size {
            let is = format!("{} bytes", stat.st_size);
            let should = format!("{size} bytes, as its header says");
            (found.faults).push(Fault::new(FaultKind::Size, "the file", is, should));
        }
        let (mode, allowed) = (stat.st_mode & 0o777, self.header().mode);
        if mode & !allowed != 0 {
            let is = format!("open to more users, by its mode {mode:04o},");
            let should = format!("{allowed:04o}, with which it was created");
            (found.faults).push(Fault::new(FaultKind::Mode, "the file", is, should));
        }
        if let Ok(state) = self.path_state()
            && state.is_split()
        {
            let is = match state {
                PathState::Gone => "nothing lies there",
                _ => "another file lies there",
            };
            let at = self.path().display();
            (found.faults).push(Fault::new(FaultKind::Path, at, is, "this table"));
        }
        let mut bytes = [0; HEADER_BYTES];
        let read = rustix::io::pread(self, &mut bytes, 0)
            .map_err(|e| self.failed("reading the header of", e.into()))?;
        let wrong = match Header::parse(bytes) {
            _ if read < HEADER_BYTES => Some(format!("only {read} bytes")),
            Ok(header) if header == *self.header() => None,
            Ok(_) => Some("the header of another table".to_owned()),
            Err(bad) => Some(describe(bad)),
        };
        if let Some(wrong) = wrong {
            let should = "what it was when the table was opened";
            (found.faults).push(Fault::new(FaultKind::Header, "the header", wrong, should));
        }
        Ok(())
    }
}

fn describe(bad: BadHeader) -> String {
    match bad {
        BadHeader::Magic(found) => {
            format!("it starts with \"{}\"", found.to_le_bytes().escape_ascii())
        }
        BadHeader::Version(found) => format!("format version {found}, not {VERSION}"),
        BadHeader::Checksum { found, expected } => {
            format!("the checksum {found:#018x}, not {expected:#018x}")
        }
        BadHeader::Absurd(absurd) => {
            let (field, found, expected) = (absurd.field, absurd.found, absurd.expected);
            format!("{field} = {found}, not {expected}")
        }
    }
}
