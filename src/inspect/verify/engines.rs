//! What the table says of its engines.

use super::{Fault, FaultKind, Look, Verification, steady};
use crate::algorithm::primitive::{Ordering, fence};
use crate::algorithm::total::TotalCaps;
use crate::algorithm::word::RowState;
use crate::shm::layout::MAX_NAME;
use crate::table::Table;
use crate::table::engine::Engine;
use std::collections::HashMap;

impl Table {
    pub(super) fn verify_engines(&self, found: &mut Verification) {
        let max_engines = self.header().geometry.max_engines;
        let in_use = self.engines().hints().in_use();
        if in_use > max_engines {
            let expected = format!("at most {max_engines}");
            let is = format!("{in_use} engine slots in use");
            (found.faults).push(Fault::new(FaultKind::Engine, "the table", is, expected));
        }
        for slot in 0..max_engines {
            let look = steady(|| self.look_at_engine(slot));
            found.note(|| self.row(slot), look);
        }
        self.verify_names(found);
        let caps = steady(|| self.look_at_caps());
        found.note(|| "the caps of the table".to_owned(), caps);
    }

    /// The caps of the table as a whole.
    fn look_at_caps(&self) -> Look<Fault> {
        let rows = self.mapping().rows();
        let hints = rows.hints();
        let bits = rows.total_caps.bits();
        let has_cap = !rows.total_caps().is_none();
        let wrong = |found: String, expected: String| {
            Look::Wrong(Fault::new(FaultKind::Cap, "the table", found, expected))
        };
        if let Some(bits) = bits.iter().find(|bits| !TotalCaps::is_possible(**bits)) {
            return wrong(
                format!("a cap of {bits}"),
                format!("0 to {}, or none", u32::MAX),
            );
        }
        // The other way round is what a process leaves that dies while it sets caps; it does no harm.
        if has_cap && !hints.has_total_cap() {
            return match rows.hints() == hints {
                true => wrong("caps that are not heeded".to_owned(), "heeded".to_owned()),
                false => Look::Moved,
            };
        }
        Look::Fine
    }

    /// One look at an engine slot.
    fn look_at_engine(&self, slot: usize) -> Look<Fault> {
        let (engines, mapping) = (self.engines(), self.mapping());
        let word = engines.word(slot);
        let lanes = mapping.counter().lanes.len();
        let wrong = |found: String, expected: String| {
            Look::Wrong(Fault::new(
                FaultKind::Engine,
                format!("engine {slot}"),
                found,
                expected,
            ))
        };
        if usize::from(word.lane().0) > lanes {
            return wrong(
                format!("counted by lane {}", word.lane().0),
                format!("by one of {lanes} lanes, or by none (0)"),
            );
        }
        if word.state() == RowState::Removed {
            return match slot >= engines.in_use() && word.value() > 0 {
                true => wrong("a slot never used that counts".into(), "empty".into()),
                false => Look::Fine,
            };
        }
        if slot >= engines.in_use() {
            let expected = format!("one of the {} in use", engines.in_use());
            return wrong("a state in a slot never used".into(), expected);
        }
        let (record, before) = (&mapping.engines()[slot], engines.generation(slot));
        let length = record.name.length();
        let engine = engines.read(slot);
        // Acquire fence: pairs with the Release fence in `Name::write`.
        fence(Ordering::Acquire);
        if engines.generation(slot) != before || engines.word(slot).state() != word.state() {
            return Look::Moved;
        }
        if length > MAX_NAME as u64 {
            return wrong(
                format!("a name of {length} bytes"),
                format!("1 to {MAX_NAME}"),
            );
        }
        if before % 2 == 1 {
            return wrong("a name half written".into(), "a whole one".into());
        }
        impossible(&engine).map_or(Look::Fine, |(found, expected)| wrong(found, expected))
    }

    /// No two engines have one name.
    fn verify_names(&self, found: &mut Verification) {
        let twins = steady(|| {
            let mut seen = HashMap::new();
            for engine in self.view().engines {
                let (slot, name) = (engine.id.index(), engine.name);
                if let Some(first) = seen.insert(name.clone(), slot)
                    && !name.is_empty()
                {
                    return Look::Wrong(Fault::new(
                        FaultKind::Engine,
                        format!("engine {slot}"),
                        format!("the name {name:?}, which engine {first} has"),
                        "a name of its own",
                    ));
                }
            }
            Look::Fine
        });
        found.note(|| "the names of the engines".to_owned(), twins);
    }
}

/// What no engine that was added could have: what is found, and what it should be.
fn impossible(engine: &Engine) -> Option<(String, String)> {
    use crate::error::Error;
    match engine.check() {
        Ok(()) => None,
        Err(Error::Weight { found }) => Some((
            format!("the weight {found}"),
            "a finite number above 0".to_owned(),
        )),
        Err(Error::EngineName { name, reason, .. }) => Some((
            format!("the name {name:?}, which {reason}"),
            "printable text".to_owned(),
        )),
        Err(other) => Some((other.to_string(), "an engine".to_owned())),
    }
}
