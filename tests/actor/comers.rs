//! Engines that come and go under two names in one slot, and the changes to them that were found.

use headcount::{Engine, EngineState, Error, Table};
use headcount_tests::CameAndWent;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

/// The engine that others may change.
const FAIR: &str = "fair";
/// The engine that no other process may change.
const SPARED: &str = "spared";

/// What has become of these engines so far.
#[derive(Default)]
pub(crate) struct Comers {
    /// How often the engine that is to be spared has come and gone.
    cycles: AtomicU64,
    /// How often it was not as it had been added.
    wronged: AtomicU64,
}

impl Comers {
    /// Adds and removes them alternately, for ever.
    pub(crate) fn start(table: Table) -> Arc<Self> {
        let comers = Arc::<Self>::default();
        let seen = Arc::clone(&comers);
        thread::spawn(move || {
            while let Ok(()) = seen.come_and_go(&table) {}
            // A failed call counts as a wrong, too.
            seen.wronged.fetch_add(1, Relaxed);
        });
        comers
    }

    fn come_and_go(&self, table: &Table) -> Result<(), Error> {
        match table.remove(table.add(Engine::named(FAIR))?) {
            // Another process may have removed it.
            Ok(_) | Err(Error::NoSuchEngine { .. }) => {}
            Err(error) => return Err(error),
        }
        let spared = table.add(Engine::named(SPARED))?;
        let view = table.view();
        let is_as_added = view.engine(spared).is_some_and(|engine| {
            let caps = (engine.max_in_flight, engine.max_tokens);
            engine.name == SPARED
                && (engine.state, engine.weight, caps) == (EngineState::Active, 1.0, (None, None))
        });
        let is_there = table.remove(spared).is_ok();
        self.cycles.fetch_add(1, Relaxed);
        (self.wronged).fetch_add(u64::from(!is_as_added || !is_there), Relaxed);
        Ok(())
    }

    /// What has become of the engine that is to be spared.
    pub(crate) fn report(&self) -> CameAndWent {
        CameAndWent {
            cycles: self.cycles.load(Relaxed),
            wronged: self.wronged.load(Relaxed),
        }
    }
}
