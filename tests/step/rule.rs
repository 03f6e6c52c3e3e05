//! Where a request goes by the documented rules, without the code of the library.

use headcount::{EngineId, EngineState, View};

/// What a request asks for, and the load by which it is placed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asks {
    pub(crate) tokens: u32,
    pub(crate) excluded: &'static [EngineId],
    pub(crate) preferred: Option<(usize, f64)>,
    pub(crate) load: Load,
}

/// What is compared.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Load {
    /// (in flight + 1) / weight.
    Requests,
    /// (tokens in flight + the request's) / weight.
    Tokens,
    /// What is in flight.
    Floor,
}

/// What is in flight on each engine when a request was placed, or that it was refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    Placed(Vec<u32>),
    Refused,
}

/// An engine as the rule sees it.
#[derive(Clone)]
struct Engine {
    index: usize,
    in_flight: u32,
    tokens: u32,
    weight: f64,
    max_in_flight: u32,
    max_tokens: u32,
    open: bool,
}

impl Asks {
    /// Returns the possible outcomes of `count` requests, one after the other, in a table of this view.
    pub(crate) fn outcomes(&self, view: &View, count: usize) -> Vec<Outcome> {
        let engines = view.engines.iter().map(|engine| Engine {
            index: engine.id.index(),
            in_flight: engine.in_flight,
            tokens: engine.tokens,
            weight: engine.weight.into(),
            max_in_flight: engine.max_in_flight.unwrap_or(u32::MAX),
            max_tokens: engine.max_tokens.unwrap_or(u32::MAX),
            open: engine.state == EngineState::Active && !self.excluded.contains(&engine.id),
        });
        let mut outcomes = Vec::new();
        self.place(view, engines.collect(), count, &mut outcomes);
        outcomes
    }

    fn place(&self, view: &View, engines: Vec<Engine>, count: usize, into: &mut Vec<Outcome>) {
        if count == 0 {
            let last = engines.iter().map(|engine| engine.index + 1).max();
            let mut counts = vec![0; last.unwrap_or(0)];
            (engines.iter()).for_each(|engine| counts[engine.index] = engine.in_flight);
            into.push(Outcome::Placed(counts));
            return;
        }
        let next = if self.table_has_room(view, &engines) {
            self.least(&engines)
        } else {
            Vec::new()
        };
        if next.is_empty() {
            into.push(Outcome::Refused);
        }
        for at in next {
            let mut engines = engines.clone();
            engines[at].in_flight += 1;
            engines[at].tokens += self.tokens;
            self.place(view, engines, count - 1, into);
        }
    }

    fn table_has_room(&self, view: &View, engines: &[Engine]) -> bool {
        let in_flight: u32 = engines.iter().map(|engine| engine.in_flight).sum();
        let tokens: u32 = engines.iter().map(|engine| engine.tokens).sum();
        in_flight < view.max_in_flight.unwrap_or(u32::MAX)
            && (self.tokens == 0 || tokens + self.tokens <= view.max_tokens.unwrap_or(u32::MAX))
    }

    /// The engines, by their places, of which the next request goes to one.
    fn least(&self, engines: &[Engine]) -> Vec<usize> {
        let has_room = |engine: &Engine| {
            engine.open
                && engine.in_flight < engine.max_in_flight
                && (self.tokens == 0 || engine.tokens + self.tokens <= engine.max_tokens)
        };
        let may: Vec<usize> = (0..engines.len())
            .filter(|&at| has_room(&engines[at]))
            .collect();
        let load = |at: usize| self.load_of(&engines[at]);
        let least = (may.iter()).fold(f64::INFINITY, |least, &at| least.min(load(at)));
        if let Some((preferred, slack)) = self.preferred
            && let Some(&at) = may.iter().find(|&&at| engines[at].index == preferred)
            && load(at) <= least + slack
        {
            return vec![at];
        }
        may.into_iter().filter(|&at| load(at) == least).collect()
    }

    fn load_of(&self, engine: &Engine) -> f64 {
        match self.load {
            Load::Requests => f64::from(engine.in_flight + 1) / engine.weight,
            Load::Tokens => f64::from(engine.tokens + self.tokens) / engine.weight,
            Load::Floor => engine.in_flight.into(),
        }
    }
}
