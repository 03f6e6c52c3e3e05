//! The bits that nothing uses: they are zero in every table.

use super::{Fault, FaultKind, Verification};
use crate::error::Result;
use crate::inspect::read::{read_at, words};
use crate::table::Table;

impl Table {
    /// Looks at each bit that is not used by the description of the file. No process sets one, and a word is
    /// changed as a whole, so one look is enough.
    pub(super) fn verify_unused(&self, found: &mut Verification) -> Result<()> {
        for part in self.mapping().layout().parts() {
            for element in 0..part.section.count {
                for (start, field) in part.not_fully_used() {
                    let offset = part.start(element) + start * 8;
                    let mut bytes = vec![0; field.words * 8];
                    // Where the file ends too early, its size is a fault of its own.
                    read_at(self, &mut bytes, offset as u64)
                        .map_err(|e| self.failed("reading", e))?;
                    for (at, word) in (offset..).step_by(8).zip(words(&bytes)) {
                        if word & !field.used != 0 {
                            let at = format!("{} at {at:#x}, in the {}", field.name, part.name);
                            let (is, should) = (format!("{word:#x}"), word & field.used);
                            let fault =
                                Fault::new(FaultKind::Unused, at, is, format!("{should:#x}"));
                            found.faults.push(fault);
                        }
                    }
                }
            }
        }
        Ok(())
    }
}
