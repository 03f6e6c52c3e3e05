//! One choice of an engine for a request: the least loaded one that may take it.
//!
//! A choice is only a proposal. It names the word that it was made by, and the counter takes it only if the engine's
//! word still is that one; otherwise the caller chooses anew. So counts, caps and states that were looked at here
//! hold at the moment at which the request is counted.
//!
//! A choice reads what the lane knows of the engines ([`Terms`]), then the words, then the chosen word once more,
//! then the hints. [`rows`](super::rows) says why the hints come last, and why nothing is missed. The terms may be of limits
//! that are just being changed. Then no request is counted by this choice once that change has returned.

use super::place::Choice;
use super::rows::{Rows, ScanHints};
use super::scan::{
    ByAll, ByCount, ByFormula, ByPressure, ByTokens, Counts, Formula, Least, Loads, at_once,
    one_by_one,
};
use super::terms::{Eight, Form, Terms};
use super::word::Word;
use crate::algorithm::primitive::{Atomic, Ordering};

/// What a request asks for, apart from its load.
pub(crate) trait Wishes {
    /// Its tokens.
    fn tokens(&self) -> u32;

    /// Whether there are engines that it must not go to.
    fn has_excluded(&self) -> bool;

    /// Calls `each` with the slot of each engine that it must not go to, and a function that says whether the slot still
    /// has that engine.
    fn excluded(&self, each: impl FnMut(usize, &dyn Fn() -> bool));

    /// The engine that it prefers, and by how much its load may be above the least one.
    fn preferred(&self) -> Option<(usize, f32)>;

    /// Whether the slot of the preferred engine still has that engine. To be asked after its word was read.
    fn is_preferred(&self) -> bool;
}

/// Works terms out anew.
pub(crate) trait Renewal {
    /// Whether they are of the last publication, as far as that has a say, and of the policy.
    fn is_of_now(&self, terms: &Terms) -> bool;

    /// Whether they are of a publication that is too old by now.
    fn has_expired(&self, terms: &Terms) -> bool;

    fn renew(&self, terms: &mut Terms);
}

/// A request of so many tokens that may go anywhere.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Anywhere(pub(crate) u32);

impl Wishes for Anywhere {
    #[inline(always)]
    fn tokens(&self) -> u32 {
        self.0
    }

    #[inline(always)]
    fn has_excluded(&self) -> bool {
        false
    }

    #[inline(always)]
    fn excluded(&self, _: impl FnMut(usize, &dyn Fn() -> bool)) {}

    #[inline(always)]
    fn preferred(&self) -> Option<(usize, f32)> {
        None
    }

    fn is_preferred(&self) -> bool {
        false
    }
}

/// The least loaded engine, as it was read once more.
#[derive(Clone, Copy)]
struct Found {
    least: Least,
    seen: Word,
    /// Its tokens in flight, if they matter.
    taken: u32,
}

impl Found {
    #[inline(always)]
    fn choice(&self, hints: ScanHints) -> Choice {
        Choice::new(self.least.engine(), self.seen, hints).tied(self.least.is_tied())
    }
}

impl Rows<'_> {
    /// The short way of [`choose`](Self::choose), for a request without tokens that may go anywhere, by the count: one
    /// look, without a loop, for which a compiler would keep too much at hand. `None`: there is more to consider.
    #[inline(always)]
    pub(crate) fn choose_shortly(
        &self,
        terms: &Terms,
        turns: &[[i32; 8]],
        renewal: &impl Renewal,
    ) -> Option<Choice> {
        if !terms.are_plain() || !renewal.is_of_now(terms) {
            return None;
        }
        let words = self.counter.words.get(..terms.engines())?;
        let found = match terms.few_counts() > 0 {
            true => self.read_again(Counts, one_by_one(Counts, words, turns, |_| 0)?, 0)?,
            false if renewal.has_expired(terms) => return None,
            false => self.find_shortly(terms, words, turns)?,
        };
        // The hints after the words.
        let stands = self.hints() == terms.hints();
        stands.then(|| found.choice(terms.hints()))
    }

    #[inline(always)]
    fn find_shortly(
        &self,
        terms: &Terms,
        words: &[Atomic<Word>],
        turns: &[[i32; 8]],
    ) -> Option<Found> {
        match terms.form() {
            Form::Counts | Form::CappedCounts => self.find_once(ByCount, words, terms.of(), turns),
            Form::Pressure => self.find_once(ByPressure, words, terms.of(), turns),
            Form::All => self.find_once(ByAll, words, terms.of(), turns),
            Form::Tokens => None,
        }
    }

    #[inline(always)]
    fn find_once(
        &self,
        formula: impl Formula,
        words: &[Atomic<Word>],
        terms: &[Eight],
        turns: &[[i32; 8]],
    ) -> Option<Found> {
        let loads = ByFormula { formula, terms };
        self.read_again(loads, at_once(formula, words, terms, turns)?, 0)
    }

    /// Chooses an engine. `None`: none takes the request. `renewal` works the terms out anew. `turns` has a
    /// [`turn`](super::scan::turn) for each engine.
    pub(crate) fn choose(
        &self,
        terms: &mut Terms,
        turns: &[[i32; 8]],
        wishes: &impl Wishes,
        renewal: &impl Renewal,
    ) -> Option<Choice> {
        loop {
            if self.hints() != terms.hints()
                || !renewal.is_of_now(terms)
                || renewal.has_expired(terms)
            {
                renewal.renew(terms);
            }
            let choice = self.look(terms, turns, wishes);
            // After the words; one that finds no engine, too: an engine that came up meanwhile must not be missed.
            // If they have changed, another process has completed a part of a change: not a spin without bound.
            if self.hints() == terms.hints() {
                return choice;
            }
        }
    }

    /// Looks at all engines. `None`: none may take the request.
    #[inline(always)]
    fn look(&self, terms: &mut Terms, turns: &[[i32; 8]], wishes: &impl Wishes) -> Option<Choice> {
        let tokens = wishes.tokens();
        wishes.excluded(|engine, is_there| {
            if is_there() {
                terms.exclude(engine);
            }
        });
        let mut exclusions = wishes.has_excluded();
        let mut full = false;
        let choice = loop {
            let Some(found) = self.find_by_form(terms, turns, exclusions, tokens) else {
                break None;
            };
            if !self.has_room_for(found, tokens) {
                // This one in any case, so that this comes to an end; the others with it, or each of them would cost a
                // look at all of them.
                terms.exclude(found.least.engine());
                self.exclude_without_room(terms, tokens);
                (exclusions, full) = (true, true);
                continue;
            }
            let mut choice = found.choice(terms.hints());
            if let Some(preferred) = wishes.preferred() {
                self.prefer(terms, wishes, preferred, found, &mut choice);
            }
            if tokens > 0 && choice.is_tied() && terms.has_token_caps() {
                let least = found.least;
                choice = choice.tied(self.has_equal_with_room(terms, exclusions, tokens, least));
            }
            break Some(choice);
        };
        match full {
            true => terms.include_all(),
            false => wishes.excluded(|engine, _| terms.include(engine)),
        }
        choice
    }

    /// Finds the engine of the least load. `exclusions`: whether engines are excluded.
    #[inline(always)]
    fn find_by_form(
        &self,
        terms: &Terms,
        turns: &[[i32; 8]],
        exclusions: bool,
        tokens: u32,
    ) -> Option<Found> {
        let words = &self.counter.words[..terms.engines()];
        match terms.form() {
            Form::Counts if terms.few_counts() > 0 && !exclusions => {
                self.find(Counts, tokens, |_| one_by_one(Counts, words, turns, |_| 0))
            }
            Form::Counts | Form::CappedCounts => {
                self.find_by_formula(ByCount, words, terms, turns, tokens)
            }
            Form::Pressure => self.find_by_formula(ByPressure, words, terms, turns, tokens),
            Form::All => self.find_by_formula(ByAll, words, terms, turns, tokens),
            Form::Tokens => {
                let loads = ByTokens {
                    terms: terms.of(),
                    of_request: tokens,
                };
                let counter = &self.counter;
                self.find(loads, tokens, |is_exact| {
                    one_by_one(loads, words, turns, |engine| match is_exact {
                        true => counter.observe(engine).1,
                        // Relaxed: whether it still is so is looked at for the engine that is chosen. The tokens of another
                        // one lag by an operation at most, which has not returned yet.
                        false => counter.tokens[engine].load(Ordering::Relaxed).tokens(),
                    })
                })
            }
        }
    }

    #[inline(always)]
    fn find_by_formula(
        &self,
        formula: impl Formula,
        words: &[Atomic<Word>],
        terms: &Terms,
        turns: &[[i32; 8]],
        tokens: u32,
    ) -> Option<Found> {
        let terms = terms.of();
        let loads = ByFormula { formula, terms };
        self.find(loads, tokens, |_| at_once(formula, words, terms, turns))
    }

    /// Finds the engine that `least` names, and its word by which it is that. `least` is told whether tokens have to be
    /// those of the words.
    #[inline(always)]
    fn find<L: Loads>(
        &self,
        loads: L,
        tokens: u32,
        mut least: impl FnMut(bool) -> Option<Least>,
    ) -> Option<Found> {
        let mut is_exact = false;
        loop {
            if let Some(found) = self.read_again(loads, least(is_exact)?, tokens) {
                return Some(found);
            }
            // Another operation took effect in between, or has taken effect and not come to its tokens yet: they are
            // added from now on. Not a spin without bound.
            is_exact = true;
        }
    }

    /// Reads the word of the least loaded engine once more. `None`: it has another load by now.
    #[inline(always)]
    fn read_again<L: Loads>(&self, loads: L, least: Least, tokens: u32) -> Option<Found> {
        let (seen, taken) = match tokens > 0 || L::BY_TOKENS {
            true => self.counter.observe(least.engine()),
            false => (self.counter.load(least.engine()), 0),
        };
        let stands = loads.load(least.engine(), seen, taken) == least.load();
        stands.then_some(Found { least, seen, taken })
    }

    #[inline(always)]
    fn has_room_for(&self, found: Found, tokens: u32) -> bool {
        self.has_room(found.least.engine(), found.taken, tokens)
    }

    /// Excludes the engines that have no room for the tokens.
    #[cold]
    fn exclude_without_room(&self, terms: &mut Terms, tokens: u32) {
        for engine in 0..terms.engines() {
            if !self.has_room(engine, self.counter.observe(engine).1, tokens) {
                terms.exclude(engine);
            }
        }
    }

    /// Whether another engine of the same load as the least one has room for the tokens.
    #[inline(never)]
    fn has_equal_with_room(
        &self,
        terms: &Terms,
        exclusions: bool,
        tokens: u32,
        least: Least,
    ) -> bool {
        let mut others = (0..terms.engines()).filter(|engine| *engine != least.engine());
        others.any(|engine| {
            let seen = self.counter.observe(engine);
            terms.bits(engine, seen, exclusions, tokens) == least.load()
                && self.has_room(engine, seen.1, tokens)
        })
    }

    /// Chooses the preferred engine in the place of the least loaded one, if it may take the request and its load
    /// allows that.
    fn prefer(
        &self,
        terms: &Terms,
        wishes: &impl Wishes,
        (engine, slack): (usize, f32),
        found: Found,
        choice: &mut Choice,
    ) {
        if !terms.admits(engine) {
            return;
        }
        let tokens = wishes.tokens();
        let (seen, taken) = match tokens > 0 || terms.form() == Form::Tokens {
            true => self.counter.observe(engine),
            false => (self.counter.load(engine), 0),
        };
        let may_take = seen.has_room(self.limits(engine).max_in_flight() as i32)
            && self.has_room(engine, taken, tokens)
            && wishes.is_preferred();
        let least = terms.load(found.least.engine(), found.seen, found.taken, tokens);
        if may_take && terms.load(engine, seen, taken, tokens) <= least + slack * terms.scale() {
            *choice = Choice::new(engine, seen, terms.hints());
        }
    }
}
