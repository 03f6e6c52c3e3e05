//! Whose turn it is when loads are equal: the engine that was chosen least recently.
//!
//! Starting each scan one engine further would be enough if all engines were equal every time. When
//! only some are, the one behind a gap would win for each start within the gap. Choosing the least
//! recently chosen has no such gaps: among any set of engines that keeps being equal, each wins in
//! its turn.
//!
//! Only ties count as turns: an engine that was pinned, preferred or alone at the least load has won
//! nothing by chance, and must not lose the next tie for it.
//!
//! One of these belongs to each lane and lies in private memory, so ties cost no shared write. The
//! order to start with is another one for each lane of each frontend and for each join in a slot, so
//! that frontends which live for a request or two favour no engine either. Engines that are yet to come have
//! their places in it, too: frontends that were there before them favour none of them.

use crate::algorithm::scan::{ENGINE_BITS, TURN_BITS, turn as number};
use crate::shm::layout::MAX_ENGINES;
use std::{array, fmt};

/// When each engine was chosen last, for one lane.
pub(crate) struct LeastRecentlyChosen {
    turn: u32,
    /// A [`turn`](crate::algorithm::scan::turn) for each engine.
    chosen: Box<[[i32; 8]]>,
    random: u64,
}

/// The turns of an order to start with: far more than engines, so that two hardly ever share one.
const FIRST_TURN_BITS: u32 = 17;
const LAST_TURN: u32 = (1 << TURN_BITS) - 1;
const _: () = assert!(MAX_ENGINES <= 1 << ENGINE_BITS);

/// Says the turn, not the thousands of numbers behind it.
impl fmt::Debug for LeastRecentlyChosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "turn {}", self.turn)
    }
}

impl LeastRecentlyChosen {
    /// LeastRecentlyChosen over `max_engines`, of which the first `engines` are there now.
    ///
    /// The order to start with depends on `seed`. As many seeds as there are engines, one after
    /// the other, each put another engine first: they turn one scattered order round. The next as many
    /// turn round another order, so that over many of them no engine wins for who stands behind it.
    /// Engines that are yet to come are scattered among these.
    pub(crate) fn new(max_engines: usize, engines: usize, seed: u64) -> Self {
        let count = engines.max(1);
        let (scatter, start) = (seed / count as u64, (seed % count as u64) as usize);
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_unstable_by_key(|&engine| mix(mix(scatter) ^ engine as u64));
        let scattered = |engine: usize| {
            (mix(mix(!seed) ^ engine as u64) >> (u64::BITS - FIRST_TURN_BITS)) as u32
        };
        let mut chosen: Box<[[i32; 8]]> = (0..max_engines.div_ceil(8))
            .map(|eight| {
                let engines = array::from_fn(|place| 8 * eight + place);
                engines.map(|engine| number(scattered(engine), engine))
            })
            .collect();
        // The engines that are there share the turns that they were given, in the order of the seed.
        let mut shared: Vec<u32> = (0..count).map(scattered).collect();
        shared.sort_unstable();
        for (place, &engine) in order.iter().enumerate() {
            if let Some(chosen) = chosen.as_flattened_mut().get_mut(engine) {
                *chosen = number(shared[(place + count - start) % count], engine);
            }
        }
        Self {
            turn: 1 << FIRST_TURN_BITS,
            chosen,
            random: mix(seed) | 1, // never 0
        }
    }

    /// A number for each engine, eight by eight, smaller the longer ago it was chosen; no two are equal.
    #[inline]
    pub(crate) fn turns(&self) -> &[[i32; 8]] {
        &self.chosen
    }

    /// The number of one engine.
    pub(crate) fn last_chosen(&self, engine: usize) -> i32 {
        self.chosen.as_flattened()[engine]
    }

    /// The engine was chosen.
    #[inline]
    pub(crate) fn choose(&mut self, engine: usize) {
        if self.turn >= LAST_TURN {
            self.start_over();
        }
        self.turn += 1;
        self.chosen.as_flattened_mut()[engine] = number(self.turn, engine);
    }

    /// Halves all turns, once in a quarter of a million choices among equals: the order stays, but that engines chosen one
    /// right after the other may become equal, and then the first comes first, once.
    #[cold]
    fn start_over(&mut self) {
        for (engine, chosen) in self.chosen.as_flattened_mut().iter_mut().enumerate() {
            *chosen = number((*chosen >> ENGINE_BITS) as u32 / 2, engine);
        }
        self.turn = LAST_TURN / 2;
    }

    /// A number below `bound`, or 0: xorshift64* (Vigna, "An experimental exploration of Marsaglia's
    /// xorshift generators, scrambled", 2016).
    pub(crate) fn random(&mut self, bound: usize) -> usize {
        let mut x = self.random;
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        self.random = x;
        let high = x.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        ((high * bound as u64) >> 32) as usize
    }
}

/// Scatters numbers that are close to each other: the finalizer of splitmix64 (Steele, Lea and Flood,
/// "Fast splittable pseudorandom number generators", OOPSLA 2014).
fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The least recently chosen of `tied`, which is then chosen.
    fn pick(turns: &mut LeastRecentlyChosen, tied: &[usize]) -> usize {
        let engine = *tied.iter().min_by_key(|e| turns.last_chosen(**e)).unwrap();
        turns.choose(engine);
        engine
    }

    #[test]
    fn c7_engines_behind_a_gap_win_no_more_often() {
        let mut turns = LeastRecentlyChosen::new(8, 8, 3);
        let mut wins = [0; 8];
        for _ in 0..300 {
            wins[pick(&mut turns, &[0, 1, 7])] += 1;
        }
        assert_eq!(wins, [100, 100, 0, 0, 0, 0, 0, 100]);
    }

    #[test]
    fn c7_ties_among_sets_that_take_turns_favour_none() {
        let mut turns = LeastRecentlyChosen::new(8, 8, 0);
        let mut wins = [0; 8];
        for _ in 0..300 {
            wins[pick(&mut turns, &[0, 1, 2])] += 1;
            wins[pick(&mut turns, &[4, 5])] += 1;
        }
        assert_eq!(wins, [100, 100, 100, 0, 150, 150, 0, 0]);
    }

    #[test]
    fn c7_the_first_choice_is_another_for_each_of_as_many_frontends_as_engines() {
        for first in [0, 4, 400] {
            let mut wins = [0; 4];
            for number in first..first + 4 {
                wins[pick(&mut LeastRecentlyChosen::new(4, 4, number), &[0, 1, 2, 3])] += 1;
            }
            assert_eq!(wins, [1; 4]);
        }
    }

    #[test]
    fn c7_first_choices_favour_no_engine_whichever_are_tied() {
        for tied in [&[0, 1, 2, 3][..], &[0, 7], &[1, 2, 6]] {
            let mut wins = [0_usize; 8];
            for number in 0..3000 {
                wins[pick(&mut LeastRecentlyChosen::new(8, 8, number), tied)] += 1;
            }
            let fair = 3000 / tied.len();
            let all = tied
                .iter()
                .all(|&engine| wins[engine].abs_diff(fair) < fair / 8);
            assert!(all, "{tied:?}: {wins:?}");
        }
    }

    #[test]
    fn c7_engines_that_come_later_win_as_often_as_those_before_them() {
        for before in [0, 1, 3] {
            let mut wins = [0_usize; 4];
            for seed in 0..4000 {
                wins[pick(
                    &mut LeastRecentlyChosen::new(64, before, seed),
                    &[0, 1, 2, 3],
                )] += 1;
            }
            assert!(
                wins.iter().all(|n| n.abs_diff(1000) < 120),
                "{before} before: {wins:?}"
            );
        }
    }

    #[test]
    fn c7_ties_stay_fair_when_turns_start_over() {
        let mut turns = LeastRecentlyChosen::new(4, 4, 0);
        turns.turn = LAST_TURN - 10;
        let mut wins = [0_usize; 4];
        for _ in 0..400 {
            wins[pick(&mut turns, &[0, 1, 2, 3])] += 1;
        }
        assert!(wins.iter().all(|wins| wins.abs_diff(100) <= 2), "{wins:?}");
        assert!(turns.turn < LAST_TURN);
    }

    #[test]
    fn random_numbers_are_below_their_bound_and_spread() {
        let mut turns = LeastRecentlyChosen::new(1, 0, u64::MAX);
        let mut seen = [0; 5];
        for _ in 0..5000 {
            seen[turns.random(5)] += 1;
        }
        assert!(seen.iter().all(|&n| (800..1200).contains(&n)), "{seen:?}");
        assert_eq!(turns.random(0), 0);
    }
}
