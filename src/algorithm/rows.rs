//! The engines' rows as a choice sees them: counts, limits, and one word about all of them.
//!
//! A choice names one row, and counts only if that row's word still is the one by which it was chosen.
//! So a change of *that* row is never missed. A change of another row could be: a choice reads row 0,
//! which is down; row 0 comes up, and the change returns; the choice goes on to row 1 and counts there,
//! by a state of row 0 that is gone. This matters for each change that makes an engine *more attractive*:
//! it takes requests again, is new, has a higher cap or another weight. (A change that makes an engine
//! less attractive needs no more than its own row: the best of the others stays the best of them.)
//!
//! # What "has returned" promises
//!
//! When such a change has returned, no request is counted by the state before it. The change
//!
//! 1. changes its row,
//! 2. moves the *version* in the hints on,
//! 3. rewrites every other row: it gets a new tag, and keeps all else.
//!
//! A choice reads the hints, then the limits, then the words, then the hints again, and starts over if they have
//! changed. The first two it may have read for an earlier choice, and kept. Let a choice of row j count after step 3 has
//! rewritten j. Then the word by which j was chosen is that of the rewrite or a later one, or the compare-and-swap would
//! fail. So the choice has read j after step 2, and finds the new version at its second look at the hints. At its first
//! one, too, or it would start over. Then it has read all limits and all words after step 1: by the state that is.
//!
//! A change of limits rewrites its own row in step 3, too. A choice does not read limits together with the word of their
//! row: it could read the limits of before, then the row's new word, and take that engine by the weight that it had.
//!
//! While limits are being changed the hints say so, from before step 1 to step 2, and then nothing that was read of
//! them is kept for another choice. So a process that dies in the middle of a change leaves none that goes by the limits of
//! before for good: each choice reads them anew, until the next change is complete.
//!
//! Rows that take no requests are rewritten, too. If step 3 only looked at one and passed it over, it could
//! come up right after, by a change that has seen nothing of this one; on machines that reorder a store and
//! a later load, a choice could see that row up and the version as it was. As it is, the process that brings the row up
//! overwrites the rewrite, and a choice that sees the row up sees the version, too.
//!
//! # Cost
//!
//! A choice pays two loads of the hints, whose line no request writes. A change pays one read-modify-write a row;
//! each choice that it overtakes is made once more, and each lane works out once more what it keeps.
//!
//! A publication and the end of a request are no such changes: a choice that is under way may be made by
//! the statistics and the counts of a moment ago. Nothing is promised of them but to choices that begin
//! after they have returned.

use super::counter::Counter;
use super::record::Field;
use super::total::TotalCaps;
use super::word::{MAX_REQUESTS, RowState, Word};
use crate::algorithm::primitive::{Atomic, AtomicU64, Ordering};
use bytemuck::{Pod, Zeroable};

/// The weight and the request cap of an engine, in one word that a scan reads:
/// weight 32 | 0 (12) | request cap 20.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Pod, Zeroable)]
#[repr(transparent)]
pub(crate) struct Limits(u64);

impl Limits {
    pub(crate) const FIELD: Field = Field::new("limits", |found| {
        let limits = found.typed::<Self>();
        format!("weight {}, cap {}", limits.weight(), limits.max_in_flight())
    })
    .using(((u32::MAX as u64) << 32) | MAX_REQUESTS as u64);

    pub(crate) fn new(weight: f32, max_in_flight: u32) -> Self {
        let weight = u64::from(weight.to_bits());
        Self((weight << 32) | u64::from(max_in_flight))
    }

    #[inline]
    pub(crate) fn weight(self) -> f32 {
        f32::from_bits((self.0 >> 32) as u32)
    }

    #[inline]
    pub(crate) fn max_in_flight(self) -> u32 {
        self.0 as u32 & MAX_REQUESTS
    }
}

/// The most tokens that an engine takes, in a word of its own: 0 (32) | cap 32.
pub(crate) const TOKEN_CAP: Field = Field::number("max_tokens").of_bits(32);

/// Hints for a scan about all engines together, in one word:
/// version 30 | limits are being changed 1 | the table has a cap 1 | engine slots in use 32.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Pod, Zeroable)]
#[repr(transparent)]
pub(crate) struct ScanHints(u64);

const TOTAL_CAP: u64 = 1 << 32;
const CHANGING: u64 = 1 << 33;
const ONE_VERSION: u64 = 1 << 34;

impl ScanHints {
    pub(crate) const FIELD: Field = Field::new("hints", |found| {
        let hints = found.typed::<Self>();
        let in_use = hints.in_use();
        let total = match hints.has_total_cap() {
            true => "the table has a cap",
            false => "the table has no cap",
        };
        let version = hints.version();
        let changing = if hints.is_changing() {
            ", limits are being changed"
        } else {
            ""
        };
        format!("{in_use} engine slots in use, {total}{changing}, version {version}")
    });

    /// One more than the highest slot ever used.
    #[inline]
    pub(crate) fn in_use(self) -> usize {
        self.0 as u32 as usize
    }

    /// Whether the table as a whole has a cap.
    #[inline]
    pub(crate) fn has_total_cap(self) -> bool {
        self.0 & TOTAL_CAP != 0
    }

    /// How many changes have made an engine more attractive, modulo 2^30.
    pub(crate) fn version(self) -> u64 {
        self.0 / ONE_VERSION
    }

    pub(crate) fn with_in_use(self, in_use: usize) -> Self {
        Self((self.0 & !u64::from(u32::MAX)) | in_use as u64)
    }

    pub(crate) fn with_total_cap(self, has_cap: bool) -> Self {
        Self((self.0 & !TOTAL_CAP) | (u64::from(has_cap) * TOTAL_CAP))
    }

    /// Whether limits of engines are being changed, so that nothing that is read of them may be kept. A process that
    /// was killed while it changed them leaves it so until the next change.
    #[inline]
    pub(crate) fn is_changing(self) -> bool {
        self.0 & CHANGING != 0
    }

    fn changing(self) -> Self {
        Self(self.0 | CHANGING)
    }

    fn changed(self) -> Self {
        Self((self.0 & !CHANGING).wrapping_add(ONE_VERSION))
    }

    fn next(self) -> Self {
        Self(self.0.wrapping_add(ONE_VERSION))
    }
}

/// A row does not have the engine that was meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Gone;

/// The rows of a table's engines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows<'a> {
    pub(crate) counter: Counter<'a>,
    pub(crate) hints: &'a Atomic<ScanHints>,
    pub(crate) limits: &'a [Atomic<Limits>],
    pub(crate) token_caps: &'a [AtomicU64],
    pub(crate) total_caps: &'a TotalCaps,
}

impl<'a> Rows<'a> {
    #[inline]
    pub(crate) fn hints(&self) -> ScanHints {
        // Acquire: pairs with the Release in `update_hints`. A scan that sees a slot in use must see it
        // written, and one that sees a version must see the row whose change has moved it on.
        self.hints.load(Ordering::Acquire)
    }

    /// How many slots a scan has to look at. Whatever the file says, there are that many.
    #[inline]
    pub(crate) fn in_use(&self, hints: ScanHints) -> usize {
        hints.in_use().min(self.counter.total_row)
    }

    #[inline]
    pub(crate) fn limits(&self, engine: usize) -> Limits {
        // Relaxed: written before the row's word was rewritten, and read after that word, whose
        // Release and Acquire order the two.
        self.limits[engine].load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn max_tokens(&self, engine: usize) -> u32 {
        // Relaxed: as for the limits.
        self.token_caps[engine].load(Ordering::Relaxed) as u32
    }

    /// Whether a request of so many tokens may join those that are taken. One without any always may.
    #[inline]
    pub(crate) fn has_room(&self, engine: usize, taken: u32, tokens: u32) -> bool {
        let after = u64::from(taken) + u64::from(tokens);
        tokens == 0 || after <= u64::from(self.max_tokens(engine))
    }

    /// Writes an engine's limits. The caller is the only one to change engines, and [announces](Self::announce_all) them
    /// next, which makes them visible.
    pub(crate) fn set_limits(&self, engine: usize, limits: Limits, max_tokens: u32) {
        self.update_hints(ScanHints::changing);
        // Relaxed, both: made visible by the Releases of what follows.
        self.token_caps[engine].store(max_tokens.into(), Ordering::Relaxed);
        self.limits[engine].store(limits, Ordering::Relaxed);
    }

    /// Makes a choice while no engine becomes more attractive. Makes it again if one did meanwhile:
    /// not a spin without bound, for then another process has completed a change.
    pub(crate) fn choose_while_unchanged<T>(&self, mut choose: impl FnMut() -> T) -> T {
        let mut hints = self.hints();
        loop {
            let choice = choose();
            let now = self.hints();
            if now == hints {
                return choice;
            }
            hints = now;
        }
    }

    /// Rewrites an engine's row in the state that `to` says, in one step, if `to` says one. Returns the word that
    /// was replaced by that; [`Gone`] if the row has no engine, or another one than `is_it` asks for by
    /// its generation.
    ///
    /// `is_it` is asked after the row's word was loaded, and the rewrite replaces that very word or fails. A
    /// slot is given a new generation only while its row is Removed and counts nothing, and the row is
    /// rewritten Active after that, with Release; the load of the word is an Acquire, and all words after
    /// that rewrite are made by read-modify-writes, so the two pair. So the generation that `is_it` reads is
    /// that of the word's engine or a later one. If it is a later one, the word was replaced before that
    /// generation was written, by rewrites that have tags of their own, and ours fails. If ours succeeds,
    /// the engine that `is_it` knew is the one that was rewritten.
    pub(crate) fn rewrite_engine(
        &self,
        row: usize,
        is_it: impl Fn() -> bool,
        to: impl Fn(RowState) -> Option<RowState>,
    ) -> Result<Option<Word>, Gone> {
        let mut is_there = false;
        let rewritten = self.counter.rewrite(row, |word| {
            is_there = word.state() != RowState::Removed && is_it();
            to(word.state()).filter(|_| is_there)
        });
        is_there.then_some(rewritten.ok()).ok_or(Gone)
    }

    /// A row takes requests again: when this returns, no request is counted on another one by what was before.
    pub(crate) fn announce(&self, row: usize) {
        self.update_hints(ScanHints::next);
        self.rewrite_all(|other| other != row);
    }

    /// The limits of any row or the caps of the table have changed: when this returns, no request is counted by what
    /// was before. The caller is the only one to change engines.
    pub(crate) fn announce_all(&self) {
        self.update_hints(ScanHints::changed);
        self.rewrite_all(|_| true);
    }

    /// Has all lanes work out anew what they know of the limits. The caller is the only one to change engines.
    pub(crate) fn outdate_terms(&self) {
        self.update_hints(ScanHints::changed);
    }

    fn rewrite_all(&self, which: impl Fn(usize) -> bool) {
        for row in (0..self.in_use(self.hints())).filter(|&row| which(row)) {
            let same = |word: Word| Some(word.state());
            // It names a state for each word, so it never gives up.
            let _ = self.counter.rewrite(row, same);
        }
    }

    /// Changes the hints in one step.
    pub(crate) fn update_hints(&self, change: impl Fn(ScanHints) -> ScanHints) {
        // Relaxed: the compare-and-swap decides, and no other word is read by what the hints say.
        let mut seen = self.hints.load(Ordering::Relaxed);
        // Release on success: pairs with the Acquire in `hints`. Relaxed on failure: as above.
        while let Err(other) =
            self.hints
                .compare_exchange(seen, change(seen), Ordering::Release, Ordering::Relaxed)
        {
            seen = other;
        }
    }
}
