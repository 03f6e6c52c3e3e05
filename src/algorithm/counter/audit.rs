//! A row and its ledgers, looked at from outside while others go on.
//!
//! Nothing here writes. Each function says what is exact, and when. [`Counter::ledger_at`] relies on the same as
//! recovery: an operation whose intent is active took effect if and only if its row's word names it, or a witness
//! does, or `confirmed` has reached its number.

use super::{Counter, after};
use crate::algorithm::primitive::{Ordering, fence};
use crate::algorithm::record::ledger::Ledger;
use crate::algorithm::word::{Amount, Intent, LaneId, Tag, Witness, Word};

/// What is wrong with a lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LaneFault {
    /// Its intent is no intent.
    Intent(u64),
    /// Its intent names another operation than its number does.
    Tag,
    /// Another lane has seen an operation take effect that it never began.
    Confirmed { confirmed: u64, operation: u64 },
    /// The same, by a witness.
    Witness(Witness),
}

impl Counter<'_> {
    /// Returns the ledger of lane `id` on `row`, with what an operation that it is in owes it if that took
    /// effect.
    ///
    /// Exact if the row's word was `seen` from before this call until [`still`](Self::still) after it:
    /// then no operation on the row took effect meanwhile, and all that can happen to the lane is that
    /// it completes its ledger. `None`: the lane went on while we looked.
    pub(crate) fn ledger_at(&self, id: LaneId, row: usize, seen: Word) -> Option<Ledger> {
        let lane = self.lane(id)?;
        // Acquire: pairs with the Release of the number in `attempt`, as for a late helper.
        let operation = lane.operation.load(Ordering::Acquire);
        // Acquire: pairs with the Releases of the intent in `attempt` and `recover`; who sees it idle,
        // or on another row, must see the ledger that was written before.
        let intent = lane.intent.load(Ordering::Acquire);
        let mut ledger = self.ledger(id, row);
        let Some((_, tag)) = intent.operation().filter(|(of, _)| *of == row) else {
            return Some(ledger);
        };
        // Relaxed, twice: stored before the intent that we acquired. Of a later operation they are
        // only together with a number or a word that has moved; who sees that late has a look that
        // does not come out the same again.
        let total_before = lane.total_before.load(Ordering::Relaxed);
        let tokens_before = lane.held_tokens_before.load(Ordering::Relaxed);
        // Acquire: pairs with the Release of this field in `attempt`; if it is of a later operation,
        // then the number below is, too.
        let change = lane.change.load(Ordering::Acquire);
        let took_effect = self.took_effect(id, lane, tag, seen);
        // Relaxed, twice: ordered after the Acquires above, and coherence does the rest.
        let still = tag == Tag::of(operation)
            && lane.operation.load(Ordering::Relaxed) == operation
            && lane.intent.load(Ordering::Relaxed) == intent;
        if !still {
            return None;
        }
        let owed = if took_effect { change } else { Amount::ZERO };
        let total = match change.requests() {
            ..0 => &mut ledger.finished,
            _ => &mut ledger.admitted,
        };
        *total = after(total_before, owed);
        if change.tokens() != 0 {
            ledger.tokens = tokens_before.wrapping_add_signed(owed.tokens()) as i64;
        }
        Some(ledger)
    }

    /// Whether the word of `row` still is `seen`, as of all that was read before this call.
    pub(crate) fn still(&self, row: usize, seen: Word) -> bool {
        // Acquire fence: what was read before it is not of a later time than the word below. Relaxed:
        // ordered by the fence.
        fence(Ordering::Acquire);
        self.words[row].load(Ordering::Relaxed) == seen
    }

    /// Returns the tokens of `row` when its word was `seen`; `None` if it moved while we looked.
    pub(crate) fn tokens_while(&self, row: usize, seen: Word) -> Option<u32> {
        Some(self.tokens_at(row, seen)?.tokens())
    }

    /// Whether the lane is in an operation.
    pub(crate) fn is_in_an_operation(&self, id: LaneId) -> bool {
        // Acquire: pairs with the Release of the intent, so that what is read next is not older.
        self.lane(id)
            .is_some_and(|lane| lane.intent.load(Ordering::Acquire) != Intent::IDLE)
    }

    /// Returns what is wrong with a lane, as of one look. A lane that moves meanwhile may look wrong once,
    /// and then not again in the same way.
    pub(crate) fn lane_fault(&self, id: LaneId) -> Option<LaneFault> {
        let lane = self.lane(id)?;
        // Relaxed, and in `last_witnessed`: the fence below orders them before the number, which was moved before
        // they were.
        let witness = self.last_witnessed(id);
        let confirmed = lane.confirmed.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        let operation = lane.operation.load(Ordering::Acquire);
        let intent = lane.intent.load(Ordering::Acquire);
        if confirmed > operation {
            return Some(LaneFault::Confirmed {
                confirmed,
                operation,
            });
        }
        if witness.is_after(Witness::of(Tag::of(operation))) {
            return Some(LaneFault::Witness(witness));
        }
        let fault = match intent.operation() {
            None if intent == Intent::IDLE => None,
            Some((row, tag)) if row < self.words.len() && intent == Intent::active(row, tag) => {
                (tag != Tag::of(operation)).then_some(LaneFault::Tag)
            }
            _ => Some(LaneFault::Intent(bytemuck::cast(intent))),
        };
        // Relaxed: ordered after the Acquires above. If it has moved, number and intent are of
        // different operations.
        fault.filter(|_| lane.operation.load(Ordering::Relaxed) == operation)
    }
}
