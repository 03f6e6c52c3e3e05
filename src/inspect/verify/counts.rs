//! Every ledger against every count.
//!
//! A row is recounted at a moment: its word is read, then what each lane holds of it, then the word
//! again. If that has not moved, no operation on the row took effect in between, and the ledgers,
//! with what lanes owe them, must add up to it exactly.

use super::{Fault, FaultKind, Look, Verification, steady};
use crate::algorithm::primitive::{Ordering, fence};
use crate::algorithm::record::ledger::Ledger;
use crate::algorithm::record::slot::SlotWord;
use crate::algorithm::registry::Registry;
use crate::algorithm::word::Word;
use crate::table::Table;

/// What a vacant slot holds of a row. It stays so for as long as the slot's word does.
#[derive(Clone, Copy)]
struct Vacant {
    word: SlotWord,
    ledger: Ledger,
}

impl Vacant {
    fn holds_nothing(&self) -> bool {
        self.ledger.requests() == 0 && self.ledger.tokens == 0
    }
}

impl Table {
    pub(super) fn verify_counts(&self, found: &mut Verification) {
        let mapping = self.mapping();
        let (registry, counter) = (mapping.registry(), mapping.counter());
        found.counts = counter.rows().count();
        found.ledgers = counter.lanes.len();
        for row in 0..counter.words.len() {
            let what = || format!("the count of {}", self.row(row));
            // Each is looked at again below if its word has moved, so that only those of frontends
            // cost time while the row has to stand still.
            let vacant: Vec<_> = (0..registry.slots.len())
                .map(|slot| vacant(&registry, slot, row))
                .collect();
            for (slot, vacant) in vacant.iter().enumerate() {
                if vacant.is_some_and(|vacant| !vacant.holds_nothing()) {
                    let look = steady(|| self.vacant_ledgers(slot, row));
                    found.note(|| format!("the ledgers of frontend slot {slot}"), look);
                }
            }
            let look = steady(|| self.recount(row, &vacant));
            found.note(what, look);
        }
    }

    /// Looks once at a row.
    fn recount(&self, row: usize, vacant: &[Option<Vacant>]) -> Look<Fault> {
        let registry = self.mapping().registry();
        let counter = self.mapping().counter();
        let seen = counter.load(row);
        let sum = (0..registry.slots.len()).try_fold(Ledger::default(), |sum, slot| {
            let word = registry.slots[slot].word();
            let ledger = match vacant[slot] {
                Some(vacant) if vacant.word == word => vacant.ledger,
                _ => ledger_at(&registry, slot, row, seen)?,
            };
            Some(sum.plus(ledger))
        });
        let (Some(sum), Some(tokens)) = (sum, counter.tokens_while(row, seen)) else {
            return Look::Moved;
        };
        if !counter.still(row, seen) {
            return Look::Moved;
        }
        let differs = |kind, counted: u32, held: i64, what| {
            (i64::from(counted) != held).then(|| {
                Look::Wrong(Fault::new(
                    kind,
                    self.row(row),
                    format!("{counted} {what} counted"),
                    format!("the {held} that the ledgers hold"),
                ))
            })
        };
        differs(
            FaultKind::Requests,
            seen.value(),
            sum.requests(),
            "requests",
        )
        .or_else(|| differs(FaultKind::Tokens, tokens, sum.tokens, "tokens"))
        .unwrap_or(Look::Fine)
    }

    /// Looks once at what the ledgers of a vacant slot hold of a row.
    fn vacant_ledgers(&self, slot: usize, row: usize) -> Look<Fault> {
        let registry = self.mapping().registry();
        match vacant(&registry, slot, row) {
            None => Look::Moved,
            Some(vacant) if vacant.holds_nothing() => Look::Fine,
            Some(Vacant { ledger, .. }) => Look::Wrong(Fault::new(
                FaultKind::Ledger,
                format!("frontend slot {slot}, which is vacant"),
                format!(
                    "{} requests, {} tokens of {}",
                    ledger.requests(),
                    ledger.tokens,
                    self.row(row)
                ),
                "none",
            )),
        }
    }

    /// Returns the name of a row, for people.
    pub(super) fn row(&self, row: usize) -> String {
        if row == self.header().geometry.total_row() {
            return "the table as a whole".to_owned();
        }
        let queue_row = self.header().geometry.queue_row();
        if row == queue_row {
            return "the queue".to_owned();
        }
        if row > queue_row {
            return format!("class {} of the queue", row - queue_row - 1);
        }
        if row > self.header().geometry.total_row() {
            return format!("row {row}, which nothing uses");
        }
        let engines = self.engines();
        match row < engines.in_use() {
            true => format!("engine {row} ({:?})", engines.name(row)),
            false => format!("engine {row} (never used)"),
        }
    }
}

/// Returns what a vacant slot holds of a row. `None`: the slot is taken.
fn vacant(registry: &Registry<'_>, slot: usize, row: usize) -> Option<Vacant> {
    let record = &registry.slots[slot];
    let word = record.word();
    if word.is_taken() {
        return None;
    }
    let ledger = registry.ledger(slot, row);
    // Acquire fence: what was read before it is not of a later time than the word below, which counts
    // those who join: one who came and went has left another.
    fence(Ordering::Acquire);
    (record.word() == word).then_some(Vacant { word, ledger })
}

/// Returns what the lanes of a slot have done on a row, together, while its word is `seen`.
fn ledger_at(registry: &Registry<'_>, slot: usize, row: usize, seen: Word) -> Option<Ledger> {
    (0..registry.lanes_per_slot).try_fold(Ledger::default(), |sum, lane| {
        let ledger = (registry.counter).ledger_at(registry.lane(slot, lane), row, seen)?;
        Some(sum.plus(ledger))
    })
}
