//! The least loaded engine, and of several the one whose turn it is.
//!
//! A load is a number of 31 bits, in which the order of the loads is that of the numbers: a count, or the bits
//! of a float that is not negative. An engine that may not take the request has a greater one than all that may. Of
//! engines of the same load the one of the least [`turn`] is chosen.
//!
//! There are two ways to find it: engine by engine, and [eight at a time](vectors) where the processor can. Both are
//! made of the same [formulas](Formula), written once over [numbers of one or of eight engines](lanes), so they agree
//! to the bit.

#[cfg(all(target_arch = "x86_64", not(loom)))]
mod avx2;
mod lanes;
#[cfg(all(target_arch = "aarch64", not(loom)))]
mod neon;
#[cfg(all(test, not(loom)))]
mod tests;
#[cfg(not(loom))]
mod vectors;

use super::terms::Eight;
use super::word::Word;
use crate::algorithm::primitive::{Atomic, Ordering, fence};
use lanes::{Lanes, One};

/// The bits of an engine's number in a [`turn`].
pub(crate) const ENGINE_BITS: u32 = 12;
/// The bits of a turn above them.
pub(crate) const TURN_BITS: u32 = 19;
const _: () = assert!(ENGINE_BITS + TURN_BITS == i32::BITS - 1);

/// An engine's turn, and its number below that: 0 1 | turn 19 | engine 12. It names the engine, so that the
/// search for the least of them need not remember where it was.
#[inline]
pub(crate) fn turn(turn: u32, engine: usize) -> i32 {
    ((turn << ENGINE_BITS) | engine as u32) as i32
}

/// The engine that a turn is of.
#[inline]
fn engine_of(turn: i32) -> usize {
    (turn & ((1 << ENGINE_BITS) - 1)) as usize
}

/// The load of an engine that may not take the request.
const CLOSED: i32 = i32::MAX;

/// The engine of the least load: load 32 | 0 (19) | tied 1 | engine 12. One word, so that it is returned in a register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Least(u64);

const TIED: u64 = 1 << ENGINE_BITS;

impl Least {
    #[inline(always)]
    fn new(turn: i32, load: i32, is_tied: bool) -> Self {
        let load = u64::from(load as u32) << 32;
        Self(load | if is_tied { TIED } else { 0 } | engine_of(turn) as u64)
    }

    #[inline(always)]
    pub(super) fn engine(self) -> usize {
        (self.0 % TIED) as usize
    }

    #[inline(always)]
    pub(super) fn load(self) -> i32 {
        (self.0 >> 32) as i32
    }

    /// Whether others have the same load.
    #[inline(always)]
    pub(super) fn is_tied(self) -> bool {
        self.0 & TIED != 0
    }
}

/// The terms that a formula is made of, of one engine or of several.
pub(in crate::algorithm) trait Columns<L: Lanes> {
    fn cost(&self) -> L::Floats;
    fn floor(&self) -> L::Floats;
    fn waiting(&self) -> L::Floats;
    fn pressure(&self) -> L::Floats;
    fn base(&self) -> L::Floats;
}

/// How a load follows from the requests in flight.
pub(super) trait Formula: Copy {
    fn load<L: Lanes>(self, lanes: L, terms: &impl Columns<L>, in_flight: L::Ints) -> L::Ints;
}

/// The requests in flight.
#[derive(Clone, Copy)]
pub(super) struct ByCount;

impl Formula for ByCount {
    #[inline(always)] // as all of these: loops are made of them
    fn load<L: Lanes>(self, _: L, _: &impl Columns<L>, in_flight: L::Ints) -> L::Ints {
        in_flight
    }
}

/// `(n + 1) * cost + min(n, waiting) * pressure`.
#[derive(Clone, Copy)]
pub(super) struct ByPressure;

impl Formula for ByPressure {
    #[inline(always)]
    fn load<L: Lanes>(self, lanes: L, terms: &impl Columns<L>, in_flight: L::Ints) -> L::Ints {
        let own = lanes.multiply(lanes.float(lanes.next(in_flight)), terms.cost());
        lanes.bits(lanes.add(own, queue(lanes, terms, in_flight)))
    }
}

/// `max(n + 1, floor) * cost + min(n, waiting) * pressure + base`.
#[derive(Clone, Copy)]
pub(super) struct ByAll;

impl Formula for ByAll {
    #[inline(always)]
    fn load<L: Lanes>(self, lanes: L, terms: &impl Columns<L>, in_flight: L::Ints) -> L::Ints {
        let count = lanes.greater(lanes.float(lanes.next(in_flight)), terms.floor());
        let own = lanes.multiply(count, terms.cost());
        let load = lanes.add(own, queue(lanes, terms, in_flight));
        lanes.bits(lanes.add(load, terms.base()))
    }
}

#[inline(always)]
fn queue<L: Lanes>(lanes: L, terms: &impl Columns<L>, in_flight: L::Ints) -> L::Floats {
    let waiting = lanes.less(lanes.float(in_flight), terms.waiting());
    lanes.multiply(waiting, terms.pressure())
}

/// The columns of one engine.
struct Row<'a>(&'a Eight, usize);

impl Columns<One> for Row<'_> {
    #[inline(always)]
    fn cost(&self) -> f32 {
        self.0.cost[self.1]
    }

    #[inline(always)]
    fn floor(&self) -> f32 {
        self.0.floor[self.1]
    }

    #[inline(always)]
    fn waiting(&self) -> f32 {
        self.0.waiting[self.1]
    }

    #[inline(always)]
    fn pressure(&self) -> f32 {
        self.0.pressure[self.1]
    }

    #[inline(always)]
    fn base(&self) -> f32 {
        self.0.base[self.1]
    }
}

/// A way to compute the load of one engine.
pub(super) trait Loads: Copy {
    /// The greatest load of an engine that may take the request.
    const MOST: i32 = CLOSED - 1;
    /// Whether loads are of tokens.
    const BY_TOKENS: bool = false;
    /// How many bits of a number are below the load.
    const BELOW: u32 = 32;

    /// The load of an engine by its word and the tokens in flight on it.
    fn load(self, engine: usize, word: Word, tokens: u32) -> i32;

    /// The load, and in the bits below it the turn.
    #[inline(always)]
    fn number(self, engine: usize, word: Word, tokens: u32, turn: i32) -> i64 {
        (i64::from(self.load(engine, word, tokens)) << Self::BELOW) | i64::from(turn as u32)
    }
}

/// Counts, where no engine has a cap or is excluded.
#[derive(Clone, Copy)]
pub(super) struct Counts;

impl Loads for Counts {
    const MOST: i32 = Word::MOST_RANK;
    const BELOW: u32 = Word::BELOW_RANK;

    #[inline(always)]
    fn load(self, _: usize, word: Word, _: u32) -> i32 {
        word.rank()
    }
}

/// Loads by a formula.
#[derive(Clone, Copy)]
pub(super) struct ByFormula<'a, F> {
    pub(super) formula: F,
    pub(super) terms: &'a [Eight],
}

impl<F: Formula> Loads for ByFormula<'_, F> {
    #[inline(always)]
    fn load(self, engine: usize, word: Word, _: u32) -> i32 {
        let (terms, place) = (&self.terms[engine / 8], engine % 8);
        let load = self.formula.load(One, &Row(terms, place), word.occupancy());
        unless_full(word, terms.cap[place], load)
    }
}

/// Loads by the tokens in flight and those of the request.
#[derive(Clone, Copy)]
pub(super) struct ByTokens<'a> {
    pub(super) terms: &'a [Eight],
    pub(super) of_request: u32,
}

impl Loads for ByTokens<'_> {
    const BY_TOKENS: bool = true;

    #[inline(always)]
    fn load(self, engine: usize, word: Word, tokens: u32) -> i32 {
        let (terms, place) = (&self.terms[engine / 8], engine % 8);
        let load = load_by_tokens(tokens, self.of_request, terms.cost[place]);
        unless_full(word, terms.cap[place], One.bits(load))
    }
}

/// The load of an engine by its tokens in flight and those of the request.
#[inline(always)]
pub(super) fn load_by_tokens(tokens: u32, of_request: u32, cost: f32) -> f32 {
    (u64::from(tokens) + u64::from(of_request)) as f32 * cost
}

/// The load of an engine by a formula, for requests that compare two of them.
pub(super) fn load_by_all(terms: &Eight, place: usize, in_flight: i32) -> f32 {
    f32::from_bits(ByAll.load(One, &Row(terms, place), in_flight) as u32)
}

#[inline(always)]
fn unless_full(word: Word, cap: i32, load: i32) -> i32 {
    if word.has_room(cap) { load } else { CLOSED }
}

/// Finds the engine of the least load, one by one. `None`: none may take the request. `turns` has a [`turn`] for each
/// engine.
#[inline(always)]
pub(super) fn one_by_one<L: Loads>(
    loads: L,
    words: &[Atomic<Word>],
    turns: &[[i32; 8]],
    tokens_of: impl Fn(usize) -> u32,
) -> Option<Least> {
    let tokens = |engine| if L::BY_TOKENS { tokens_of(engine) } else { 0 };
    let number = |engine: usize, word: &Atomic<Word>, turn: i32| {
        // Relaxed: ordered by the fence below.
        let word = word.load(Ordering::Relaxed);
        loads.number(engine, word, tokens(engine), turn)
    };
    let turns = turns.as_flattened().get(..words.len())?;
    let (word_fours, last_words) = words.as_chunks::<4>();
    let (turn_fours, last_turns) = turns.as_chunks::<4>();
    // Two minima, for the next comparison must not wait for the last one.
    let (mut even, mut odd) = (i64::MAX, i64::MAX);
    for (four, (words, turns)) in word_fours.iter().zip(turn_fours).enumerate() {
        even = even.min(number(4 * four, &words[0], turns[0]));
        odd = odd.min(number(4 * four + 1, &words[1], turns[1]));
        even = even.min(number(4 * four + 2, &words[2], turns[2]));
        odd = odd.min(number(4 * four + 3, &words[3], turns[3]));
    }
    let first = words.len() - last_words.len();
    for (engine, (word, turn)) in (first..).zip(last_words.iter().zip(last_turns)) {
        even = even.min(number(engine, word, *turn));
    }
    acquire();
    let least = even.min(odd);
    let load = (least >> L::BELOW) as i32;
    if load > L::MOST {
        return None;
    }
    let equals = |engine: usize, word: &Atomic<Word>| {
        // Relaxed: only decides whether a turn is used up.
        let word = word.load(Ordering::Relaxed);
        u32::from(loads.load(engine, word, tokens(engine)) == load)
    };
    // In fours, for a branch at each word costs more than it saves.
    let mut count = 0;
    for (four, words) in word_fours.iter().enumerate() {
        count += (0..4).map(|n| equals(4 * four + n, &words[n])).sum::<u32>();
        if count > 1 {
            break;
        }
    }
    if count <= 1 {
        let rest = (first..).zip(last_words);
        count += rest.map(|(engine, word)| equals(engine, word)).sum::<u32>();
    }
    Some(Least::new(least as i32, load, count > 1))
}

/// Finds the engine of the least load by a formula, several at a time if the processor can.
#[inline(always)]
pub(super) fn at_once<F: Formula>(
    formula: F,
    words: &[Atomic<Word>],
    terms: &[Eight],
    turns: &[[i32; 8]],
) -> Option<Least> {
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    if let Some(avx2) = avx2::Avx2::detect() {
        let least = match words.len() <= 8 {
            // SAFETY: the processor has it.
            true => unsafe {
                by_avx2_of_eight(avx2, formula, words, terms.first()?, turns.first()?)
            },
            // SAFETY: as above.
            false => unsafe { by_avx2(avx2, formula, words, terms, turns) },
        };
        acquire();
        return least;
    }
    #[cfg(all(target_arch = "aarch64", not(loom)))]
    {
        let least = match words.len() <= 8 {
            true => {
                vectors::least_of_eight(neon::Neon, formula, words, terms.first()?, turns.first()?)
            }
            false => vectors::least(neon::Neon, formula, words, terms, turns),
        };
        acquire();
        return least;
    }
    #[allow(unreachable_code, reason = "where there are vectors always")]
    one_by_one(ByFormula { formula, terms }, words, turns, |_| 0)
}

#[cfg(all(target_arch = "x86_64", not(loom)))]
#[target_feature(enable = "avx2")]
fn by_avx2<F: Formula>(
    avx2: avx2::Avx2,
    formula: F,
    words: &[Atomic<Word>],
    terms: &[Eight],
    turns: &[[i32; 8]],
) -> Option<Least> {
    vectors::least(avx2, formula, words, terms, turns)
}

#[cfg(all(target_arch = "x86_64", not(loom)))]
#[target_feature(enable = "avx2")]
fn by_avx2_of_eight<F: Formula>(
    avx2: avx2::Avx2,
    formula: F,
    words: &[Atomic<Word>],
    terms: &Eight,
    turns: &[i32; 8],
) -> Option<Least> {
    vectors::least_of_eight(avx2, formula, words, terms, turns)
}

/// After the words: what is looked at next is no older than they are.
#[inline(always)]
fn acquire() {
    // Acquire fence: pairs with the Release of the compare-and-swaps of the words, which were loaded Relaxed.
    fence(Ordering::Acquire);
}
