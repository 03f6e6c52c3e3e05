//! Placing a request: the counter's operations in the order that keeps caps.
//!
//! An engine's caps are looked at when it is chosen, and hold because the request is counted on the very
//! word by which that was done. The caps of the table as a whole are about all engines' words at once, so
//! they need more.
//!
//! A request that gets more tokens later is placed once more, in a sense: with no request in it, on the engine that it is
//! on. So what is said of requests here holds of these tokens, too.
//!
//! # The caps of the table
//!
//! If the table has a cap, a request has its place *reserved* on one more row, the table's own, before it is
//! counted on its engine, and is taken off that row right after. So that row counts the requests that are just
//! being placed, and those that are in flight are the sum of the engines' rows. A place is reserved if the
//! sum, with those that are reserved already and this one, is within the cap:
//!
//! 1. read the table's own word, w;
//! 2. read all engines' words, and add them up;
//! 3. if there is room, compare-and-swap w to one that counts this request as well.
//!
//! *Why the cap holds.* Take the instant at which step 3 succeeds. Another request whose place was reserved
//! before w is either counted in w, or was taken off again before w; then its engine's word was changed before
//! that, so step 2 has read it. One that is reserved after w makes step 3 fail. So all that is in flight at that
//! instant, or will be without a further step 3, has been added up. What finishes meanwhile only makes the sum
//! too large. A slot that is used for the first time is no exception: how many there are is read after w.
//!
//! *The cost in exactness.* A request between its engine's row and being taken off is in both sums. One
//! that finds room but for those that are being placed looks again for a moment, until they have been. A
//! process that is stopped there keeps one place from others, and so does one that has died there until it is
//! reaped, which a refusal has done.
//!
//! # Why these caps can change
//!
//! A request that was placed without a cap, or under another one, is in its engine's row like any other, so
//! there is nothing to be made up for. [`set_total_caps`](Rows::set_total_caps) says in the hints that there
//! are caps, then writes them, then takes that back if there are none, then moves the version on and rewrites all
//! rows, twice. (In this order, so that a process which dies there leaves no cap that is not heeded.) Let a request count on
//! row j after it has returned. Then it was chosen by the word of the second rewrite of j or a later one, so
//! the hints and the caps, which it has read after that word, are those that were written before it. That is why one
//! rewrite would do for a cap that is lowered. The other one is for a table that had none: requests that were
//! not reserved are counted until the first rewrite of their row, and step 2 must read the rows
//! after all of these.

use super::rows::{Rows, ScanHints};
use super::total::{Full, Taken, Total};
use super::word::{Amount, LaneId, Word};
use crossbeam_utils::Backoff;

/// An engine, and the word by which it was chosen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice {
    pub(crate) seen: Word,
    engine: u32,
    /// In one word with the engine's number: parts of a word that are copied one by one cost more than all else here.
    marks: u32,
}

const TIED: u32 = 1;
const TOTAL_CAP: u32 = 2;

impl Choice {
    /// An engine that was chosen by this word, and hints that were read after that.
    #[inline]
    pub(crate) fn new(engine: usize, seen: Word, hints: ScanHints) -> Self {
        Self {
            seen,
            engine: engine as u32,
            marks: if hints.has_total_cap() { TOTAL_CAP } else { 0 },
        }
    }

    /// The same, as one among equals or not.
    #[inline]
    pub(crate) fn tied(mut self, is_tied: bool) -> Self {
        self.marks = (self.marks & !TIED) | if is_tied { TIED } else { 0 };
        self
    }

    #[inline]
    pub(crate) fn engine(&self) -> usize {
        self.engine as usize
    }

    /// Whether it was one among equals, so that it was chosen for its turn.
    #[inline]
    pub(crate) fn is_tied(&self) -> bool {
        self.marks & TIED != 0
    }

    /// Whether the table as a whole has a cap.
    #[inline]
    fn has_total_cap(&self) -> bool {
        self.marks & TOTAL_CAP != 0
    }
}

/// Why a request was not placed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal<E> {
    /// The table as a whole is at its cap.
    AtTheTotal(Full),
    /// No engine was chosen.
    Unchosen(E),
}

impl Rows<'_> {
    /// Counts a request on the engine that `choose` names, as lane `me`, and returns that choice.
    ///
    /// The choice is atomic: it counts only if the word that it was made by still stands; otherwise
    /// `choose` is asked again.
    #[inline(always)]
    pub(crate) fn place<E>(
        &self,
        me: LaneId,
        change: Amount,
        mut choose: impl FnMut() -> Result<Choice, E>,
    ) -> Result<Choice, Refusal<E>> {
        let backoff = Backoff::new();
        loop {
            let choice = choose().map_err(Refusal::Unchosen)?;
            // If a cap comes after the choice, then the row is rewritten after that, and the attempt fails.
            let placed = match choice.has_total_cap() {
                false => self
                    .counter
                    .attempt(me, choice.engine(), choice.seen, change),
                true => {
                    (self.place_within_total(me, choice, change)).map_err(Refusal::AtTheTotal)?
                }
            };
            if placed {
                return Ok(choice);
            }
            // Another request was counted there meanwhile.
            backoff.spin();
        }
    }

    /// Counts a request on an engine that was chosen before lane `me` was entered, if its word still stands.
    pub(crate) fn place_chosen(
        &self,
        me: LaneId,
        change: Amount,
        choice: Choice,
    ) -> Result<Choice, Refusal<()>> {
        let mut choice = Some(choice);
        self.place(me, change, || {
            // The lane may have overwritten that word since, for another thread or in the user's own code. So it
            // is loaded once more: see `attempt`.
            let stands = |choice: &Choice| self.counter.load(choice.engine()) == choice.seen;
            choice.take().filter(stands).ok_or(())
        })
    }

    /// One attempt to count a request, within the caps of the table.
    #[inline(never)]
    fn place_within_total(&self, me: LaneId, choice: Choice, change: Amount) -> Result<bool, Full> {
        let reserved = self.reserve(me, change)?;
        let placed = self
            .counter
            .attempt(me, choice.engine(), choice.seen, change);
        if reserved != Amount::ZERO {
            self.counter.add(me, self.total_row(), reserved.negated());
        }
        Ok(placed)
    }

    /// Counts a request on the table's own row, unless the table is at a cap. Returns the amount that was counted.
    fn reserve(&self, me: LaneId, change: Amount) -> Result<Amount, Full> {
        /// How often those are waited for that are being placed, which takes each a moment if it is not
        /// stopped.
        const LOOKS: u32 = if cfg!(loom) { 1 } else { 32 };
        let backoff = Backoff::new();
        let mut looks = 0;
        loop {
            let being_placed = self.counter.observe(self.total_row());
            let caps = self.total_caps();
            let share = caps.share(change);
            if share == Amount::ZERO {
                return Ok(share);
            }
            let taken = self.taken(caps.tokens.is_some());
            match caps.full(taken.plus(being_placed), share) {
                None if (self.counter).attempt(me, self.total_row(), being_placed.0, share) => {
                    return Ok(share);
                }
                // Another operation on the row took effect: not a spin without bound.
                None => {}
                Some(full) if looks == LOOKS => return Err(full),
                Some(_) => {
                    if let Some(full) = caps.full(taken, share) {
                        return Err(full);
                    }
                    looks += 1;
                }
            }
            backoff.spin();
        }
    }

    /// Adds up the counts of all engines, each as it is when it is read; tokens only if they are asked for.
    pub(crate) fn taken(&self, with_tokens: bool) -> Taken {
        (0..self.in_use(self.hints()))
            .map(|engine| match with_tokens {
                true => self.counter.observe(engine),
                false => (self.counter.load(engine), 0),
            })
            .fold(Taken::default(), Taken::plus)
    }

    /// Changes the tokens of a request that is counted on `engine` from `before` to `after`, as lane `me`, in any state
    /// of the engine. Fails, and nothing is changed, if there are to be more than a cap leaves room for:
    /// [`Refusal::Unchosen`] is for that of the engine.
    #[inline(never)]
    pub(crate) fn change_tokens(
        &self,
        me: LaneId,
        engine: usize,
        before: u32,
        after: u32,
    ) -> Result<(), Refusal<()>> {
        let change = Amount::new(0, i64::from(after) - i64::from(before));
        let more = match after.checked_sub(before) {
            Some(0) => return Ok(()),
            Some(more) => more,
            None => {
                self.counter.add(me, engine, change);
                return Ok(());
            }
        };
        // Placed as a request would be, on an engine that was chosen before, so its caps hold in the same way.
        let if_it_has_room = || {
            let (seen, taken) = self.counter.observe(engine);
            // After the word, so that the cap is no older than it.
            match self.has_room(engine, taken, more) {
                true => Ok(Choice::new(engine, seen, self.hints())),
                false => Err(()),
            }
        };
        self.place(me, change, if_it_has_room).map(drop)
    }

    /// The caps of the table as a whole.
    pub(crate) fn total_caps(&self) -> Total {
        self.total_caps.load()
    }

    /// Sets the caps of the table as a whole: when this returns, no request is counted by others. The
    /// caller is the only one to change the table's engines.
    pub(crate) fn set_total_caps(&self, caps: Total) {
        // First: if this process dies in the middle, caps that are there are heeded. Without caps that does no harm.
        self.update_hints(|hints| hints.with_total_cap(true));
        self.total_caps.store(caps);
        if caps.is_none() {
            self.update_hints(|hints| hints.with_total_cap(false));
        }
        self.announce_all();
        self.announce_all();
    }

    /// The row that counts the requests that are being placed.
    fn total_row(&self) -> usize {
        self.counter.total_row
    }
}
