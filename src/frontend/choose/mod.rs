//! The choice: one look at every engine that may be chosen, and the least loaded of them.
//!
//! A choice is only a proposal. It names the word that it was made by, and the counter takes it only
//! if the engine's word still is that one; otherwise the caller chooses anew. So counts, caps and
//! states that were looked at here hold at the moment at which the request is counted.

mod load;
mod refusal;
pub(crate) mod tie_break;

use crate::algorithm::counter::Counter;
use crate::algorithm::place::Choice;
use crate::algorithm::primitive::Ordering;
use crate::algorithm::seqlatch::SeqLatch;
use crate::algorithm::total::Full;
use crate::algorithm::word::RowState;
use crate::frontend::choose::load::{Eligible, drain_penalty, floor, own_load, traffic_past_us};
use crate::frontend::choose::tie_break::LeastRecentlyChosen;
use crate::frontend::policy::{Candidate, Load, Policy};
use crate::frontend::request::Request;
use crate::publication::record::{self, EngineStats, Reading};
use crate::shm::clock;
use crate::shm::layout::publication::HEAD_WORDS;
use crate::table::Table;
use crate::table::engine_id::{EngineId, EngineSelector};
use crate::table::engines::Engines;
use std::cell::Cell;
use std::time::Duration;

/// Why no engine was chosen. Kept small (no text): `explain` counts and spells out the reasons, off the hot
/// path.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NoChoice {
    /// Those that could be chosen are at their caps. In tokens: one of them has a place.
    AtTheirCaps(Full),
    /// None can be chosen.
    AllClosed,
    /// The one that was asked for is not there.
    NotThere(EngineSelector),
}

/// Whether an engine may take the request.
enum Admission {
    Open(Eligible),
    AtItsCap(Full),
    Closed,
}

/// Everything that a choice depends on.
pub(crate) struct Chooser<'a> {
    latch: &'a SeqLatch<'a, HEAD_WORDS>,
    engines: Engines<'a>,
    counter: &'a Counter<'a>,
    policy: &'a Policy,
    request: &'a Request<'a>,
    tie_break: &'a LeastRecentlyChosen,
    /// Whether the request has no say in where it goes, and no tokens matter.
    plain: bool,
    /// Whether the last choice was one among equals.
    tied: Cell<bool>,
}

impl<'a> Chooser<'a> {
    #[inline]
    pub(crate) fn new(
        table: &'a Table,
        policy: &'a Policy,
        request: &'a Request<'a>,
        tie_break: &'a LeastRecentlyChosen,
    ) -> Self {
        let by_tokens = matches!(policy, Policy::Tokens | Policy::Custom(_));
        Self {
            latch: table.mapping().latch(),
            engines: table.engines(),
            counter: table.mapping().counter(),
            policy,
            request,
            tie_break,
            plain: request.is_plain() && !by_tokens,
            tied: Cell::new(false),
        }
    }

    /// The tokens of the request.
    pub(crate) fn tokens(&self) -> u32 {
        self.request.tokens
    }

    /// Whether the last choice was one among equals, which the tie-break has to know of.
    #[inline]
    pub(crate) fn was_tied(&self) -> bool {
        self.tied.get()
    }

    /// The least loaded of the engines that may be chosen.
    #[inline]
    pub(crate) fn choose(&self) -> Result<Choice, NoChoice> {
        // One that finds no engine, too: an engine that came up meanwhile must not be missed.
        (self.engines.rows()).choose_while_unchanged(|| self.choose_once())
    }

    #[inline]
    fn choose_once(&self) -> Result<Choice, NoChoice> {
        self.tied.set(false);
        if let Some(engine) = self.request.pin {
            return self.pinned(engine);
        }
        match *self.policy {
            Policy::InFlight { stale_after } => self
                .by_snapshot(stale_after, self.latch.is_under_pressure(), |c, stats| {
                    own_load(c) + stats.map_or(0.0, |s| drain_penalty(c, &s))
                })
                .unwrap_or_else(|| self.scan(own_load)),
            Policy::Open { stale_after } => self
                .by_snapshot(stale_after, true, |c, stats| {
                    own_load(c) + stats.map_or(0.0, |s| drain_penalty(c, &s) + traffic_past_us(&s))
                })
                .unwrap_or_else(|| self.scan(own_load)),
            Policy::Floor { stale_after } => self
                .by_snapshot(stale_after, true, |c, stats| {
                    floor(c, &stats.unwrap_or_default())
                })
                .unwrap_or_else(|| self.scan(|c| c.word.value().into())),
            Policy::Tokens => {
                self.scan(|c| (f64::from(c.tokens) + f64::from(self.request.tokens)) / c.weight)
            }
            Policy::RoundRobin => self.scan(|_| 0.0),
            Policy::PowerOfTwo => self.best_of_two(),
            Policy::Custom(ref load) => self.by_custom(load),
        }
    }

    /// Whether the request excludes the engine that has this slot.
    #[inline]
    fn is_excluded(&self, engine: usize) -> bool {
        // After the row's word: an engine that has got this slot since then has changed that word, and the
        // request is not counted by it.
        let is_it = |id: &EngineId| id.index() == engine && *id == self.engines.id(engine);
        self.request.excluded.iter().any(is_it)
    }

    /// Whether an engine may be chosen by this request, whatever it asks for.
    fn admits(&self, engine: usize) -> Admission {
        let (word, tokens) = self.counter.observe(engine);
        if !word.is_active() || self.is_excluded(engine) {
            return Admission::Closed;
        }
        // After the word, so that these are no older than it.
        let limits = self.engines.limits(engine);
        if word.value() >= limits.max_in_flight() {
            return Admission::AtItsCap(Full::Requests);
        }
        let rows = self.engines.rows();
        if !rows.has_room(engine, tokens, self.request.tokens) {
            return Admission::AtItsCap(Full::Tokens);
        }
        Admission::Open(Eligible {
            engine,
            word,
            weight: limits.weight(),
            tokens,
        })
    }

    fn pinned(&self, which: EngineSelector) -> Result<Choice, NoChoice> {
        let engine = which.index();
        if engine >= self.engines.in_use() {
            return Err(NoChoice::NotThere(which));
        }
        let admission = self.admits(engine);
        // After the word, which is the one that has to be there when the request is counted;
        // `Rows::rewrite_engine` says why that is enough.
        let exists =
            self.engines.word(engine).state() != RowState::Removed && self.engines.has(which);
        match admission {
            _ if !exists => Err(NoChoice::NotThere(which)),
            Admission::Open(c) => Ok(c.chosen()),
            Admission::AtItsCap(full) => Err(NoChoice::AtTheirCaps(full)),
            Admission::Closed => Err(NoChoice::AllClosed),
        }
    }

    /// Looks at every engine once.
    #[inline]
    fn scan(&self, load: impl Fn(&Eligible) -> f64) -> Result<Choice, NoChoice> {
        match self.plain {
            true => self.scan_plain(load),
            false => self.scan_any(load),
        }
    }

    /// The scan that nearly all requests take: two loads and a comparison an engine.
    #[inline]
    fn scan_plain(&self, load: impl Fn(&Eligible) -> f64) -> Result<Choice, NoChoice> {
        let mut best = Best::default();
        let mut at_their_caps = false;
        let words = self.counter.words.iter();
        let rows = words
            .zip(self.engines.rows().limits)
            .take(self.engines.in_use());
        for (engine, (word, limits)) in rows.enumerate() {
            // Acquire: as in `Counter::load`.
            let word = word.load(Ordering::Acquire);
            // Relaxed: as in `Engines::limits`.
            let limits = limits.load(Ordering::Relaxed);
            if word.is_active() && word.value() < limits.max_in_flight() {
                let candidate = Eligible {
                    engine,
                    word,
                    weight: limits.weight(),
                    tokens: 0,
                };
                best.offer(&candidate, load(&candidate), self.tie_break);
            } else {
                at_their_caps |= word.is_active();
            }
        }
        self.decide(best, at_their_caps.then_some(Full::Requests))
    }

    fn scan_any(&self, load: impl Fn(&Eligible) -> f64) -> Result<Choice, NoChoice> {
        let mut best = Best::default();
        let mut preferred = None;
        let mut at_their_caps = None;
        for engine in 0..self.engines.in_use() {
            match self.admits(engine) {
                Admission::Open(candidate) => {
                    let load = load(&candidate);
                    best.offer(&candidate, load, self.tie_break);
                    if self.prefers(engine) {
                        preferred = Some((candidate, load));
                    }
                }
                Admission::AtItsCap(Full::Tokens) => at_their_caps = Some(Full::Tokens),
                Admission::AtItsCap(full) => at_their_caps = at_their_caps.or(Some(full)),
                Admission::Closed => {}
            }
        }
        self.decide(self.unless_preferred(best, preferred), at_their_caps)
    }

    /// Whether the request prefers the engine that has this slot.
    #[inline]
    fn prefers(&self, engine: usize) -> bool {
        (self.request.preferred)
            .is_some_and(|(which, _)| which.index() == engine && self.engines.has(which))
    }

    /// The preferred engine in the place of the best one, if its load allows that.
    fn unless_preferred(&self, mut best: Best, preferred: Option<(Eligible, f64)>) -> Best {
        if let Some((candidate, load)) = preferred
            && let Some((_, slack)) = self.request.preferred
            && load <= best.load + slack
        {
            best.choice = Some(candidate.chosen());
            best.tied = false;
        }
        best
    }

    #[inline]
    fn decide(&self, best: Best, at_their_caps: Option<Full>) -> Result<Choice, NoChoice> {
        self.tied.set(best.tied);
        best.choice
            .ok_or(at_their_caps.map_or(NoChoice::AllClosed, NoChoice::AtTheirCaps))
    }

    /// Looks at two engines picked at random; at all of them if two that may be chosen are hard to
    /// find.
    fn best_of_two(&self) -> Result<Choice, NoChoice> {
        const PICKS: usize = 8;
        let in_use = self.engines.in_use();
        let mut best = Best::default();
        let mut first = None;
        for _ in 0..PICKS {
            let engine = self.tie_break.random(in_use);
            if in_use == 0 || first == Some(engine) {
                continue;
            }
            let Admission::Open(candidate) = self.admits(engine) else {
                continue;
            };
            best.offer(&candidate, own_load(&candidate), self.tie_break);
            if first.is_some() {
                let preferred = match self.request.preferred.map(|(engine, _)| engine.index()) {
                    Some(engine) if engine < in_use && self.prefers(engine) => {
                        match self.admits(engine) {
                            Admission::Open(candidate) => Some((candidate, own_load(&candidate))),
                            Admission::AtItsCap(_) | Admission::Closed => None,
                        }
                    }
                    _ => None,
                };
                return self.decide(self.unless_preferred(best, preferred), None);
            }
            first = Some(engine);
        }
        self.scan(own_load)
    }

    /// The choice by a snapshot; `None` if there is none, it is stale, or it does not matter.
    #[inline]
    fn by_snapshot(
        &self,
        stale_after: Duration,
        matters: bool,
        load: impl Fn(&Eligible, Option<EngineStats>) -> f64,
    ) -> Option<Result<Choice, NoChoice>> {
        if !matters {
            return None;
        }
        let limit = clock::in_nanoseconds(stale_after);
        let fresh = |reading: &Reading<'a>| {
            reading
                .age(clock::now_coarse())
                .is_some_and(|age| age < limit)
        };
        let read = record::read(self.latch, |reading| {
            fresh(&reading).then(|| self.scan(|c| load(c, reading.stats(c.engine, &self.engines))))
        });
        read.unwrap_or(None)
    }

    fn by_custom(&self, load: &Load) -> Result<Choice, NoChoice> {
        let engine_load = |c: &Eligible, stats: Option<EngineStats>, age: u64| Candidate {
            engine: self.engines.id(c.engine),
            weight: c.weight as f32,
            in_flight: c.word.value(),
            tokens: c.tokens,
            stats,
            age: Duration::from_nanos(if stats.is_some() { age } else { 0 }),
        };
        let by_snapshot = record::read(self.latch, |reading| {
            let age = reading.age(clock::now_coarse())?;
            Some(self.scan(|c| {
                let stats = reading.stats(c.engine, &self.engines);
                (load.0)(&engine_load(c, stats, age))
            }))
        });
        match by_snapshot {
            Ok(Some(choice)) => choice,
            _ => self.scan(|c| (load.0)(&engine_load(c, None, 0))),
        }
    }
}

/// The best candidate so far.
struct Best {
    choice: Option<Choice>,
    load: f64,
    last_chosen: u64,
    /// Whether others have the same load.
    tied: bool,
}

impl Default for Best {
    #[inline]
    fn default() -> Self {
        Self {
            choice: None,
            load: f64::INFINITY,
            last_chosen: u64::MAX,
            tied: false,
        }
    }
}

impl Best {
    #[inline]
    fn offer(&mut self, candidate: &Eligible, load: f64, tie_break: &LeastRecentlyChosen) {
        // A load that is not a number comes last.
        let load = load.min(f64::INFINITY);
        if load > self.load {
            return;
        }
        let last_chosen = tie_break.last_chosen(candidate.engine);
        let tied = load == self.load && self.choice.is_some();
        if !tied || last_chosen < self.last_chosen {
            *self = Self {
                choice: Some(candidate.chosen()),
                load,
                last_chosen,
                tied,
            };
        }
        self.tied = tied;
    }
}
