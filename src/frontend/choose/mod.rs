//! The choice of an engine for a request, by every policy.
//!
//! Policies whose load is a function of the count go one way: [`load`] works out what does not change from request to
//! request, and [`algorithm::choose`](crate::algorithm::choose) finds the least. The others ([`Policy::PowerOfTwo`](crate::Policy::PowerOfTwo),
//! [`Policy::Custom`](crate::Policy::Custom), and a request that is pinned) look at engines one by one, in [`single`].

pub(crate) mod load;
mod refusal;
mod single;
pub(crate) mod tie_break;

use crate::algorithm::choose::{Anywhere, Wishes};
use crate::algorithm::counter::Counter;
use crate::algorithm::place::Choice;
use crate::algorithm::queue::order::EngineSet;
use crate::algorithm::terms::Terms;
use crate::algorithm::total::Full;
use crate::frontend::choose::load::{Loads, PolicyKey};
use crate::frontend::choose::tie_break::LeastRecentlyChosen;
use crate::frontend::request::Request;
use crate::table::Table;
use crate::table::engine_id::{EngineId, EngineSelector};
use crate::table::engines::Engines;

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

/// What a lane remembers from choice to choice. Only its holder uses it.
#[derive(Debug)]
pub(crate) struct LaneMemory {
    terms: Terms,
    pub(crate) tie_break: LeastRecentlyChosen,
}

impl LaneMemory {
    /// Remembers nothing yet, in a table that has room for so many engines.
    pub(crate) fn new(max_engines: usize, tie_break: LeastRecentlyChosen) -> Self {
        Self {
            terms: Terms::new(max_engines),
            tie_break,
        }
    }

    /// Chooses an engine for a request without tokens that may go anywhere. `None`: there is more to consider.
    #[inline(always)]
    pub(crate) fn choose_shortly(&self, loads: &Loads<'_>) -> Option<Choice> {
        (loads.rows()).choose_shortly(&self.terms, self.tie_break.turns(), loads)
    }

    /// Chooses an engine for a request of so many tokens that may go anywhere, by a policy that has terms.
    pub(crate) fn choose_anywhere(&mut self, loads: &Loads<'_>, tokens: u32) -> Option<Choice> {
        let turns = self.tie_break.turns();
        (loads.rows()).choose(&mut self.terms, turns, &Anywhere(tokens), loads)
    }
}

/// Everything that a choice depends on, apart from the memory of a lane.
#[derive(Clone, Copy)]
pub(crate) struct Chooser<'a> {
    table: &'a Table,
    engines: Engines<'a>,
    counter: &'a Counter<'a>,
    policy: &'a PolicyKey,
    request: &'a Request<'a>,
    /// The engines on which other requests come first.
    behind: &'a [EngineSet],
}

impl<'a> Chooser<'a> {
    pub(crate) fn new(table: &'a Table, policy: &'a PolicyKey, request: &'a Request<'a>) -> Self {
        Self {
            table,
            engines: table.engines(),
            counter: table.mapping().counter(),
            policy,
            request,
            behind: &[],
        }
    }

    /// The same for a request that waits, or finds others waiting: these come first on these engines.
    pub(crate) fn behind(mut self, others: &'a [EngineSet]) -> Self {
        self.behind = others;
        self
    }

    /// The tokens of the request.
    pub(crate) fn tokens(&self) -> u32 {
        self.request.tokens
    }

    /// The least loaded of the engines that may be chosen.
    pub(crate) fn choose(&self, memory: &mut LaneMemory) -> Result<Choice, NoChoice> {
        if let Some(engine) = self.request.pin {
            return self.pinned(engine);
        }
        let by_weights = PolicyKey::BY_WEIGHTS;
        let mut policy = self.policy;
        if policy.is_power_of_two() {
            if let Some(choice) = self.best_of_two(&mut memory.tie_break) {
                return Ok(choice);
            }
            policy = &by_weights;
        }
        let loads = Loads::new(self.table, policy);
        loop {
            let terms = &mut memory.terms;
            let turns = memory.tie_break.turns();
            if let Some(choice) = loads.rows().choose(terms, turns, self, &loads) {
                return Ok(choice);
            }
            // If one takes requests by now, another process has completed an operation or a change: not a spin without
            // bound.
            if let Some(no_choice) = self.refusal() {
                return Err(no_choice);
            }
            // If something is written to a damaged table that no change announces, too.
            memory.terms.outdate();
        }
    }

    /// Whether the request excludes the engine that has this slot.
    fn is_excluded(&self, engine: usize) -> bool {
        // After the row's word: an engine that has got this slot since then has changed that word, and the
        // request is not counted by it.
        let is_it = |id: &EngineId| id.index() == engine && *id == self.engines.id(engine);
        self.request.excluded.iter().any(is_it)
    }

    /// Whether another request comes first on an engine.
    fn is_behind(&self, engine: usize) -> bool {
        self.behind.iter().any(|others| others.has(engine))
    }

    /// Whether the request prefers the engine that has this slot.
    fn prefers(&self, engine: usize) -> bool {
        (self.request.preferred)
            .is_some_and(|(which, _)| which.index() == engine && self.engines.has(which))
    }
}

impl Wishes for Chooser<'_> {
    fn tokens(&self) -> u32 {
        self.request.tokens
    }

    fn has_excluded(&self) -> bool {
        !self.request.excluded.is_empty() || !self.behind.is_empty()
    }

    #[inline]
    fn excluded(&self, mut each: impl FnMut(usize, &dyn Fn() -> bool)) {
        // An engine that gets its slot after a look comes by a change of limits, which the choice sees in the end.
        for id in self.request.excluded {
            let slot = id.index();
            each(slot, &|| {
                slot < self.engines.in_use() && *id == self.engines.id(slot)
            });
        }
        if !self.behind.is_empty() {
            let taken = (0..self.engines.in_use()).filter(|&engine| self.is_behind(engine));
            taken.for_each(|engine| each(engine, &|| true));
        }
    }

    fn preferred(&self) -> Option<(usize, f32)> {
        let (which, slack) = self.request.preferred?;
        Some((which.index(), slack as f32))
    }

    fn is_preferred(&self) -> bool {
        (self.request.preferred).is_some_and(|(which, _)| self.engines.has(which))
    }
}
