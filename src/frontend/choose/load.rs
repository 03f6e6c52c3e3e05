//! The loads of the built-in policies: the count, and the part that a snapshot adds to it.

use crate::algorithm::place::Choice;
use crate::algorithm::word::Word;
use crate::publication::record::EngineStats;

/// An engine that takes requests, as it was looked at.
#[derive(Clone, Copy)]
pub(crate) struct Eligible {
    pub(crate) engine: usize,
    pub(crate) word: Word,
    pub(crate) weight: f64,
    /// Only read if the choice depends on it, 0 otherwise.
    pub(crate) tokens: u32,
}

impl Eligible {
    #[inline]
    pub(crate) fn chosen(&self) -> Choice {
        Choice {
            engine: self.engine,
            seen: self.word,
        }
    }
}

/// The load with this request in it, so that an idle engine of weight 4 comes before an idle one of weight 1.
#[inline]
pub(crate) fn own_load(c: &Eligible) -> f64 {
    (f64::from(c.word.value()) + 1.0) / c.weight
}

/// The cost of a queue on an engine with little cache left; never of a queue longer than the count.
#[inline]
pub(crate) fn drain_penalty(c: &Eligible, stats: &EngineStats) -> f64 {
    f64::from(stats.waiting.min(c.word.value())) * stats.pressure()
}

/// Requests that the engine has and this table never saw.
#[inline]
pub(crate) fn traffic_past_us(stats: &EngineStats) -> f64 {
    let known = u64::from(stats.in_flight.unwrap_or(0));
    let has = u64::from(stats.running) + u64::from(stats.waiting);
    has.saturating_sub(known) as f64
}

#[inline]
pub(crate) fn floor(c: &Eligible, stats: &EngineStats) -> f64 {
    let has = u64::from(stats.running) + u64::from(stats.waiting);
    (u64::from(c.word.value()).max(has) + 3 * u64::from(stats.waiting)) as f64
}
