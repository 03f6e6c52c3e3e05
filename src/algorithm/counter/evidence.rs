//! Evidence that an operation took effect, which outlives the word that it wrote.
//!
//! # Two kinds
//!
//! To settle a word by (q, tag) a lane could look at q's lane, and would nearly always learn that
//! nothing is owed. But that look costs as much as the operation: q has just written there, so the
//! line has to come from q's processor, and to go back. So it leaves the evidence in a place of its
//! own, its *witness* on the row: "(q, tag) took effect, I saw it". A lane has one witness for each
//! row, and so has to look before it overwrites that with another:
//!
//! - *The new one is of the same lane q.* Then q went on to a later operation, so the earlier one is
//!   complete, and nobody needs to know of it any more.
//! - *It is of another lane.* Now q's lane is looked at: if q still is in the operation, `confirmed`
//!   is raised to its number, and stays.
//!
//! A word whose operation changed tokens is settled at once, by a look at its lane: its tokens may
//! have to be brought up to date. So is one that is overwritten by nobody.
//!
//! # The late helper
//!
//! A helper h that found word w by (q, tag) reads q's operation number n, then its intent, and may
//! sleep anywhere. Three things can have happened to q:
//!
//! - *q is still in n.* Its fields are those of n, and w is by n: raising `confirmed` to n tells
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
//!
//! # The old witness
//!
//! A witness may lie for years, and tags wrap: what it says of (q, tag) must not be taken for a later
//! operation of q with that tag. So there is a count of *eras*, which each lane moves on whenever its
//! operation numbers have come half the way to the same tag again, and writes down. A witness says
//! which era it was when it was made, and is believed if q has not begun a later one.
//!
//! - *One of the present operation is believed:* the era that q wrote down had begun before q's word was
//!   seen.
//! - *One of the last operation with that tag is not:* q has moved the count on twice since. Before
//!   the first time it took its name off all words that still bore it, so whoever witnessed one of
//!   them had seen it before that, and, unless it slept, had read the count before the second time.
//! - *A lane that has not been used for long* would seem to be of an era to come when eras are counted
//!   modulo something. Whoever joins brings the eras of its lanes up to date.

use super::Counter;
use crate::algorithm::primitive::Ordering;
use crate::algorithm::record::lane::LaneRecord;
use crate::algorithm::record::ledger::Plane;
use crate::algorithm::word::{Amount, Era, Intent, LaneId, NO_LANE, Tag, TokenWord, Witness, Word};

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
            return true; // our own last operation on this row, or nobody's
        }
        if me != NO_LANE && !seen.is_with_tokens() {
            self.witness(row, seen, me);
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
    fn witness(&self, row: usize, seen: Word, me: LaneId) {
        let mine = self.plane(me, row, Plane::Witness);
        // Relaxed: our own word.
        let last = Witness::from_bits(mine.load(Ordering::Relaxed));
        if last.lane() != seen.lane() {
            self.promote(row, last);
        }
        // Relaxed: the count is no lower than the lane's era was when it wrote the word that we have
        // acquired.
        let era = Era::of(self.eras.load(Ordering::Relaxed));
        // Release: pairs with the Acquire in `is_witnessed`; who sees this in the place of the last
        // one must see that the latter was confirmed.
        mine.store(Witness::of(seen, era).to_bits(), Ordering::Release);
    }

    /// Makes the evidence in a witness outlive it, if it still is needed.
    #[inline(never)]
    fn promote(&self, row: usize, witness: Witness) {
        let Some(lane) = self.lane(witness.lane()) else {
            return; // there was none
        };
        // Acquire: pairs with the Release of the number in `attempt`. If it is that of a later
        // operation than was witnessed, then the intent below is not of the latter any more, and the era
        // is that of the number.
        let operation = lane.operation.load(Ordering::Acquire);
        // Relaxed, twice: ordered by it. What is newer than the number does no harm, for then the
        // number is of an operation that is over.
        let intent = lane.intent.load(Ordering::Relaxed);
        let began = lane.era.load(Ordering::Relaxed);
        if intent == Intent::active(row, witness.tag())
            && witness.names(witness.lane(), witness.tag(), began)
        {
            confirm(lane, operation);
        }
    }

    /// Whether any lane has seen the operation `tag` of lane `id` take effect on `row`. To be asked
    /// after the row's word and before `confirmed`.
    fn is_witnessed(&self, id: LaneId, row: usize, tag: Tag, began: Era) -> bool {
        (1..=self.lanes.len()).any(|other| {
            let witness = self.plane(LaneId(other as u16), row, Plane::Witness);
            // Acquire: pairs with the Release in `witness`.
            Witness::from_bits(witness.load(Ordering::Acquire)).names(id, tag, began)
        })
    }

    /// Finds out whether the operation that wrote `seen` may still be under way.
    #[inline]
    pub(super) fn writer_state(&self, row: usize, seen: Word) -> WriterState<'a> {
        let Some(lane) = self.lane(seen.lane()) else {
            return WriterState::Complete; // nobody's
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

    /// Whether the operation `tag` that lane `id` is in took effect on `row`, whose word is `seen`.
    pub(super) fn took_effect(
        &self,
        id: LaneId,
        lane: &LaneRecord,
        row: usize,
        tag: Tag,
        seen: Word,
    ) -> bool {
        if seen.is_by(id, tag) {
            return true;
        }
        // Relaxed: stored before the intent that the caller has acquired.
        let began = lane.era.load(Ordering::Relaxed);
        let operation = lane.operation.load(Ordering::Relaxed);
        // If the word no longer names the operation, then it is that of its overwriter or a later one,
        // and the caller has acquired it. Words are changed by compare-and-swap only, so to acquire a
        // later one is to acquire the overwriter's, too: this sees a witness that the overwriter has left, or
        // what was written in its place; and the Relaxed load sees `confirmed` as whoever left no
        // witness has raised it, or whoever has replaced one.
        self.is_witnessed(id, row, tag, began)
            || lane.confirmed.load(Ordering::Relaxed) >= operation
    }

    /// Ends the era of lane `me`, which is idle.
    #[cold]
    #[inline(never)]
    pub(super) fn begin_era(&self, me: LaneId, lane: &LaneRecord) {
        (0..self.words.len()).for_each(|row| self.take_name_off(row, me));
        // Relaxed: made visible by the Release of the next words that the lane writes; who sees one of
        // these must see a count that has begun this era.
        let begun = self.eras.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        // Relaxed: made visible by the Release of the operation's number.
        lane.era.store(Era::of(begun), Ordering::Relaxed);
    }

    /// Takes the name of lane `me` off a word, if it bears it.
    fn take_name_off(&self, row: usize, me: LaneId) {
        if self.load(row).lane() == me {
            // Whoever else overwrites it takes our name off as well, so either way it is done.
            let _ = self.rewrite(row, |word| (word.lane() == me).then_some(word.state()));
        }
    }

    /// Brings the era of a lane up to date that is idle and held by the caller. One that has not been
    /// used for long must not seem to be of a time to come.
    pub(crate) fn renew_era(&self, id: LaneId) {
        if let Some(lane) = self.lane(id) {
            // Relaxed, twice: made visible by the Release of the next operation's number; nobody
            // needs it before.
            let begun = Era::of(self.eras.load(Ordering::Relaxed));
            lane.era.store(begun, Ordering::Relaxed);
        }
    }
}

/// Makes known for ever that an operation took effect.
fn confirm(lane: &LaneRecord, operation: u64) {
    // Relaxed: made visible by the Release of the witness or the compare-and-swap that overwrites
    // the evidence; nobody needs it before. A maximum, not a store: a slower helper of an earlier
    // operation must not lower it.
    lane.confirmed.fetch_max(operation, Ordering::Relaxed);
}
