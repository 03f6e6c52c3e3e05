//! The counter that stays exact when its writers are killed.
//!
//! A shared count and the private ledgers that say whose it is are different words, and a process
//! can die between writing one and the other. So every change of a row is an *operation* of a
//! *lane*, recoverable at each of its steps: after the lane's death, the process that holds the lane next can
//! tell whether the change took effect, and complete the ledger. It is the recoverable
//! compare-and-swap of the persistent-memory literature (Attiya, Ben-Baruch and Hendler, PODC
//! 2018; Ben-David, Blelloch, Friedman and Wei, SPAA 2019), with a process's death in the place of
//! a power failure: memory outlives the process, nothing has to be flushed.
//!
//! A row is two words, [`Word`] and [`TokenWord`]. An operation of lane `me` on a row:
//!
//! 1. reads the word and takes the next operation number, whose low bits are the *tag*;
//! 2. *secures* the word: makes the evidence that the operation which wrote it took effect outlive
//!    the word, and brings the row's tokens up to date;
//! 3. writes down what it is about to do (`change`, what its ledger and the row's tokens are before,
//!    then `intent`) and compare-and-swaps the word to `new value | me | tag`. This is the one step at
//!    which the change takes effect, requests and tokens alike. On failure it has not: the intent
//!    is cleared, and the caller looks again;
//! 4. brings the tokens up to date (unless another lane has, when it secured the word), writes its ledger, clears
//!    the intent.
//!
//! # What holds at every instant
//!
//! - **Fields move only while idle.** A lane's operation number and its fields change only
//!   while its intent is idle, so an active intent always has its own fields beside it.
//! - **Evidence outlives the word.** An operation whose intent is active took effect if and only if
//!   its row's word names it, or a [`Witness`] of its lane does, or `confirmed` has reached its number (but see
//!   "What wraps"). The evidence is left before the word is overwritten, and none is left of an operation that did
//!   not take effect.
//! - **Tokens lag by at most one operation.** A word is overwritten only after the tokens of the
//!   operation that it names were brought up to date.
//!
//! What the evidence is, why a helper that is late does no harm, and why no old evidence is taken for new, is argued in
//! [`evidence`].
//!
//! # What wraps
//!
//! A tag is 29 bits. Harm needs all of this at once, one way or the other:
//!
//! - A process sleeps between reading a word and its compare-and-swap; meanwhile the word's last writer
//!   completes a multiple of 2^29 operations (a quarter of a minute at full speed, spent between two
//!   instructions of the sleeper) of which the last leaves the same value, state and tag in the word;
//!   and that writer dies in the few instructions before its ledger is written.
//! - A process sleeps between loading a word and leaving a witness, for more than 2^27 operations of the word's last
//!   writer, and is killed in the few instructions before it withdraws that witness. Before its next sweep that writer
//!   dies, too: in the few instructions before its ledger is written, in an operation whose word the first lane
//!   has overwritten; or, after a sleep of three quarters of a turn, before the compare-and-swap of the one operation
//!   that has the same tag.
//!
//! A token version is 32 bits, and harm needs a helper that sleeps for an exact multiple of 2^32 token
//! operations on that very row which leave the same token count. Operation numbers are 64 bits and do not wrap in
//! the life of a machine.

pub(crate) mod audit;
mod evidence;

use super::record::lane::{LaneRecord, REASONS};
use super::record::ledger::{Ledger, PLANES, Plane};
use super::word::{Amount, Intent, LaneId, NO_LANE, RowState, Tag, TokenWord, Witness, Word};
use crate::algorithm::primitive::{Atomic, AtomicU64, Ordering, about_to_write};
use evidence::WriterState;

/// The rows of a table, with the lanes that change them and the ledgers that say whose the counts
/// are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counter<'a> {
    /// One for each row.
    pub(crate) words: &'a [Atomic<Word>],
    /// One for each row.
    pub(crate) tokens: &'a [Atomic<TokenWord>],
    /// Lane n is at n - 1.
    pub(crate) lanes: &'a [LaneRecord],
    /// Lane by lane, and plane by plane, `plane_stride` apart; a word for each row.
    pub(crate) ledgers: &'a [AtomicU64],
    pub(crate) plane_stride: usize,
    /// Lane by lane, `witness_stride` apart: what it has seen of each lane's operations.
    pub(crate) witnesses: &'a [Atomic<Witness>],
    pub(crate) witness_stride: usize,
    /// Source of tags for words written without a lane (state changes).
    pub(crate) anonymous_tags: &'a AtomicU64,
    /// The table's own row. Those before it are the engines'.
    pub(crate) total_row: usize,
    /// The first of the queue's rows: that of all requests that wait, and then one for each class. All rows between the
    /// table's own and this one count nothing.
    pub(crate) queue_row: usize,
}

/// A lane that the caller holds, and its record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaneInUse<'a> {
    id: LaneId,
    record: &'a LaneRecord,
}

impl<'a> Counter<'a> {
    /// Returns the word of `row`, for [`attempt`](Self::attempt).
    #[inline]
    pub(crate) fn load(&self, row: usize) -> Word {
        // Acquire: pairs with the Release of the compare-and-swap in `attempt` and `rewrite`. Who sees
        // a word must see its writer's operation number, intent and fields.
        self.words[row].load(Ordering::Acquire)
    }

    /// Returns the word of `row` and its tokens, both as of one moment.
    pub(crate) fn observe(&self, row: usize) -> (Word, u32) {
        loop {
            let seen = self.load(row);
            if let Some(tokens) = self.tokens_at(row, seen) {
                return (seen, tokens.tokens());
            }
            // Another operation on this row took effect in between: not a spin without bound.
        }
    }

    /// Fetches the lines that `me` is about to write, with that of `row` if it is known yet: all at the same time,
    /// not one after the other. Returns the lane, for [`attempt_in`](Self::attempt_in).
    #[inline(always)]
    pub(crate) fn prepare(&self, me: LaneId, row: Option<usize>) -> LaneInUse<'a> {
        let record = &self.lanes[usize::from(me.0) - 1];
        about_to_write(record);
        if let Some(row) = row {
            about_to_write(&self.words[row]);
        }
        LaneInUse { id: me, record }
    }

    /// One operation of lane `me`: changes `row` by `change` if its word still is `seen`.
    ///
    /// The caller must hold `me`, alone, and must have held it when [`load`](Self::load) or
    /// [`observe`](Self::observe) returned `seen`: if it had overwritten that very word meanwhile, then this attempt
    /// would withdraw the witness of it. Caps that were checked against `seen` hold, since the change takes effect on
    /// that very word or not at all.
    pub(crate) fn attempt(&self, me: LaneId, row: usize, seen: Word, change: Amount) -> bool {
        let record = &self.lanes[usize::from(me.0) - 1];
        self.attempt_in(LaneInUse { id: me, record }, row, seen, change)
    }

    /// The same, in a lane that was [prepared](Self::prepare).
    #[inline(always)] // what is known of the change where it is called makes half of it go away
    pub(crate) fn attempt_in(
        &self,
        lane: LaneInUse<'_>,
        row: usize,
        seen: Word,
        change: Amount,
    ) -> bool {
        let (me, lane, word) = (lane.id, lane.record, &self.words[row]);
        if !self.secure_evidence(row, seen, me) {
            return false;
        }
        // Relaxed, here and below where a ledger is read: the lane is ours, so these are our own
        // last stores, or those of a former holder from whom the lane's lock has handed them over.
        let last = lane.operation.load(Ordering::Relaxed);
        let mut operation = last.wrapping_add(1);
        if seen.is_by(me, Tag::of(operation)) {
            operation = operation.wrapping_add(1);
        }
        if Tag::quarter_ends_between(last, operation) {
            self.sweep(me);
        }
        let tag = Tag::of(operation);
        let total = self.total(me, row, change);
        let total_before = total.load(Ordering::Relaxed);

        // Release: pairs with the first Acquire in `writer_state`. Who sees this number must not see a
        // word of the row that is older than the one this operation started from.
        lane.operation.store(operation, Ordering::Release);
        // Relaxed: only read in `recover`, which acquires the intent below.
        lane.total_before.store(total_before, Ordering::Relaxed);
        // Release: pairs with the Acquire of this field in `writer_state`. Who sees a field of this
        // operation must see its number when it reads that again.
        lane.change.store(change, Ordering::Release);
        let tokens = (change.tokens() != 0).then(|| self.write_down_tokens(lane, me, row));
        // Release: pairs with the Acquire of the intent in `writer_state` and `recover`. Who sees the
        // intent must see its fields.
        lane.intent
            .store(Intent::active(row, tag), Ordering::Release);

        // Release on success: pairs with the Acquire in `load`; who sees the word must see the
        // intent, or they would overwrite the word without securing it. Relaxed on failure: the
        // word that we find is not used.
        let taken = word
            .compare_exchange(
                seen,
                seen.changed(change, me, tag),
                Ordering::Release,
                Ordering::Relaxed,
            )
            .is_ok();
        if taken {
            if let Some((tokens_before, held_before)) = tokens {
                self.advance_tokens(row, tokens_before, change);
                self.hold_tokens(me, row, held_before, change);
            }
            // Release: pairs with the Acquire fence in `still`; who sees this total must see the word
            // that it belongs to. The lane's next holder reads it after the intent below, or completes
            // it.
            total.store(after(total_before, change), Ordering::Release);
        } else {
            self.withdraw_witness(seen, me);
        }
        // Release: pairs with the Acquire of the intent in `writer_state`, whose reader takes "idle"
        // to mean that the tokens are up to date, and in `recover`, whose reader takes it to mean
        // that the ledger is.
        lane.intent.store(Intent::IDLE, Ordering::Release);
        taken
    }

    /// Writes down the tokens of `row`, its own and those in the ledger, before they change.
    fn write_down_tokens(&self, lane: &LaneRecord, me: LaneId, row: usize) -> (TokenWord, u64) {
        // Relaxed: securing the word has ordered it. The tokens were brought up to date either by
        // us, or before the "idle" that we have acquired, or before the word that we have was
        // written. So if the word is not overwritten before we do that, then this is its token word.
        let tokens_before = self.tokens[row].load(Ordering::Relaxed);
        let held_before = self.plane(me, row, Plane::Tokens).load(Ordering::Relaxed);
        // Relaxed and Release: as for the total and the change.
        lane.held_tokens_before
            .store(held_before, Ordering::Relaxed);
        lane.tokens_before.store(tokens_before, Ordering::Release);
        (tokens_before, held_before)
    }

    /// Changes `row` by `change`, as lane `me`, whatever its word is.
    pub(crate) fn add(&self, me: LaneId, row: usize, change: Amount) {
        // A failed attempt means that another operation on the row took effect.
        while !self.attempt(me, row, self.load(row), change) {}
    }

    /// Changes the state of `row`, if `to` names a new one for the word it is shown.
    ///
    /// Returns the word as it was. The new word differs from the old one in its tag, so a request that was chosen
    /// by an older word fails to count on it: once this returns, none is counted by the row's former state, caps or
    /// weight.
    pub(crate) fn rewrite(
        &self,
        row: usize,
        mut to: impl FnMut(Word) -> Option<RowState>,
    ) -> Result<Word, Word> {
        // Relaxed: only has to be a number that no other rewrite has.
        let tag = Tag::of(
            self.anonymous_tags
                .fetch_add(1, Ordering::Relaxed)
                .wrapping_add(1),
        );
        loop {
            let seen = self.load(row);
            let state = to(seen).ok_or(seen)?;
            if self.secure_evidence(row, seen, NO_LANE)
                && self.words[row]
                    // Release on success: pairs with the Acquire in `load`; who sees the state
                    // must see what was written to the row's configuration before it.
                    .compare_exchange(
                        seen,
                        seen.rewritten(state, tag),
                        Ordering::Release,
                        Ordering::Relaxed,
                    )
                    .is_ok()
            {
                return Ok(seen);
            }
        }
    }

    /// Returns what lane `id` has done on `row`. Exact for a lane that is held by the caller and recovered.
    pub(crate) fn ledger(&self, id: LaneId, row: usize) -> Ledger {
        // Relaxed: for a lane of one's own there is nothing to order; for another's it is a glance.
        let read = |plane| self.plane(id, row, plane).load(Ordering::Relaxed);
        Ledger {
            admitted: read(Plane::Admitted),
            finished: read(Plane::Finished),
            tokens: read(Plane::Tokens) as i64,
        }
    }

    /// Counts a call that was refused, by its reason. The caller must hold lane `me`.
    pub(crate) fn count_refusal(&self, me: LaneId, reason: usize) {
        let refused = &self.lanes[usize::from(me.0) - 1].refusals[reason];
        // Relaxed, both: only the lane's holder writes it, and the lane's lock hands it to the next one.
        let before = refused.load(Ordering::Relaxed);
        refused.store(before.wrapping_add(1), Ordering::Relaxed);
    }

    /// Returns the calls that lane `id` has counted as refused, by reason.
    pub(crate) fn refusals(&self, id: LaneId) -> [u64; REASONS] {
        let refusals = &self.lanes[usize::from(id.0) - 1].refusals;
        // Relaxed: a glance, for people.
        core::array::from_fn(|reason| refusals[reason].load(Ordering::Relaxed))
    }

    /// Completes the operation that a dead lane was in. The caller must hold the lane.
    pub(crate) fn recover(&self, id: LaneId) {
        let lane = &self.lanes[usize::from(id.0) - 1];
        // Acquire: pairs with the Releases of the intent in `attempt`.
        let intent = lane.intent.load(Ordering::Acquire);
        let Some((row, tag)) = intent.operation() else {
            return; // the ledger is right
        };
        if row < self.words.len() && self.took_effect(id, lane, tag, self.load(row)) {
            // Relaxed: they were stored before the intent that we acquired, by the dead holder.
            let change = lane.change.load(Ordering::Relaxed);
            if change.tokens() != 0 {
                let tokens_before = lane.tokens_before.load(Ordering::Relaxed);
                let held_before = lane.held_tokens_before.load(Ordering::Relaxed);
                self.advance_tokens(row, tokens_before, change);
                self.hold_tokens(id, row, held_before, change);
            }
            let total_before = lane.total_before.load(Ordering::Relaxed);
            // Release: as in `attempt`.
            self.total(id, row, change)
                .store(after(total_before, change), Ordering::Release);
        }
        // Release: as at the end of `attempt`, and for the same readers.
        lane.intent.store(Intent::IDLE, Ordering::Release);
    }

    /// Returns the tokens of `row` when its word was `seen`, or `None` if the word moved meanwhile.
    fn tokens_at(&self, row: usize, seen: Word) -> Option<TokenWord> {
        let standing = match seen.is_with_tokens() {
            true => self.writer_state(row, seen),
            false => WriterState::Complete,
        };
        match standing {
            WriterState::Moved => None,
            WriterState::UnderWay {
                change,
                tokens_before,
                ..
            } if change.tokens() != 0 => Some(tokens_before.changed(change)),
            _ => {
                // Acquire: pairs with the Release in `advance_tokens`; if the tokens are of a later
                // operation, then the word below is, too.
                let tokens = self.tokens[row].load(Ordering::Acquire);
                // Relaxed: ordered after the Acquire above.
                (self.words[row].load(Ordering::Relaxed) == seen).then_some(tokens)
            }
        }
    }

    /// Applies `change` to the tokens of `row`, unless another lane has.
    fn advance_tokens(&self, row: usize, before: TokenWord, change: Amount) {
        // Release: pairs with the Acquire of the token word in `tokens_at`; who sees these tokens must
        // see the word that they belong to. A failure means that it was done.
        let _ = self.tokens[row].compare_exchange(
            before,
            before.changed(change),
            Ordering::Release,
            Ordering::Relaxed,
        );
    }

    /// Writes the tokens in the ledger of lane `id`, which were `before`, as they are after `change`.
    fn hold_tokens(&self, id: LaneId, row: usize, before: u64, change: Amount) {
        let held = before.wrapping_add_signed(change.tokens());
        // Release: as for the total in `attempt`.
        self.plane(id, row, Plane::Tokens)
            .store(held, Ordering::Release);
    }

    /// Returns the rows on which something can be counted: the engines', the table's own, and then the queue's.
    pub(crate) fn rows(&self) -> impl Iterator<Item = usize> + use<> {
        (0..self.total_row + 1).chain(self.queue_row..self.words.len())
    }

    fn lane(&self, id: LaneId) -> Option<&'a LaneRecord> {
        self.lanes.get(usize::from(id.0).checked_sub(1)?)
    }

    /// Returns the total that `change` adds to.
    #[inline(always)] // otherwise it depends on what else is in the function that routes
    fn total(&self, id: LaneId, row: usize, change: Amount) -> &'a AtomicU64 {
        let plane = match change.requests() {
            ..0 => Plane::Finished,
            _ => Plane::Admitted,
        };
        self.plane(id, row, plane)
    }

    #[inline(always)] // as above
    fn plane(&self, id: LaneId, row: usize, plane: Plane) -> &'a AtomicU64 {
        let planes = (usize::from(id.0) - 1) * PLANES + plane as usize;
        &self.ledgers[planes * self.plane_stride + row]
    }

    /// Returns the witness that lane `me` has of lane `other`. `None`: there is no such lane.
    #[inline]
    fn witness(&self, me: LaneId, other: LaneId) -> Option<&'a Atomic<Witness>> {
        let mine = (usize::from(me.0) - 1) * self.witness_stride;
        let mine = &self.witnesses[mine..][..self.lanes.len()];
        mine.get(usize::from(other.0).checked_sub(1)?)
    }
}

/// Returns a total that was `before`, after `change`.
#[inline]
fn after(before: u64, change: Amount) -> u64 {
    before.wrapping_add(change.requests().unsigned_abs())
}
