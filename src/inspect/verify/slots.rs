//! What the places for frontends and their lanes say of themselves.

use super::{Fault, FaultKind, Look, Verification, steady};
use crate::algorithm::counter::audit::LaneFault;
use crate::table::Table;

impl Table {
    pub(super) fn verify_slots(&self, found: &mut Verification) {
        let registry = self.mapping().registry();
        for slot in 0..registry.slots.len() {
            let look = steady(|| self.look_at_slot(slot));
            found.note(|| format!("frontend slot {slot}"), look);
            for lane in 0..registry.lanes_per_slot {
                let look = steady(|| self.look_at_lane(slot, lane));
                found.note(|| format!("lane {lane} of frontend slot {slot}"), look);
            }
        }
    }

    fn look_at_slot(&self, slot: usize) -> Look<Fault> {
        let word = self.mapping().registry().slots[slot].word();
        match word.is_reaping() && !word.is_taken() {
            false => Look::Fine,
            true => Look::Wrong(Fault::new(
                FaultKind::Slot,
                format!("frontend slot {slot}"),
                "being reaped, though it is vacant",
                "vacant, or taken",
            )),
        }
    }

    fn look_at_lane(&self, slot: usize, index: usize) -> Look<Fault> {
        let registry = self.mapping().registry();
        let (record, lane) = (&registry.slots[slot], registry.lane(slot, index));
        let wrong = |found: String, expected: &str| {
            let at = format!("lane {index} of frontend slot {slot}");
            Look::Wrong(Fault::new(FaultKind::Lane, at, found, expected))
        };
        let before = record.word();
        let counter = self.mapping().counter();
        let fault = match counter.lane_fault(lane) {
            Some(LaneFault::Intent(bits)) => wrong(
                format!("the intent {bits:#018x}"),
                "idle, or an operation on a row of this table",
            ),
            Some(LaneFault::Tag) => wrong(
                "an intent of another operation than its number".into(),
                "of that one",
            ),
            Some(LaneFault::Confirmed {
                confirmed,
                operation,
            }) => wrong(
                format!("operation {confirmed} confirmed, and {operation} was the last"),
                "confirmed up to the last",
            ),
            Some(LaneFault::Witness(witness)) => wrong(
                format!(
                    "an operation of which another lane {witness:?}, and which it has not begun"
                ),
                "one of its last",
            ),
            None if !before.is_taken() && counter.is_in_an_operation(lane) => {
                wrong("in an operation, though its slot is vacant".into(), "idle")
            }
            None => return Look::Fine,
        };
        match record.word() == before {
            true => fault,
            false => Look::Moved,
        }
    }
}
