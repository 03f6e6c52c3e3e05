//! The least of many engines, eight at a time.

use super::lanes::Lanes;
use super::{CLOSED, Columns, Formula, Least};
use crate::algorithm::primitive::{Atomic, Ordering};
use crate::algorithm::terms::Eight;
use crate::algorithm::word::Word;

/// A vector of eight. What is said of a place in it is all ones for yes and 0 for no.
pub(super) trait Vectors: Lanes {
    fn ints(self, from: &[i32; 8]) -> Self::Ints;
    fn floats(self, from: &[f32; 8]) -> Self::Floats;
    /// The upper half of each word, by Relaxed loads.
    fn upper_halves(self, words: &[Atomic<Word>; 8]) -> Self::Ints;
    /// Shifts in copies of the sign.
    fn shift_right<const BITS: i32>(self, ints: Self::Ints) -> Self::Ints;
    fn add_ints(self, one: Self::Ints, other: Self::Ints) -> Self::Ints;
    fn is_less(self, one: Self::Ints, other: Self::Ints) -> Self::Ints;
    fn is_equal(self, one: Self::Ints, other: Self::Ints) -> Self::Ints;
    fn and(self, one: Self::Ints, other: Self::Ints) -> Self::Ints;
    fn or(self, one: Self::Ints, other: Self::Ints) -> Self::Ints;
    /// `then` where the mask says yes, `otherwise` elsewhere.
    fn select(self, mask: Self::Ints, then: Self::Ints, otherwise: Self::Ints) -> Self::Ints;
    fn least_of_each(self, one: Self::Ints, other: Self::Ints) -> Self::Ints;
    /// The least of all, at each place.
    fn least_of_all(self, ints: Self::Ints) -> Self::Ints;
    /// The number at the first place.
    fn first(self, ints: Self::Ints) -> i32;
    /// A bit for each number, set if it is negative.
    fn signs(self, ints: Self::Ints) -> u32;
}

/// The columns of eight engines.
struct Whole<'a, V>(V, &'a Eight);

impl<V: Vectors> Columns<V> for Whole<'_, V> {
    #[inline(always)]
    fn cost(&self) -> V::Floats {
        self.0.floats(&self.1.cost)
    }

    #[inline(always)]
    fn floor(&self) -> V::Floats {
        self.0.floats(&self.1.floor)
    }

    #[inline(always)]
    fn waiting(&self) -> V::Floats {
        self.0.floats(&self.1.waiting)
    }

    #[inline(always)]
    fn pressure(&self) -> V::Floats {
        self.0.floats(&self.1.pressure)
    }

    #[inline(always)]
    fn base(&self) -> V::Floats {
        self.0.floats(&self.1.base)
    }
}

/// At each place of a vector, the least of the engines that stood at that place.
struct Best<V: Vectors> {
    load: V::Ints,
    turn: V::Ints,
    /// Whether there are several.
    is_tied: V::Ints,
}

impl<V: Vectors> Best<V> {
    #[inline(always)]
    fn none(v: V) -> Self {
        Self {
            load: v.splat(CLOSED),
            turn: v.splat(i32::MAX),
            is_tied: v.splat(0),
        }
    }

    #[inline(always)]
    fn offer(&mut self, v: V, load: V::Ints, turn: V::Ints) {
        let (is_less, is_equal) = (v.is_less(load, self.load), v.is_equal(load, self.load));
        let of_equals = v.select(is_equal, v.least_of_each(turn, self.turn), self.turn);
        self.turn = v.select(is_less, turn, of_equals);
        self.is_tied = v.select(is_less, v.splat(0), v.or(self.is_tied, is_equal));
        self.load = v.least_of_each(load, self.load);
    }

    #[inline(always)]
    fn of_all(self, v: V) -> Option<Least> {
        let least = v.least_of_all(self.load);
        let is_least = v.is_equal(self.load, least);
        let places = v.signs(is_least);
        let turns = v.select(is_least, self.turn, v.splat(i32::MAX));
        let turn = v.first(v.least_of_all(turns));
        let is_tied = places & (places - 1) | v.signs(v.and(is_least, self.is_tied)) != 0;
        let load = v.first(least);
        (load != CLOSED).then(|| Least::new(turn, load, is_tied))
    }
}

/// The loads of eight engines, by the upper halves of their words.
#[inline(always)]
fn loads<V: Vectors>(v: V, formula: impl Formula, upper_halves: V::Ints, terms: &Eight) -> V::Ints {
    #[cfg(test)]
    super::tests::EIGHTS.set(super::tests::EIGHTS.get() + 1);
    let ranks = v.shift_right::<{ Word::RANK_SHIFT }>(upper_halves);
    let occupancy = v.add_ints(ranks, v.splat(Word::OCCUPANCY_OF_RANK));
    let load = formula.load(v, &Whole(v, terms), occupancy);
    v.if_less(occupancy, v.ints(&terms.cap), load, v.splat(CLOSED))
}

/// The upper halves of the words of eight engines or fewer, each loaded by itself. Faster than to load several at once
/// where one of them was just written by this processor, which has to come to rest first.
#[inline(always)]
fn upper_halves_one_by_one(words: &[Atomic<Word>]) -> [i32; 8] {
    // Relaxed: ordered by the fence after the scan.
    let half = |word: &Atomic<Word>| word.load(Ordering::Relaxed).upper_half();
    match words.first_chunk::<8>() {
        Some(words) => core::array::from_fn(|place| half(&words[place])),
        // Zero is of a row that takes nothing.
        None => core::array::from_fn(|place| words.get(place).map_or(0, half)),
    }
}

/// Finds the engine of the least load among eight or fewer. `None`: none may take the request. Apart from
/// [`least`], of which the way in and out would cost more than all of this.
#[inline(always)]
pub(super) fn least_of_eight<V: Vectors>(
    v: V,
    formula: impl Formula,
    words: &[Atomic<Word>],
    terms: &Eight,
    turns: &[i32; 8],
) -> Option<Least> {
    let halves = upper_halves_one_by_one(words);
    let load = loads(v, formula, v.ints(&halves), terms);
    let least = v.least_of_all(load);
    let is_least = v.is_equal(load, least);
    let places = v.signs(is_least);
    let is_tied = places & (places - 1) != 0;
    let turn = match is_tied {
        true => {
            let turns = v.select(is_least, v.ints(turns), v.splat(i32::MAX));
            v.first(v.least_of_all(turns))
        }
        false => places.trailing_zeros() as i32,
    };
    let load = v.first(least);
    (load != CLOSED).then(|| Least::new(turn, load, is_tied))
}

/// Finds the engine of the least load. `None`: none may take the request.
#[inline(always)]
pub(super) fn least<V: Vectors, F: Formula>(
    v: V,
    formula: F,
    words: &[Atomic<Word>],
    terms: &[Eight],
    turns: &[[i32; 8]],
) -> Option<Least> {
    let mut best = Best::none(v);
    let (eights, rest) = words.as_chunks::<8>();
    for ((words, terms), turns) in eights.iter().zip(terms).zip(turns) {
        let load = loads(v, formula, v.upper_halves(words), terms);
        best.offer(v, load, v.ints(turns));
    }
    if let (false, Some(terms), Some(turns)) = (
        rest.is_empty(),
        terms.get(eights.len()),
        turns.get(eights.len()),
    ) {
        let halves = upper_halves_one_by_one(rest);
        let load = loads(v, formula, v.ints(&halves), terms);
        best.offer(v, load, v.ints(turns));
    }
    best.of_all(v)
}
