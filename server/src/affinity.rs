//! Prompts that begin alike go to the same engine, whose prefix cache is warm then.
//!
//! The engine is chosen by rendezvous hashing: each engine's name is hashed together with the
//! beginning, and the highest wins. All workers agree without a word between them, and an engine
//! that comes or goes moves only its own share.

use crate::options::Options;
use headcount::{EngineId, EngineState, Table};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

#[derive(Debug)]
pub(crate) struct Affinity {
    slack: Option<f64>,
    /// Number and name of those that take requests, as of the last look.
    engines: Mutex<Vec<(EngineId, String)>>,
}

impl Affinity {
    pub(crate) fn new(options: &Options, table: &Table) -> Self {
        let affinity = Self {
            slack: options.affinity,
            engines: Mutex::default(),
        };
        affinity.look_up(table);
        affinity
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.slack.is_some()
    }

    /// Takes note of the engines. In between, one that has gone is preferred in vain.
    pub(crate) fn look_up(&self, table: &Table) {
        if self.is_wanted() {
            let engines = table.view().engines.into_iter();
            let active = engines.filter(|engine| engine.state == EngineState::Active);
            *self.engines.lock().unwrap_or_else(PoisonError::into_inner) =
                active.map(|engine| (engine.id, engine.name)).collect();
        }
    }

    /// The engine for prompts that begin like this, and how much more loaded it may be.
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
