//! The scan that nearly all requests take: engines of equal weight, compared by what is in flight.
//!
//! One number an engine says all that counts: its word's [rank](Word::rank), and its
//! [turn](crate::turns::Turns) below that. The least of these numbers is the choice, ties included, so the loop is
//! two loads and a minimum.

use crate::algorithm::word::{BELOW_RANK, Word};
use crate::primitive::{Atomic, AtomicU64, Ordering};

/// The engine whose number is the least.
#[derive(Clone, Copy)]
pub(crate) struct Least {
    pub(crate) engine: usize,
    /// The rank by which it was chosen.
    pub(crate) rank: i64,
}

/// The least of `words`, and of those that are equal the one whose turn it is. The engine may be one
/// that takes no requests, if none does.
#[inline]
pub(crate) fn least(words: &[Atomic<Word>], turns: &[AtomicU64]) -> Option<Least> {
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
        engine: crate::turns::engine_of(least as u64),
        rank: least & !BELOW_RANK,
    })
}

/// Whether more than one word has this rank.
#[inline]
pub(crate) fn is_tied(words: &[Atomic<Word>], rank: i64) -> bool {
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
