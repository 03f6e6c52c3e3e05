//! What the load of each engine is made of, worked out once and used for many choices.
//!
//! Every policy whose load is a function of the count has the same form. With n requests in flight the load is
//!
//! ```text
//! max(n + 1, floor) / weight + min(n, waiting) * pressure + base
//! ```
//!
//! and only n changes from request to request. All else follows from the engines' limits and from the last
//! publication, so each lane keeps it in an array of its own, and works it out anew when one of these has changed.
//!
//! It is computed in 32-bit floats, of which each operation is one of IEEE 754 in a fixed order, so that all ways to
//! compute it agree to the bit. In the place of a division by the weight stands a multiplication by `scale / weight`,
//! the *cost* of a request, which takes a third of the time. The scale is the least common multiple of the weights, of all
//! those for which it stays small: their costs are whole numbers, so loads of theirs that are equal are found equal. Other
//! weights (0.3 and 0.7, say, as floats) have no equal loads but by chance, and leave those of the rest as they are.

use super::rows::ScanHints;
use super::scan::{
    ByAll, ByCount, ByFormula, ByPressure, ByTokens, Counts, Formula, Loads, load_by_all,
    load_by_tokens,
};
use super::word::{MAX_REQUESTS, Word};

/// What terms were worked out from. Terms are as they would be worked out now if this has not changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Source {
    pub(crate) hints: ScanHints,
    /// The number of the publication, or 0 if none has a say.
    pub(crate) publication: u64,
    /// A number of the policy's own.
    pub(crate) policy: u64,
}

/// Which part of the form is needed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// The count alone: weights are equal, and nothing else has a say.
    Counts,
    /// The same, and an engine has a cap.
    CappedCounts,
    /// Without floor and base.
    Pressure,
    /// All of it.
    All,
    /// `(tokens in flight + the request's) / weight`.
    Tokens,
}

/// The terms of one engine.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Term {
    /// The most requests that it takes.
    pub(crate) cap: u32,
    pub(crate) weight: f32,
    pub(crate) floor: f32,
    pub(crate) waiting: f32,
    pub(crate) pressure: f32,
    pub(crate) base: f32,
    /// Whether it has a cap on tokens.
    pub(crate) has_token_cap: bool,
}

impl Term {
    /// An engine of which nothing was published.
    pub(crate) fn of_limits(cap: u32, weight: f32) -> Self {
        Self {
            cap,
            weight,
            floor: 0.0,
            waiting: 0.0,
            pressure: 0.0,
            base: 0.0,
            has_token_cap: false,
        }
    }

    /// The weight, of which a load is a number and not negative, whatever a file says.
    fn normal_weight(&self) -> f32 {
        self.weight.max(f32::MIN_POSITIVE)
    }

    /// Whether loads compare as counts do, among engines of the same weight.
    fn is_of_counts(&self) -> bool {
        let has_penalty = self.waiting * self.pressure > 0.0;
        self.weight.is_finite() && self.has_no_floor() && !has_penalty && self.base == 0.0
    }

    /// Whether the load with this request is above the floor in any case.
    fn has_no_floor(&self) -> bool {
        self.floor <= 1.0
    }
}

/// The terms of eight engines, a column for each part of a [`Term`].
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
pub(super) struct Eight {
    /// The cap. Negative while a request excludes the engine.
    pub(super) cap: [i32; 8],
    /// What one request adds to the load.
    pub(super) cost: [f32; 8],
    pub(super) waiting: [f32; 8],
    pub(super) pressure: [f32; 8],
    pub(super) floor: [f32; 8],
    pub(super) base: [f32; 8],
}

impl Eight {
    const NONE: Self = Self {
        cap: [0; 8],
        cost: [1.0; 8],
        waiting: [0.0; 8],
        pressure: [0.0; 8],
        floor: [0.0; 8],
        base: [0.0; 8],
    };

    /// Sets the terms of an engine, all but its cost by a scale that is not known yet: in its place stands the weight.
    fn set(&mut self, place: usize, term: Term) {
        self.cap[place] = term.cap.min(MAX_REQUESTS) as i32;
        self.cost[place] = term.normal_weight();
        self.waiting[place] = term.waiting;
        self.pressure[place] = term.pressure;
        self.floor[place] = term.floor;
        self.base[place] = term.base;
    }

    /// Has all loads be `scale` times as large.
    fn scale(&mut self, scale: f32) {
        for place in 0..8 {
            self.cost[place] = (f64::from(scale) / f64::from(self.cost[place])) as f32;
            self.pressure[place] *= scale;
            self.base[place] *= scale;
        }
    }
}

/// The least common multiple of some numbers, without those for which it would not be small.
#[derive(Clone, Copy)]
struct CommonMultiple(f64);

impl CommonMultiple {
    const MOST: f64 = 4096.0;

    fn add(&mut self, number: f32) {
        let number = f64::from(number);
        let is_multiple = |of: f64| {
            // Exact: a small number times one of 24 bits.
            let times = (of / number).round();
            times * number == of
        };
        let multiples = (1..=64).map(|times| self.0 * f64::from(times));
        let mut small = multiples.take_while(|multiple| *multiple <= Self::MOST);
        if number.is_finite()
            && let Some(multiple) = small.find(|of| is_multiple(*of))
        {
            self.0 = multiple;
        }
    }
}

/// The most that a request may cost, so that no load is infinite: 2^33 tokens, by two to this.
const MOST_COST: f64 = (1_u128 << 90) as f64;

/// The scale, or so much less of it that the costs of an engine of this weight are not above [`MOST_COST`]. By powers of
/// two, so that loads that are equal stay that.
fn within_range(mut scale: f32, least_weight: f32) -> f32 {
    while f64::from(scale) / f64::from(least_weight) > MOST_COST {
        scale /= (1_u64 << 32) as f32;
    }
    scale
}

/// The terms of all engines, for one lane. Only its holder uses them.
#[derive(Debug)]
pub(crate) struct Terms {
    source: Source,
    /// The hints by which they were worked out.
    hints: ScanHints,
    form: Form,
    /// How many times as large as they are loads are computed.
    scale: f32,
    has_token_caps: bool,
    /// When they are to be worked out anew, in nanoseconds of the monotonic clock.
    expires: u64,
    /// How many engines they are of.
    engines: usize,
    /// Whether the table has no cap as a whole, and loads are not of tokens.
    are_plain: bool,
    /// As many if these are few and compare by their counts, 0 otherwise.
    few_counts: usize,
    of: Box<[Eight]>,
}

/// Up to so many engines are looked at one by one if they compare by their counts: there is less to be done before
/// and after.
const FEW: usize = 16;

/// The number of no policy.
const NO_POLICY: u64 = u64::MAX;

/// Set in a cap that excludes its engine.
const EXCLUDED: i32 = i32::MIN;

impl Terms {
    /// Terms of no engine, with room for so many.
    pub(crate) fn new(max_engines: usize) -> Self {
        let hints = bytemuck::Zeroable::zeroed();
        Self {
            source: Source {
                hints,
                publication: 0,
                policy: NO_POLICY,
            },
            hints,
            form: Form::Counts,
            scale: 1.0,
            has_token_caps: false,
            expires: 0,
            engines: 0,
            are_plain: false,
            few_counts: 0,
            of: vec![Eight::NONE; max_engines.div_ceil(8)].into(),
        }
    }

    /// Whether they are of this publication and this policy.
    #[inline]
    pub(crate) fn are_of(&self, publication: u64, policy: u64) -> bool {
        self.source.publication == publication && self.source.policy == policy
    }

    /// Whether nothing that was published has a say in them.
    #[inline]
    pub(crate) fn never_expire(&self) -> bool {
        self.expires == u64::MAX
    }

    /// When they are to be worked out anew. `u64::MAX`: not for their age.
    #[inline]
    pub(crate) fn expires(&self) -> u64 {
        self.expires
    }

    #[inline]
    pub(super) fn hints(&self) -> ScanHints {
        self.hints
    }

    #[inline]
    pub(super) fn form(&self) -> Form {
        self.form
    }

    #[inline]
    pub(super) fn are_plain(&self) -> bool {
        self.are_plain
    }

    #[inline]
    pub(super) fn few_counts(&self) -> usize {
        self.few_counts
    }

    #[inline]
    pub(super) fn engines(&self) -> usize {
        self.engines
    }

    /// Works them out anew, from the terms of each engine; `None` in a slot that has no engine. They have to be worked
    /// out again for the next choice if limits are just being changed.
    pub(crate) fn renew(
        &mut self,
        source: Source,
        expires: u64,
        by_tokens: bool,
        terms: impl ExactSizeIterator<Item = Option<Term>>,
    ) {
        let are_weights_the_same =
            self.hints == source.hints && self.source.policy == source.policy;
        self.hints = source.hints;
        self.source = source;
        if source.hints.is_changing() {
            self.outdate();
        }
        self.expires = expires;
        self.engines = terms.len();
        self.has_token_caps = false;
        let (mut by_counts, mut capped, mut by_pressure, mut first) = (true, false, true, None);
        let (mut scale, mut least_weight) = (CommonMultiple(1.0), f32::INFINITY);
        for (engine, term) in terms.enumerate() {
            // A slot is given to an engine by a change of limits.
            let is_there = term.is_some();
            let term = term.unwrap_or(Term::of_limits(MAX_REQUESTS, 1.0));
            if is_there {
                let is_first = first.is_none();
                let weight = *first.get_or_insert(term.weight);
                by_counts &= term.is_of_counts() && term.weight == weight;
                by_pressure &= term.has_no_floor() && term.base == 0.0;
                capped |= term.cap < MAX_REQUESTS;
                if !are_weights_the_same && (is_first || term.weight != weight) {
                    scale.add(term.weight);
                    least_weight = least_weight.min(term.normal_weight());
                }
                self.has_token_caps |= term.has_token_cap;
            }
            self.of[engine / 8].set(engine % 8, term);
        }
        // Not worked out for each publication: many weights take a while.
        if !are_weights_the_same {
            self.scale = within_range(scale.0 as f32, least_weight);
        }
        let eights = self.engines.div_ceil(8);
        self.of[..eights]
            .iter_mut()
            .for_each(|eight| eight.scale(self.scale));
        self.form = match () {
            () if by_tokens => Form::Tokens,
            () if by_counts && capped => Form::CappedCounts,
            () if by_counts => Form::Counts,
            () if by_pressure => Form::Pressure,
            () => Form::All,
        };
        self.are_plain = !by_tokens && !source.hints.has_total_cap();
        self.few_counts = match self.form {
            Form::Counts if self.engines <= FEW && self.never_expire() => self.engines,
            _ => 0,
        };
    }

    /// They are to be worked out anew for the next choice.
    pub(crate) fn outdate(&mut self) {
        self.source.policy = NO_POLICY;
    }

    /// Excludes an engine until [`include`](Self::include) or [`include_all`](Self::include_all).
    pub(super) fn exclude(&mut self, engine: usize) {
        if let Some(eight) = self.of.get_mut(engine / 8) {
            eight.cap[engine % 8] |= EXCLUDED;
        }
    }

    /// Excludes an engine no more.
    pub(super) fn include(&mut self, engine: usize) {
        if let Some(eight) = self.of.get_mut(engine / 8) {
            eight.cap[engine % 8] &= !EXCLUDED;
        }
    }

    /// Excludes no engine any more.
    #[cold]
    pub(super) fn include_all(&mut self) {
        (0..self.engines).for_each(|engine| self.include(engine));
    }

    /// The terms of all engines, eight by eight.
    #[inline]
    pub(super) fn of(&self) -> &[Eight] {
        &self.of
    }

    /// Whether the engine is one of those that these terms are of, and not excluded.
    pub(super) fn admits(&self, engine: usize) -> bool {
        engine < self.engines && self.of[engine / 8].cap[engine % 8] >= 0
    }

    /// Whether an engine has a cap on tokens.
    pub(super) fn has_token_caps(&self) -> bool {
        self.has_token_caps
    }

    /// How many times as large as they are loads are computed.
    pub(super) fn scale(&self) -> f32 {
        self.scale
    }

    /// The bits of an engine's load, as a scan computes them, with engines excluded or without.
    pub(super) fn bits(
        &self,
        engine: usize,
        (word, taken): (Word, u32),
        exclusions: bool,
        tokens: u32,
    ) -> i32 {
        let (terms, in_range) = (self.of(), engine < self.engines);
        match self.form {
            _ if !in_range => i32::MAX,
            Form::Counts if self.few_counts > 0 && !exclusions => Counts.load(engine, word, taken),
            Form::Counts | Form::CappedCounts => {
                by_formula(ByCount, terms).load(engine, word, taken)
            }
            Form::Pressure => by_formula(ByPressure, terms).load(engine, word, taken),
            Form::All => by_formula(ByAll, terms).load(engine, word, taken),
            Form::Tokens => ByTokens {
                terms,
                of_request: tokens,
            }
            .load(engine, word, taken),
        }
    }

    /// The load of an engine for a request of so many tokens, by its word and the tokens in flight on it, times the
    /// [`scale`](Self::scale).
    pub(super) fn load(&self, engine: usize, word: Word, taken: u32, tokens: u32) -> f32 {
        let (terms, place) = (&self.of[engine / 8], engine % 8);
        match self.form {
            Form::Tokens => load_by_tokens(taken, tokens, terms.cost[place]),
            _ => load_by_all(terms, place, word.occupancy()),
        }
    }
}

fn by_formula<F: Formula>(formula: F, terms: &[Eight]) -> ByFormula<'_, F> {
    ByFormula { formula, terms }
}
