//! Sends prompts with the same beginning to the same engine, whose prefix cache is warm then.
//!
//! Rendezvous hashing chooses the engine: each engine's name is hashed together with the beginning, and the
//! highest hash wins. All workers agree without a message between them, and an engine that comes or goes moves
//! only its own share of the prompts.

use crate::options::Options;
use headcount::{EngineId, EngineState, Table};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

#[derive(Debug)]
pub(crate) struct Affinity {
    slack: Option<f64>,
    /// Number and name of the engines that took requests at the last renewal.
    engines: Mutex<Vec<(EngineId, String)>>,
}

impl Affinity {
    pub(crate) fn new(options: &Options, table: &Table) -> Self {
        let affinity = Self {
            slack: options.affinity,
            engines: Mutex::default(),
        };
        affinity.renew(table);
        affinity
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.slack.is_some()
    }

    /// Takes the engines from the table. Between two calls, a prompt may prefer an engine that has left, which has
    /// no effect.
    pub(crate) fn renew(&self, table: &Table) {
        if self.is_wanted() {
            let engines = table.view().engines.into_iter();
            let active = engines.filter(|engine| engine.state == EngineState::Active);
            *self.engines.lock().unwrap_or_else(PoisonError::into_inner) =
                active.map(|engine| (engine.id, engine.name)).collect();
        }
    }

    /// Returns the engine for prompts with this beginning, and how much more loaded it may be than the least
    /// loaded one.
    pub(crate) fn prefer(&self, beginning: &[u8]) -> Option<(EngineId, f64)> {
        let slack = self.slack?;
        let engines = self.engines.lock().unwrap_or_else(PoisonError::into_inner);
        let score = |name: &str| {
            let mut hasher = DefaultHasher::new(); // the same keys in every process
            (beginning, name).hash(&mut hasher);
            hasher.finish()
        };
        let best = engines.iter().max_by_key(|(_, name)| score(name))?;
        Some((best.0, slack))
    }
}
