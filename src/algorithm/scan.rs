//! The choice that nearly all requests take: engines of equal weight, compared by their counts.
//!
//! One number an engine says all that counts: its word's [rank](Word::rank), and its turn below that
//! (see [`turn`]). The least of these numbers is the choice, ties included, so the loop is two loads and a
//! minimum.

use super::place::Choice;
use super::rows::Rows;
use super::word::{BELOW_RANK, Word};
use crate::algorithm::primitive::{Atomic, AtomicU64, Ordering};

/// The bits of an engine's number in a [`turn`].
pub(crate) const ENGINE_BITS: u32 = 12;
/// The bits of a turn above them: those that a rank leaves.
pub(crate) const TURN_BITS: u32 = 30;
const _: () = assert!((1_i64 << (ENGINE_BITS + TURN_BITS)) - 1 == BELOW_RANK);

/// An engine's turn, and its number below that: turn 30 | engine 12. It names the engine, so that the
/// search for the least of them need not remember where it was.
#[inline]
pub(crate) fn turn(turn: u64, engine: usize) -> u64 {
    (turn << ENGINE_BITS) | engine as u64
}

/// The engine that a number is of, whatever stands above it.
#[inline]
fn engine_of(number: u64) -> usize {
    (number & ((1 << ENGINE_BITS) - 1)) as usize
}

/// The engine whose number is the least.
#[derive(Clone, Copy)]
struct Least {
    engine: usize,
    /// The rank by which it was chosen.
    rank: i64,
}

impl Rows<'_> {
    /// The least loaded engine by counts alone, and whether it was one among equals. `None` if there is
    /// more to consider, or if the engines have changed meanwhile.
    ///
    /// Tokens have no say in which engine that is, only in whether it has room for them. If it has, then no
    /// other engine's tokens matter. `turns` has a [`turn`] for each engine.
    #[inline(always)] // a caller that knows the tokens makes half of it go away
    pub(crate) fn choose_by_count(
        &self,
        turns: &[AtomicU64],
        tokens: u32,
    ) -> Option<(Choice, bool)> {
        let hints = self.hints();
        if hints.weights_differ() {
            return None;
        }
        let words = &self.counter.words[..self.in_use(hints)];
        let (least, seen, taken) = loop {
            let least = least(words, turns)?;
            let (seen, taken) = match tokens {
                0 => (self.counter.load(least.engine), 0),
                _ => self.counter.observe(least.engine),
            };
            if seen.rank() == least.rank {
                break (least, seen, taken);
            }
            // Another operation took effect in between: not a spin without bound.
        };
        // After the words, all of these, so that they are no older. An engine that is full or closed
        // needs a closer look, and so do engines of which one has become more attractive: see `rows`.
        let stands = seen.is_active()
            && seen.value() < self.limits(least.engine).max_in_flight()
            && self.has_room(least.engine, taken, tokens)
            && self.hints() == hints;
        let choice = Choice {
            engine: least.engine,
            seen,
        };
        let tied = || {
            is_tied(words, least.rank)
                && (!hints.any_cap() || self.has_equal_with_room(least, words.len(), tokens))
        };
        stands.then(|| (choice, tied()))
    }

    /// Whether an engine that counts as many as the least loaded one has room, too.
    #[inline(never)]
    fn has_equal_with_room(&self, least: Least, engines: usize, tokens: u32) -> bool {
        let has_room = |engine: usize| {
            let (word, taken) = match tokens {
                0 => (self.counter.load(engine), 0),
                _ => self.counter.observe(engine),
            };
            word.rank() == least.rank
                && word.value() < self.limits(engine).max_in_flight()
                && self.has_room(engine, taken, tokens)
        };
        (0..engines).any(|engine| engine != least.engine && has_room(engine))
    }
}

/// The least of `words`, and of those that are equal the one whose turn it is. The engine may be one
/// that takes no requests, if none does.
#[inline]
fn least(words: &[Atomic<Word>], turns: &[AtomicU64]) -> Option<Least> {
    let number = |word: &Atomic<Word>, turn: &AtomicU64| {
        // Acquire: as in `Counter::load`, so that what is looked at next is no older than the words.
        // Relaxed: the lane's own.
        word.load(Ordering::Acquire).rank() | turn.load(Ordering::Relaxed) as i64
    };
    // Two minima, for the next comparison must not wait for the last one.
    let (mut even, mut odd) = (i64::MAX, i64::MAX);
    let (word_pairs, last_word) = words.as_chunks::<2>();
    let (turn_pairs, last_turn) = turns[..words.len()].as_chunks::<2>();
    for (words, turns) in word_pairs.iter().zip(turn_pairs) {
        even = even.min(number(&words[0], &turns[0]));
        odd = odd.min(number(&words[1], &turns[1]));
    }
    if let ([word], [turn]) = (last_word, last_turn) {
        even = even.min(number(word, turn));
    }
    let least = even.min(odd);
    (least != i64::MAX).then_some(Least {
        engine: engine_of(least as u64),
        rank: least & !BELOW_RANK,
    })
}

/// Whether more than one word has this rank.
#[inline]
fn is_tied(words: &[Atomic<Word>], rank: i64) -> bool {
    // Relaxed: only decides whether a turn was used up.
    let equals = |word: &Atomic<Word>| u32::from(word.load(Ordering::Relaxed).rank() == rank);
    let (fours, rest) = words.as_chunks::<4>();
    let mut count = 0;
    // In fours, for a branch at each word costs more than it saves.
    for [a, b, c, d] in fours {
        count += equals(a) + equals(b) + equals(c) + equals(d);
        if count > 1 {
            return true;
        }
    }
    count + rest.iter().map(equals).sum::<u32>() > 1
}
