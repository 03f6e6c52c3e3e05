//! Each way to find the least load finds what a slow one finds that is right at a glance, to the bit.

use super::*;
use crate::algorithm::word::{Amount, MAX_REQUESTS, NO_LANE, RowState, Tag};
use bytemuck::Zeroable;
use std::cell::Cell;

thread_local! {
    /// How often this thread has looked at eight engines at once.
    pub(super) static EIGHTS: Cell<usize> = const { Cell::new(0) };
}

/// All lengths up to several blocks of eight with a part of one, and the most engines that there can be.
fn lengths() -> impl Iterator<Item = usize> {
    (0..=130).chain([1000, 4095, 4096])
}

/// Numbers that are as good as random: splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

/// Engines as a scan sees them.
struct Engines {
    words: Vec<Atomic<Word>>,
    terms: Vec<Eight>,
    turns: Vec<[i32; 8]>,
    tokens: Vec<u32>,
}

/// What engines are like in one scene.
struct Kind {
    states: &'static [RowState],
    /// Counts are below this.
    counts: u64,
    caps: &'static [i32],
    costs: &'static [f32],
    waiting: &'static [f32],
    pressures: &'static [f32],
    floors: &'static [f32],
    bases: &'static [f32],
    /// Turns are below this, so that several engines may have the same one.
    turns: u64,
}

const MOST: i32 = MAX_REQUESTS as i32;
const EXCLUDED: i32 = i32::MIN;
const ACTIVE: &[RowState] = &[RowState::Active];
const ANY: &[RowState] = &[
    RowState::Active,
    RowState::Active,
    RowState::Removed,
    RowState::Draining,
    RowState::Down,
];

const KINDS: [Kind; 6] = [
    // Nearly all are equal.
    Kind {
        states: ACTIVE,
        counts: 2,
        caps: &[MOST],
        costs: &[1.0],
        waiting: &[0.0],
        pressures: &[0.0],
        floors: &[0.0],
        bases: &[0.0],
        turns: 1 << TURN_BITS,
    },
    // Weights and caps.
    Kind {
        states: ANY,
        counts: 9,
        caps: &[MOST, 1, 4, 8, EXCLUDED | 8],
        costs: &[1.0, 2.0, 6.0, 3.0],
        waiting: &[0.0],
        pressures: &[0.0],
        floors: &[0.0],
        bases: &[0.0],
        turns: 4,
    },
    // Statistics.
    Kind {
        states: ANY,
        counts: 40,
        caps: &[MOST, 30, EXCLUDED],
        costs: &[1.0, 0.5, 1.0 / 3.0],
        waiting: &[0.0, 3.0, 20.0],
        pressures: &[0.0, 0.3, 2.9],
        floors: &[0.0, 1.0, 7.0, 33.0],
        bases: &[0.0, 3.0, 12.5],
        turns: 1 << TURN_BITS,
    },
    // The ends of the ranges.
    Kind {
        states: ANY,
        counts: MAX_REQUESTS as u64 + 1,
        caps: &[MOST, MOST - 1, 0, EXCLUDED | MOST],
        costs: &[0.0, f32::MIN_POSITIVE, 1.0, 8.5e37, f32::MAX],
        waiting: &[0.0, u32::MAX as f32],
        pressures: &[0.0, 3.0 * 4096.0],
        floors: &[0.0, u32::MAX as f32],
        bases: &[0.0, u32::MAX as f32],
        turns: 1 << TURN_BITS,
    },
    // Few or none take the request.
    Kind {
        states: &[RowState::Removed, RowState::Draining, RowState::Down],
        counts: 3,
        caps: &[MOST],
        costs: &[1.0],
        waiting: &[0.0],
        pressures: &[0.0],
        floors: &[0.0],
        bases: &[0.0],
        turns: 4,
    },
    Kind {
        states: ACTIVE,
        counts: 30,
        caps: &[0, 1, EXCLUDED | 20],
        costs: &[1.0, 2.0],
        waiting: &[0.0, 2.0],
        pressures: &[1.0],
        floors: &[0.0],
        bases: &[0.0],
        turns: 1 << TURN_BITS,
    },
];

/// A word of so many requests, written by any lane.
fn word(random: &mut Random, state: RowState, count: u32) -> Word {
    let tag = Tag::of(random.next());
    let lane = crate::algorithm::word::LaneId(random.below(4096) as u16);
    Word::zeroed().rewritten(state, tag).changed(
        Amount::new(count.into(), random.below(2) as i64),
        lane,
        tag,
    )
}

impl Engines {
    fn new(length: usize, kind: &Kind, seed: u64) -> Self {
        let mut random = Random(seed ^ ((length as u64) << 32));
        let words = (0..length)
            .map(|_| {
                let state = random.one_of(kind.states);
                let count = random.below(kind.counts) as u32;
                Atomic::new(word(&mut random, state, count))
            })
            .collect();
        // As of a lane, which has terms and turns for whole eights: those of no engine may be anything.
        let eights = length.div_ceil(8);
        let terms = (0..eights)
            .map(|_| Eight {
                cap: std::array::from_fn(|_| random.one_of(kind.caps)),
                cost: std::array::from_fn(|_| random.one_of(kind.costs)),
                waiting: std::array::from_fn(|_| random.one_of(kind.waiting)),
                pressure: std::array::from_fn(|_| random.one_of(kind.pressures)),
                floor: std::array::from_fn(|_| random.one_of(kind.floors)),
                base: std::array::from_fn(|_| random.one_of(kind.bases)),
            })
            .collect();
        let turn = |random: &mut Random, engine| turn(random.below(kind.turns) as u32, engine);
        let turns = (0..eights)
            .map(|eight| std::array::from_fn(|place| turn(&mut random, 8 * eight + place)))
            .collect();
        let tokens = (0..length)
            .map(|_| match random.below(8) {
                0 => random.next() as u32,
                _ => random.below(5) as u32 * 100,
            })
            .collect();
        Self {
            words,
            terms,
            turns,
            tokens,
        }
    }

    /// All of them but their caps.
    fn without_caps(mut self) -> Self {
        for eight in &mut self.terms {
            eight.cap = [MOST; 8];
        }
        self
    }

    /// Finds the least load in the way that is right at a glance: the engine, its load, and whether others have the
    /// same one. `load` is that of an engine by its terms, their place in them, and its count.
    fn least<T: PartialOrd + Copy>(
        &self,
        load: impl Fn(usize, &Eight, usize, u32) -> T,
    ) -> Option<(usize, T, bool)> {
        let may_take: Vec<(T, i32, usize)> = (0..self.words.len())
            .filter_map(|engine| {
                let (terms, place) = (&self.terms[engine / 8], engine % 8);
                let word = self.words[engine].load(Ordering::Relaxed);
                let is_open = word.is_active() && i64::from(word.value()) < terms.cap[place].into();
                is_open.then(|| {
                    let load = load(engine, terms, place, word.value());
                    (load, self.turns[engine / 8][place], engine)
                })
            })
            .collect();
        let best = may_take.iter().copied().reduce(|best, next| {
            let comes_first = next.0 < best.0 || (next.0 == best.0 && next.1 < best.1);
            if comes_first { next } else { best }
        })?;
        let equals = may_take.iter().filter(|other| other.0 == best.0).count();
        Some((best.2, best.0, equals > 1))
    }

    /// What each way finds by a formula.
    fn by_each_way(&self, formula: impl Formula) -> Vec<(&'static str, Option<Least>)> {
        let terms = &self.terms;
        let loads = ByFormula { formula, terms };
        let mut found = vec![
            (
                "one by one",
                one_by_one(loads, &self.words, &self.turns, |_| 0),
            ),
            (
                "at once",
                at_once(formula, &self.words, &self.terms, &self.turns),
            ),
        ];
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = avx2::Avx2::detect() {
            // SAFETY: the processor has it.
            let least = unsafe { by_avx2(avx2, formula, &self.words, &self.terms, &self.turns) };
            found.push(("AVX2", least));
        }
        #[cfg(target_arch = "aarch64")]
        {
            let least = vectors::least(neon::Neon, formula, &self.words, &self.terms, &self.turns);
            found.push(("NEON", least));
        }
        found
    }

    fn check<T: PartialOrd + Copy>(
        &self,
        formula: impl Formula,
        load: impl Fn(&Eight, usize, u32) -> T,
        bits: impl Fn(T) -> i32,
        case: &str,
    ) {
        let right = self.least(|_, terms, place, count| load(terms, place, count));
        let right = right.map(|(engine, load, is_tied)| (engine, bits(load), is_tied));
        for (way, found) in self.by_each_way(formula) {
            assert_eq!(found.map(parts), right, "{way}, {case}");
        }
    }
}

fn parts(least: Least) -> (usize, i32, bool) {
    (least.engine(), least.load(), least.is_tied())
}

fn bits(load: f32) -> i32 {
    load.to_bits() as i32
}

/// Calls `check` with engines of each kind, of each length, several times.
fn for_all(mut check: impl FnMut(Engines, &str)) {
    for length in lengths() {
        let seeds = if length < 200 { 8 } else { 1 };
        for (number, kind) in KINDS.iter().enumerate() {
            for seed in 0..seeds {
                let case = format!("{length} engines of kind {number}, seed {seed}");
                check(Engines::new(length, kind, seed), &case);
            }
        }
    }
}

#[test]
fn c2_each_way_finds_the_least_count() {
    for_all(|engines, case| {
        let load = |_: &Eight, _, count| count as i32;
        engines.check(ByCount, load, |count| count, case);
    });
}

#[test]
fn c2_each_way_finds_the_least_load_under_pressure() {
    for_all(|engines, case| {
        let load = |terms: &Eight, at: usize, count: u32| {
            (count + 1) as f32 * terms.cost[at]
                + (count as f32).min(terms.waiting[at]) * terms.pressure[at]
        };
        engines.check(ByPressure, load, bits, case);
    });
}

#[test]
fn c2_each_way_finds_the_least_load_by_all_terms() {
    for_all(|engines, case| {
        let load = |terms: &Eight, at: usize, count: u32| {
            ((count + 1) as f32).max(terms.floor[at]) * terms.cost[at]
                + (count as f32).min(terms.waiting[at]) * terms.pressure[at]
                + terms.base[at]
        };
        engines.check(ByAll, load, bits, case);
    });
}

#[test]
fn c2_the_least_rank_is_that_of_the_least_count() {
    for_all(|engines, case| {
        let engines = engines.without_caps();
        let right = engines.least(|_, _, _, count| count);
        let right = right.map(|(engine, _, is_tied)| (engine, is_tied));
        let found = one_by_one(Counts, &engines.words, &engines.turns, |_| 0);
        let rank = |found: Least| engines.words[found.engine()].load(Ordering::Relaxed).rank();
        assert!(
            found.is_none_or(|found| found.load() == rank(found)),
            "{case}"
        );
        let found = found.map(|found| (found.engine(), found.is_tied()));
        assert_eq!(found, right, "{case}");
    });
}

#[test]
fn c5_the_least_load_by_tokens_is_found() {
    for of_request in [0, 1, 812, u32::MAX] {
        for_all(|engines, case| {
            let tokens = |engine: usize| engines.tokens[engine];
            let right = engines.least(|engine, terms, at, _| {
                (u64::from(tokens(engine)) + u64::from(of_request)) as f32 * terms.cost[at]
            });
            let right = right.map(|(engine, load, is_tied)| (engine, bits(load), is_tied));
            let terms = &engines.terms;
            let loads = ByTokens { terms, of_request };
            let found = one_by_one(loads, &engines.words, &engines.turns, tokens);
            assert_eq!(found.map(parts), right, "{case}");
        });
    }
}

#[test]
fn a_load_of_one_engine_is_that_of_a_scan() {
    for_all(|engines, case| {
        for (engine, word) in engines.words.iter().enumerate().take(40) {
            let word = word.load(Ordering::Relaxed);
            let (terms, place) = (&engines.terms[engine / 8], engine % 8);
            let loads = ByFormula {
                formula: ByAll,
                terms: &engines.terms,
            };
            if word.has_room(terms.cap[place]) {
                let one = load_by_all(terms, place, word.occupancy());
                assert_eq!(bits(one), loads.load(engine, word, 0), "{case}");
            } else {
                assert_eq!(loads.load(engine, word, 0), CLOSED, "{case}");
            }
        }
    });
}

/// The words of a scan that names the last place of each block, alone and beside equals before and behind it.
#[test]
fn c7_each_place_can_win_and_each_pair_can_be_equal() {
    let engine = |count| {
        Word::zeroed()
            .rewritten(RowState::Active, Tag::of(0))
            .changed(Amount::new(count, 0), NO_LANE, Tag::of(1))
    };
    for length in 1..=33 {
        let mut engines = Engines::new(length, &KINDS[0], 0);
        for one in 0..length {
            for other in one..length {
                for at in 0..length {
                    let is_least = at == one || at == other;
                    engines.words[at] = Atomic::new(engine(if is_least { 2 } else { 3 }));
                    // The one behind comes first.
                    engines.turns[at / 8][at % 8] = turn((length - at) as u32, at);
                }
                for (way, found) in engines.by_each_way(ByCount) {
                    let right = Some((other, 2, one != other));
                    assert_eq!(
                        found.map(parts),
                        right,
                        "{way}, {one} and {other} of {length}"
                    );
                }
            }
        }
    }
}

#[test]
fn the_vectors_of_the_processor_are_used() {
    let has_vectors = match () {
        () if cfg!(target_arch = "aarch64") => true,
        () if cfg!(target_arch = "x86_64") => {
            let processor = std::fs::read_to_string("/proc/cpuinfo").unwrap();
            let flags = processor.lines().find(|line| line.starts_with("flags"));
            flags.unwrap().split_whitespace().any(|flag| flag == "avx2")
        }
        () => false,
    };
    for length in [1, 8, 9, 16, 31, 4096] {
        let engines = Engines::new(length, &KINDS[2], 1);
        let before = EIGHTS.get();
        at_once(ByAll, &engines.words, &engines.terms, &engines.turns);
        let expected = if has_vectors { length.div_ceil(8) } else { 0 };
        assert_eq!(EIGHTS.get() - before, expected, "{length} engines");
    }
}
