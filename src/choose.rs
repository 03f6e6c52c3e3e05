//! The choice: one look at every engine that may be chosen, and the least loaded of them.
//!
//! A choice is only a proposal. It names the word that it was made by, and the counter takes it only
//! if the engine's word still is that one; otherwise the caller chooses anew. So counts, caps and
//! states that were looked at here hold at the moment at which the request is counted.

use crate::algorithm::counter::Counter;
use crate::algorithm::place::Choice;
use crate::algorithm::word::{RowState, Word};
use crate::clock;
use crate::engine::{Engines, Limits};
use crate::error::Error;
use crate::policy::{EngineLoad, Load, Policy};
use crate::publication::{self, EngineStats, Reading};
use crate::request::Request;
use crate::table::Table;
use crate::turns::Turns;
use std::time::Duration;

/// An engine that takes requests, as it was looked at.
#[derive(Clone, Copy)]
struct Candidate {
    engine: usize,
    word: Word,
    limits: Limits,
    /// Only read if the choice depends on it, 0 otherwise.
    tokens: u32,
}

/// Whether an engine may be chosen.
enum Look {
    Open(Candidate),
    AtItsCap,
    Closed,
}

/// Everything that a choice depends on.
pub(crate) struct Chooser<'a> {
    table: &'a Table,
    engines: Engines<'a>,
    counter: Counter<'a>,
    policy: &'a Policy,
    request: &'a Request<'a>,
    turns: &'a Turns,
    reads_tokens: bool,
}

impl<'a> Chooser<'a> {
    #[inline]
    pub(crate) fn new(
        table: &'a Table,
        policy: &'a Policy,
        request: &'a Request<'a>,
        turns: &'a Turns,
    ) -> Self {
        Self {
            table,
            engines: table.engines(),
            counter: table.mapping().counter(),
            policy,
            request,
            turns,
            reads_tokens: request.tokens > 0
                || matches!(policy, Policy::Tokens | Policy::Custom(_)),
        }
    }

    /// The least loaded of the engines that may be chosen.
    #[inline]
    pub(crate) fn choose(&self) -> Result<Choice, Error> {
        if let Some(engine) = self.request.pin {
            return self.pinned(engine);
        }
        let latch = self.table.mapping().latch();
        let fresh = |reading: &Reading<'_>, limit: Duration| {
            age_of(reading, clock::now_coarse())
                .is_some_and(|age| age <= clock::in_nanoseconds(limit))
        };
        // Each arm that reads a snapshot falls back to what is in flight if there is none.
        let by_snapshot = match *self.policy {
            Policy::Tokens => return self.scan(|c| f64::from(c.tokens) / c.limits.weight()),
            Policy::RoundRobin => return self.scan(|_| 0.0),
            Policy::PowerOfTwo => return self.best_of_two(),
            Policy::Custom(ref load) => return self.by_custom(load),
            Policy::InFlight { stale_after } => publication::read(&latch, |reading| {
                (reading.under_pressure() && fresh(&reading, stale_after)).then(|| {
                    self.scan(|c| {
                        let stats = reading.stats(c.engine, &self.engines);
                        own_load(c) + stats.map_or(0.0, |s| drain_penalty(c, &s))
                    })
                })
            }),
            Policy::Open { stale_after } => publication::read(&latch, |reading| {
                fresh(&reading, stale_after).then(|| {
                    self.scan(|c| {
                        let stats = reading.stats(c.engine, &self.engines);
                        own_load(c)
                            + stats.map_or(0.0, |s| drain_penalty(c, &s) + traffic_past_us(&s))
                    })
                })
            }),
            Policy::Floor { stale_after } => publication::read(&latch, |reading| {
                fresh(&reading, stale_after).then(|| {
                    self.scan(|c| {
                        let stats = reading.stats(c.engine, &self.engines);
                        floor(c, &stats.unwrap_or_default())
                    })
                })
            }),
        };
        match by_snapshot {
            Ok(Some(choice)) => choice,
            _ if matches!(self.policy, Policy::Floor { .. }) => {
                self.scan(|c| c.word.value().into())
            }
            _ => self.scan(own_load),
        }
    }

    /// How many requests like this one there is room for, as of now.
    pub(crate) fn room(&self) -> u64 {
        let of = |engine| match self.look(engine) {
            Look::Open(c) => {
                let requests = u64::from(c.limits.max_in_flight().saturating_sub(c.word.value()));
                let tokens = u64::from(self.engines.max_tokens(engine).saturating_sub(c.tokens));
                let each = u64::from(self.request.tokens);
                requests.min(tokens.checked_div(each).unwrap_or(u64::MAX))
            }
            Look::AtItsCap | Look::Closed => 0,
        };
        match self.request.pin {
            Some(engine) if engine < self.engines.in_use() => of(engine),
            Some(_) => 0,
            None => (0..self.engines.in_use()).map(of).sum(),
        }
    }

    #[inline]
    fn look(&self, engine: usize) -> Look {
        let (word, tokens) = match self.reads_tokens {
            true => self.counter.observe(engine),
            false => (self.counter.load(engine), 0),
        };
        if !word.is_active() || self.request.excluded.contains(&engine) {
            return Look::Closed;
        }
        // After the word, so that these are no older than it.
        let limits = self.engines.limits(engine);
        let tokens_after = u64::from(tokens) + u64::from(self.request.tokens);
        if word.value() >= limits.max_in_flight()
            || (self.request.tokens > 0
                && tokens_after > u64::from(self.engines.max_tokens(engine)))
        {
            return Look::AtItsCap;
        }
        Look::Open(Candidate {
            engine,
            word,
            limits,
            tokens,
        })
    }

    fn pinned(&self, engine: usize) -> Result<Choice, Error> {
        let exists = engine < self.engines.in_use()
            && self.engines.word(engine).state() != RowState::Removed;
        if !exists {
            return Err(Error::NoSuchEngine { engine });
        }
        match self.look(engine) {
            Look::Open(c) => Ok(c.chosen()),
            Look::AtItsCap => Err(Error::Saturated),
            Look::Closed => Err(self.unavailable()),
        }
    }

    /// Looks at every engine once.
    #[inline]
    fn scan(&self, load: impl Fn(&Candidate) -> f64) -> Result<Choice, Error> {
        let mut best = Best::new(self);
        let mut saturated = false;
        for engine in 0..self.engines.in_use() {
            match self.look(engine) {
                Look::Open(candidate) => best.offer(&candidate, load(&candidate)),
                Look::AtItsCap => saturated = true,
                Look::Closed => {}
            }
        }
        best.choice().ok_or_else(|| match saturated {
            true => Error::Saturated,
            false => self.unavailable(),
        })
    }

    /// Looks at two engines picked at random; at all of them if two that may be chosen are hard to
    /// find.
    fn best_of_two(&self) -> Result<Choice, Error> {
        const PICKS: usize = 8;
        let mut best = Best::new(self);
        let mut first = None;
        for _ in 0..PICKS {
            let engine = self.turns.random(self.engines.in_use());
            if first == Some(engine) {
                continue;
            }
            let Look::Open(candidate) = self.look(engine) else {
                continue;
            };
            best.offer(&candidate, own_load(&candidate));
            if first.is_some() {
                if let Some((preferred, _)) = self.request.preferred
                    && preferred < self.engines.in_use()
                    && let Look::Open(candidate) = self.look(preferred)
                {
                    best.offer(&candidate, own_load(&candidate));
                }
                return best.choice().ok_or_else(|| self.unavailable());
            }
            first = Some(engine);
        }
        self.scan(own_load)
    }

    fn by_custom(&self, load: &Load) -> Result<Choice, Error> {
        let engine_load = |c: &Candidate, stats: Option<EngineStats>, age: u64| EngineLoad {
            engine: c.engine,
            weight: c.limits.weight() as f32,
            in_flight: c.word.value(),
            tokens: c.tokens,
            stats,
            age: Duration::from_nanos(if stats.is_some() { age } else { 0 }),
        };
        let latch = self.table.mapping().latch();
        let by_snapshot = publication::read(&latch, |reading| {
            let age = age_of(&reading, clock::now_coarse())?;
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

    #[cold]
    fn unavailable(&self) -> Error {
        let (mut engines, mut down, mut draining, mut excluded) = (0, 0, 0, 0);
        for engine in 0..self.engines.in_use() {
            match self.engines.word(engine).state() {
                RowState::Removed => continue,
                RowState::Active if self.request.excluded.contains(&engine) => excluded += 1,
                RowState::Active => {}
                RowState::Draining => draining += 1,
                RowState::Down => down += 1,
            }
            engines += 1;
        }
        Error::Unavailable {
            engines,
            down,
            draining,
            excluded,
        }
    }
}

impl Candidate {
    fn chosen(&self) -> Choice {
        Choice {
            engine: self.engine,
            seen: self.word,
        }
    }
}

/// The best candidate so far, and the preferred one.
struct Best<'a> {
    chooser: &'a Chooser<'a>,
    choice: Option<Choice>,
    load: f64,
    last_chosen: u64,
    preferred: Option<(Choice, f64)>,
}

impl<'a> Best<'a> {
    #[inline]
    fn new(chooser: &'a Chooser<'a>) -> Self {
        Self {
            chooser,
            choice: None,
            load: f64::INFINITY,
            last_chosen: u64::MAX,
            preferred: None,
        }
    }

    #[inline]
    fn offer(&mut self, candidate: &Candidate, load: f64) {
        // A load that is not a number comes last.
        let load = load.min(f64::INFINITY);
        if let Some((engine, _)) = self.chooser.request.preferred
            && engine == candidate.engine
        {
            self.preferred = Some((candidate.chosen(), load));
        }
        if load > self.load {
            return;
        }
        let last_chosen = self.chooser.turns.last_chosen(candidate.engine);
        if load < self.load || last_chosen < self.last_chosen || self.choice.is_none() {
            self.choice = Some(candidate.chosen());
            self.load = load;
            self.last_chosen = last_chosen;
        }
    }

    #[inline]
    fn choice(self) -> Option<Choice> {
        if let (Some((preferred, load)), Some((_, slack))) =
            (self.preferred, self.chooser.request.preferred)
            && load <= self.load + slack
        {
            return Some(preferred);
        }
        self.choice
    }
}

#[inline]
fn own_load(c: &Candidate) -> f64 {
    f64::from(c.word.value()) / c.limits.weight()
}

/// What a queue costs on an engine with little cache left; never for more than is in flight.
#[inline]
fn drain_penalty(c: &Candidate, stats: &EngineStats) -> f64 {
    f64::from(stats.waiting.min(c.word.value())) * stats.pressure()
}

/// Requests that the engine has and this table never saw.
#[inline]
fn traffic_past_us(stats: &EngineStats) -> f64 {
    let known = u64::from(stats.in_flight.unwrap_or(0));
    let has = u64::from(stats.running) + u64::from(stats.waiting);
    has.saturating_sub(known) as f64
}

#[inline]
fn floor(c: &Candidate, stats: &EngineStats) -> f64 {
    let has = u64::from(stats.running) + u64::from(stats.waiting);
    (u64::from(c.word.value()).max(has) + 3 * u64::from(stats.waiting)) as f64
}

/// How old a publication is in nanoseconds. `None` if it is of another life of the machine: made
/// later than now, by more than the coarse clock may lag.
#[inline]
pub(crate) fn age_of(reading: &Reading<'_>, now: u64) -> Option<u64> {
    const LAG: u64 = 1_000_000_000;
    let published_at = reading.published_at();
    (published_at <= now.saturating_add(LAG)).then(|| now.saturating_sub(published_at))
}
