//! Choices that look at engines one by one: of the engine that a request is pinned to, of two picked at random, and by a
//! load of the user's own.

use super::{Chooser, NoChoice};
use crate::algorithm::place::Choice;
use crate::algorithm::rows::ScanHints;
use crate::algorithm::total::Full;
use crate::algorithm::word::{RowState, Word};
use crate::frontend::choose::tie_break::LeastRecentlyChosen;
use crate::frontend::policy::{Candidate, Load};
use crate::publication::record::{self, EngineStats};
use crate::shm::clock;
use crate::table::engine_id::EngineSelector;
use std::time::Duration;

/// Whether an engine may take the request.
pub(super) enum Admission {
    Open(Eligible),
    AtItsCap(Full),
    Closed,
}

/// An engine that takes requests, as it was looked at.
#[derive(Clone, Copy)]
pub(super) struct Eligible {
    engine: usize,
    word: Word,
    weight: f32,
    tokens: u32,
    hints: ScanHints,
}

impl Eligible {
    fn choice(&self) -> Choice {
        Choice::new(self.engine, self.word, self.hints)
    }

    /// The load with this request in it.
    fn own_load(&self) -> f64 {
        (f64::from(self.word.value()) + 1.0) / f64::from(self.weight)
    }
}

impl Chooser<'_> {
    /// Whether an engine may be chosen by this request, whatever it asks for.
    pub(super) fn admits(&self, engine: usize) -> Admission {
        let (word, tokens) = self.counter.observe(engine);
        if !word.is_active() || self.is_excluded(engine) {
            return Admission::Closed;
        }
        // After the word, so that these are no older than it.
        let limits = self.engines.limits(engine);
        if !word.has_room(limits.max_in_flight() as i32) {
            return Admission::AtItsCap(Full::Requests);
        }
        if self.is_behind(engine) {
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
            hints: rows.hints(),
        })
    }

    /// The engine that the request is pinned to.
    pub(super) fn pinned(&self, which: EngineSelector) -> Result<Choice, NoChoice> {
        let engine = which.index();
        (self.engines.rows()).choose_while_unchanged(|| {
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
                Admission::Open(c) => Ok(c.choice()),
                Admission::AtItsCap(full) => Err(NoChoice::AtTheirCaps(full)),
                Admission::Closed => Err(NoChoice::AllClosed),
            }
        })
    }

    /// The better of two engines picked at random. `None`: two that may be chosen are hard to find.
    pub(super) fn best_of_two(&self, tie_break: &mut LeastRecentlyChosen) -> Option<Choice> {
        (self.engines.rows()).choose_while_unchanged(|| self.try_two(tie_break))
    }

    fn try_two(&self, tie_break: &mut LeastRecentlyChosen) -> Option<Choice> {
        const PICKS: usize = 8;
        let in_use = self.engines.in_use();
        let mut best = Best::default();
        let mut first = None;
        for _ in 0..PICKS {
            let engine = tie_break.random(in_use);
            if in_use == 0 || first == Some(engine) {
                continue;
            }
            let Admission::Open(candidate) = self.admits(engine) else {
                continue;
            };
            best.offer(&candidate, candidate.own_load(), |engine| {
                tie_break.last_chosen(engine)
            });
            if first.is_some() {
                let preferred = (self.request.preferred)
                    .map(|(engine, _)| engine.index())
                    .filter(|&engine| engine < in_use && self.prefers(engine))
                    .and_then(|engine| match self.admits(engine) {
                        Admission::Open(candidate) => Some((candidate, candidate.own_load())),
                        Admission::AtItsCap(_) | Admission::Closed => None,
                    });
                return self.unless_preferred(best, preferred).choice;
            }
            first = Some(engine);
        }
        None
    }

    /// The choice by a load of the user's own, which may be anything: it is called while no lane is entered.
    /// `last_chosen` returns a number for an engine, smaller the longer ago it was chosen.
    pub(crate) fn choose_by_custom(
        &self,
        load: &Load,
        last_chosen: impl Fn(usize) -> i32,
    ) -> Result<Choice, NoChoice> {
        if let Some(engine) = self.request.pin {
            return self.pinned(engine);
        }
        let rows = self.engines.rows();
        loop {
            let choice = rows.choose_while_unchanged(|| self.try_custom(load, &last_chosen));
            if let Some(choice) = choice {
                return Ok(choice);
            }
            // If one takes requests by now, another process has completed an operation or a change: not a spin without
            // bound.
            if let Some(no_choice) = self.refusal() {
                return Err(no_choice);
            }
        }
    }

    fn try_custom(&self, load: &Load, last_chosen: &impl Fn(usize) -> i32) -> Option<Choice> {
        let candidate = |c: &Eligible, stats: Option<EngineStats>, age: u64| Candidate {
            engine: self.engines.id(c.engine),
            weight: c.weight,
            in_flight: c.word.value(),
            tokens: c.tokens,
            stats,
            age: Duration::from_nanos(if stats.is_some() { age } else { 0 }),
        };
        let latch = self.table.mapping().latch();
        let by_snapshot = record::read(latch, |reading| {
            let age = reading.age(clock::now_coarse())?;
            Some(self.scan(last_chosen, |c| {
                let stats = reading.stats(c.engine, &self.engines);
                (load.0)(&candidate(c, stats, age))
            }))
        });
        match by_snapshot {
            Ok(Some(choice)) => choice,
            _ => self.scan(last_chosen, |c| (load.0)(&candidate(c, None, 0))),
        }
    }

    fn scan(
        &self,
        last_chosen: &impl Fn(usize) -> i32,
        load: impl Fn(&Eligible) -> f64,
    ) -> Option<Choice> {
        let mut best = Best::default();
        let mut preferred = None;
        for engine in 0..self.engines.in_use() {
            let Admission::Open(candidate) = self.admits(engine) else {
                continue;
            };
            let load = load(&candidate);
            best.offer(&candidate, load, last_chosen);
            if self.prefers(engine) {
                preferred = Some((candidate, load));
            }
        }
        self.unless_preferred(best, preferred).choice
    }

    /// The preferred engine in the place of the best one, if its load allows that.
    fn unless_preferred(&self, mut best: Best, preferred: Option<(Eligible, f64)>) -> Best {
        if let Some((candidate, load)) = preferred
            && let Some((_, slack)) = self.request.preferred
            && load <= best.load + slack
        {
            best.choice = Some(candidate.choice());
        }
        best
    }
}

/// The best candidate so far.
struct Best {
    choice: Option<Choice>,
    load: f64,
    last_chosen: i32,
}

impl Default for Best {
    fn default() -> Self {
        Self {
            choice: None,
            load: f64::INFINITY,
            last_chosen: i32::MAX,
        }
    }
}

impl Best {
    fn offer(&mut self, candidate: &Eligible, load: f64, last_chosen: impl Fn(usize) -> i32) {
        // A load that is not a number comes last.
        let load = load.min(f64::INFINITY);
        if load > self.load {
            return;
        }
        let last_chosen = last_chosen(candidate.engine);
        let is_tied = load == self.load && self.choice.is_some();
        if !is_tied || last_chosen < self.last_chosen {
            *self = Self {
                choice: Some(candidate.choice()),
                load,
                last_chosen,
            };
        }
        self.choice = self.choice.map(|choice| choice.tied(is_tied));
    }
}
