//! Whose turn it is when loads are equal: the engine that was chosen least recently.
//!
//! Starting each scan one engine further would be enough if all engines were equal every time. When
//! only some are, the one behind a gap would win for each start within the gap. Choosing the least
//! recently chosen has no such gaps: among any set of engines that keeps being equal, each wins in
//! its turn.
//!
//! One of these belongs to each lane and lies in private memory, so ties cost no shared write. What
//! is chosen first differs from frontend to frontend, and from one join in a slot to the next.

use std::sync::atomic::{AtomicU64, Ordering};

/// When each engine was chosen last, for one lane. Only used by the lane's holder, so its atomics
/// are all Relaxed: the lane's own lock orders one holder after the other.
#[derive(Debug)]
pub(crate) struct Turns {
    turn: AtomicU64,
    chosen: Box<[AtomicU64]>,
    random: AtomicU64,
}

impl Turns {
    /// Turns over `max_engines`, of which there are `engines` now, the `first` of them first.
    pub(crate) fn new(max_engines: usize, engines: usize, first: usize) -> Self {
        let engines = engines.max(1);
        let rank = |engine: usize| match engine < engines {
            true => (engine + engines - first % engines) % engines,
            false => 0,
        };
        Self {
            turn: AtomicU64::new(engines as u64),
            chosen: (0..max_engines)
                .map(|engine| AtomicU64::new(rank(engine) as u64))
                .collect(),
            // Any odd number will do; these differ for lanes that start differently.
            random: AtomicU64::new(
                0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(2 * first as u64 + 1) | 1,
            ),
        }
    }

    /// A number that is smaller the longer ago the engine was chosen.
    #[inline]
    pub(crate) fn last_chosen(&self, engine: usize) -> u64 {
        self.chosen[engine].load(Ordering::Relaxed)
    }

    /// The engine was chosen.
    #[inline]
    pub(crate) fn choose(&self, engine: usize) {
        let turn = self.turn.load(Ordering::Relaxed) + 1;
        self.turn.store(turn, Ordering::Relaxed);
        self.chosen[engine].store(turn, Ordering::Relaxed);
    }

    /// A number below `bound`, or 0: xorshift64* (Vigna, "An experimental exploration of Marsaglia's
    /// xorshift generators, scrambled", 2016).
    pub(crate) fn random(&self, bound: usize) -> usize {
        let mut x = self.random.load(Ordering::Relaxed);
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        self.random.store(x, Ordering::Relaxed);
        let high = x.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        ((high * bound as u64) >> 32) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The least recently chosen of `tied`, which is then chosen.
    fn pick(turns: &Turns, tied: &[usize]) -> usize {
        let engine = *tied.iter().min_by_key(|e| turns.last_chosen(**e)).unwrap();
        turns.choose(engine);
        engine
    }

    #[test]
    fn c7_engines_behind_a_gap_win_no_more_often() {
        let turns = Turns::new(8, 8, 3);
        let mut wins = [0; 8];
        for _ in 0..300 {
            wins[pick(&turns, &[0, 1, 7])] += 1;
        }
        assert_eq!(wins, [100, 100, 0, 0, 0, 0, 0, 100]);
    }

    #[test]
    fn c7_the_first_choice_is_another_for_each_frontend() {
        let first = |start| pick(&Turns::new(4, 4, start), &[0, 1, 2, 3]);
        assert_eq!(
            (0..8).map(first).collect::<Vec<_>>(),
            [0, 1, 2, 3, 0, 1, 2, 3]
        );
    }

    #[test]
    fn random_numbers_are_below_their_bound_and_spread() {
        let turns = Turns::new(1, 1, 0);
        let mut seen = [0; 5];
        for _ in 0..5000 {
            seen[turns.random(5)] += 1;
        }
        assert!(seen.iter().all(|&n| (800..1200).contains(&n)), "{seen:?}");
        assert_eq!(turns.random(0), 0);
    }
}
