//! Evidence that an operation took effect, which outlives the word that it wrote.
//!
//! # Witnesses
//!
//! Before a lane p overwrites a word by the operation (q, tag), it could look at q's lane, and would nearly always
//! learn that q has completed that operation. The look costs as much as the operation: q has just written there, so
//! the line has to come from q's processor, and to go back. So p leaves the evidence in memory of its own, as a
//! *witness*: "(q, tag) took effect". It has one witness of each lane, and overwrites it with a later one only: q
//! went on to the later operation, so it has completed the earlier one.
//!
//! So recovery finds the witness of the operation in which q died. p left it before it overwrote the word; q has no
//! later operation by which p would replace it; and p withdraws a witness only of a word that it did not overwrite.
//! (A word that it has overwritten it does not see again: see [`attempt`](Counter::attempt).)
//!
//! A word whose operation changed tokens is secured by a look at its lane: its tokens may have to be brought up to
//! date. So is a word that is overwritten by a change of state, which has no lane and so no witnesses. If q still is
//! in the operation, its number is written into `confirmed` of q's lane.
//!
//! # Tags that come again
//!
//! A witness names a tag, and tags wrap, so "later" means less than half of a turn ahead. Once in a quarter of a turn
//! of its tags, before its next operation, a lane q *sweeps*: it takes its name off all words that still bear it, so
//! that attempts which have seen such a word fail; and it clears all witnesses of its operations. An attempt that
//! fails withdraws the witness that it has left. So the witnesses of q are of this quarter or the one before, less
//! than half of a turn ago. A lane leaves an older one for good only if it sleeps for a quarter before it leaves the
//! witness, and is killed before it withdraws it: see "What wraps" at the head of [`counter`](super).
//!
//! # The late helper
//!
//! A helper h that found word w by (q, tag) reads q's operation number n, then its intent, and may
//! sleep anywhere. Three things can have happened to q:
//!
//! - *q is still in n.* Its fields are those of n, and w is by n: to raise `confirmed` to n is to tell
//!   the truth.
//! - *q went on to a later operation while h was reading its fields.* Then the fields may be mixed.
//!   h reads q's number again, sees that it moved, and starts over.
//! - *q went on after that.* `confirmed` is raised to n, which is below q's present number and so
//!   says nothing about it; the tokens' version has moved, so h's compare-and-swap fails.
//!
//! Could n be a *later* operation than the one that wrote w, with the same tag because tags have
//! wrapped? h reads the row's word again after n. An operation never takes the tag that the word
//! shows under its own lane; having seen n, h cannot see a word older than the one that n's start
//! saw; so if the word still is w, then it was n that wrote it.

use super::Counter;
use crate::algorithm::primitive::{Atomic, Ordering};
use crate::algorithm::record::lane::LaneRecord;
use crate::algorithm::word::{Amount, Intent, LaneId, NO_LANE, Tag, TokenWord, Witness, Word};

/// Where the operation that wrote a word stands.
pub(super) enum WriterState<'a> {
    /// It is complete, or never owed anything.
    Complete,
    /// It took effect, and its lane may not have completed it.
    UnderWay {
        lane: &'a LaneRecord,
        operation: u64,
        change: Amount,
        tokens_before: TokenWord,
    },
    /// The word or its writer went on while we looked.
    Moved,
}

impl<'a> Counter<'a> {
    /// Makes the evidence that the operation which wrote `seen` took effect outlive that word. False
    /// if the word moved meanwhile, or its writer completed that operation and went on.
    #[inline]
    pub(super) fn secure_evidence(&self, row: usize, seen: Word, me: LaneId) -> bool {
        if seen.lane() == me || seen.lane() == NO_LANE {
            return true; // its own last operation on this row, or a change of state
        }
        if me != NO_LANE && !seen.is_with_tokens() {
            self.leave_witness(seen, me);
            return true;
        }
        match self.writer_state(row, seen) {
            WriterState::Complete => true,
            WriterState::Moved => false,
            WriterState::UnderWay {
                lane,
                operation,
                change,
                tokens_before,
            } => {
                if change.tokens() != 0 {
                    self.advance_tokens(row, tokens_before, change);
                }
                confirm(lane, operation);
                true
            }
        }
    }

    /// Writes down, as lane `me`, that the operation which wrote `seen` took effect.
    #[inline(never)] // who is alone in a table should not have to make room for it
    fn leave_witness(&self, seen: Word, me: LaneId) {
        let Some(mine) = self.witness(me, seen.lane()) else {
            return; // there is no such lane
        };
        let witness = Witness::of(seen.tag());
        // Relaxed: our own word; and if its lane has swept it, that was before it wrote the word that we have
        // acquired.
        if witness.is_after(mine.load(Ordering::Relaxed)) {
            // Release: pairs with the Acquire in `is_witnessed`; who sees this in the place of the last one
            // must see that the lane has gone on.
            mine.store(witness, Ordering::Release);
        }
    }

    /// Takes back what lane `me` has written down of `seen`, which it did not overwrite.
    #[cold]
    #[inline(never)]
    pub(super) fn withdraw_witness(&self, seen: Word, me: LaneId) {
        if let Some(mine) = self.witness(me, seen.lane())
            // Relaxed, twice: our own word. The operation that has overwritten `seen` has left evidence as well.
            && mine.load(Ordering::Relaxed) == Witness::of(seen.tag())
        {
            mine.store(Witness::NONE, Ordering::Relaxed);
        }
    }

    /// Whether any lane has seen the operation `tag` of lane `id` take effect.
    fn is_witnessed(&self, id: LaneId, tag: Tag) -> bool {
        self.witnesses_of(id)
            // Acquire: pairs with the Releases in `leave_witness` and `sweep`.
            .any(|witness| witness.load(Ordering::Acquire) == Witness::of(tag))
    }

    /// Returns the latest operation of lane `id` that any lane has seen take effect.
    pub(super) fn last_witnessed(&self, id: LaneId) -> Witness {
        self.witnesses_of(id).fold(Witness::NONE, |last, witness| {
            // Relaxed: the caller's fence orders it.
            let witness = witness.load(Ordering::Relaxed);
            if witness.is_after(last) {
                witness
            } else {
                last
            }
        })
    }

    /// What all lanes have seen of the operations of lane `id`.
    fn witnesses_of(&self, id: LaneId) -> impl Iterator<Item = &'a Atomic<Witness>> {
        (1..=self.lanes.len()).filter_map(move |other| self.witness(LaneId(other as u16), id))
    }

    /// Finds out whether the operation that wrote `seen` may still be under way.
    #[inline]
    pub(super) fn writer_state(&self, row: usize, seen: Word) -> WriterState<'a> {
        let Some(lane) = self.lane(seen.lane()) else {
            return WriterState::Complete; // a change of state
        };
        // Acquire: pairs with the Release of the number in `attempt`; see the late helper above.
        let operation = lane.operation.load(Ordering::Acquire);
        // Acquire: pairs with the Releases of the intent in `attempt` and `recover`.
        let intent = lane.intent.load(Ordering::Acquire);
        if intent != Intent::active(row, seen.tag()) {
            return WriterState::Complete;
        }
        // Acquire, twice: pairs with the Releases of the fields in `attempt`; if one of them is of
        // a later operation, then the number below is, too.
        let change = lane.change.load(Ordering::Acquire);
        let tokens_before = lane.tokens_before.load(Ordering::Acquire);
        // Relaxed, twice: ordered after the Acquires above, and coherence does the rest.
        let still = lane.operation.load(Ordering::Relaxed) == operation
            && self.words[row].load(Ordering::Relaxed) == seen;
        if !still {
            return WriterState::Moved;
        }
        WriterState::UnderWay {
            lane,
            operation,
            change,
            tokens_before,
        }
    }

    /// Whether the operation `tag` that lane `id` is in took effect on the row whose word is `seen`.
    pub(super) fn took_effect(&self, id: LaneId, lane: &LaneRecord, tag: Tag, seen: Word) -> bool {
        if seen.is_by(id, tag) {
            return true;
        }
        // Relaxed: stored before the intent that the caller has acquired.
        let operation = lane.operation.load(Ordering::Relaxed);
        // If the word no longer names the operation, then it is that of its overwriter or a later one,
        // and the caller has acquired it. Words are changed by compare-and-swap only, so to acquire a
        // later one is to acquire the overwriter's, too: this sees the witness that the overwriter has left,
        // or `confirmed` as it has raised it.
        self.is_witnessed(id, tag) || lane.confirmed.load(Ordering::Relaxed) >= operation
    }

    /// Removes what is left of the operations of lane `me`, which is idle.
    #[cold]
    #[inline(never)]
    pub(super) fn sweep(&self, me: LaneId) {
        (0..self.words.len()).for_each(|row| self.take_name_off(row, me));
        for witness in self.witnesses_of(me) {
            // Release: pairs with the Acquire in `is_witnessed`; who sees this must see that the lane has gone
            // on. Lanes see it before the next words that this lane writes.
            witness.store(Witness::NONE, Ordering::Release);
        }
    }

    /// Takes the name of lane `me` off a word, if it bears it.
    fn take_name_off(&self, row: usize, me: LaneId) {
        if self.load(row).lane() == me {
            // Another operation that overwrites it takes the name off as well.
            let _ = self.rewrite(row, |word| (word.lane() == me).then_some(word.state()));
        }
    }
}

/// Writes down that an operation took effect, for as long as its lane is in it.
fn confirm(lane: &LaneRecord, operation: u64) {
    // Relaxed: made visible by the Release of the compare-and-swap that overwrites the word; none needs it
    // before. A maximum, not a store: a slower helper of an earlier
    // operation must not lower it.
    lane.confirmed.fetch_max(operation, Ordering::Relaxed);
}
