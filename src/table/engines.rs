//! The engines of a mapped table: what their slots say, and how a slot is written.

use crate::algorithm::primitive::Ordering;
use crate::algorithm::rows::{Limits, Rows, ScanHints};
use crate::algorithm::word::{RowState, Word};
use crate::shm::Mapping;
use crate::shm::layout::EngineRecord;
use crate::table::engine::Engine;
use crate::table::engine_id::{EngineId, EngineSelector};

/// The engines of a mapped table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Engines<'a> {
    mapping: &'a Mapping,
}

impl<'a> Engines<'a> {
    pub(crate) fn of(mapping: &'a Mapping) -> Self {
        Self { mapping }
    }

    #[inline]
    pub(crate) fn rows(&self) -> &'a Rows<'a> {
        self.mapping.rows()
    }

    pub(crate) fn hints(&self) -> ScanHints {
        self.rows().hints()
    }

    /// How many slots a scan has to look at.
    #[inline]
    pub(crate) fn in_use(&self) -> usize {
        self.rows().in_use(self.rows().hints())
    }

    #[inline]
    pub(crate) fn limits(&self, engine: usize) -> Limits {
        self.rows().limits(engine)
    }

    #[inline]
    pub(crate) fn max_tokens(&self, engine: usize) -> u32 {
        self.rows().max_tokens(engine)
    }

    /// How many engines were ever put into slots.
    #[inline]
    pub(crate) fn arrivals(&self) -> u64 {
        // Acquire: pairs with the Release in `write`.
        self.mapping.control().arrivals.load(Ordering::Acquire)
    }

    /// The requests that engines in this slot had admitted before the one that it has.
    pub(crate) fn admitted_before(&self, engine: usize) -> u64 {
        // Relaxed: for people only.
        self.record(engine).admitted_before.load(Ordering::Relaxed)
    }

    /// Which of the engines that this slot has had it has now; odd while its name changes.
    #[inline]
    pub(crate) fn generation(&self, engine: usize) -> u64 {
        self.record(engine).name.generation()
    }

    /// The id of the engine that has a slot, or had it last.
    pub(crate) fn id(&self, engine: usize) -> EngineId {
        EngineId::new(engine, self.generation(engine))
    }

    /// Whether the slot has the engine that this means.
    ///
    /// To be asked after the row's word was loaded, by a caller that is to replace that word;
    /// [`Rows::rewrite_engine`] says why.
    ///
    /// If the answer is no, then for good: an id's generation was read from its slot, and generations
    /// only grow.
    #[inline]
    pub(crate) fn has(&self, which: EngineSelector) -> bool {
        (which.generation()).is_none_or(|generation| self.generation(which.index()) == generation)
    }

    /// The name of the engine in a slot. Empty if the slot never had one or is being given one.
    pub(crate) fn name(&self, engine: usize) -> String {
        self.identity(engine)
            .map_or_else(String::new, |(_, name)| name)
    }

    /// The engine that has a slot, or had it last: its id and its name. `None` while the slot is being
    /// given to an engine.
    pub(crate) fn identity(&self, engine: usize) -> Option<(EngineId, String)> {
        // An engine's name does not change while it has a state or requests.
        let (bytes, generation) = self.record(engine).name.read()?;
        let name = String::from_utf8_lossy(&bytes).into_owned();
        Some((EngineId::new(engine, generation), name))
    }

    /// Puts an engine into a slot on which nothing is counted and that no engine has. The caller is
    /// the only one to change engines, and rewrites it active next.
    pub(crate) fn write(&self, slot: usize, engine: &Engine) {
        let record = self.record(slot);
        record.name.write(engine.name.as_bytes());
        // Relaxed, both: for people only. All that was admitted here has finished, and the ledgers
        // say so: a request is in its ledger before its permit is handed out.
        let admitted = self.mapping.registry().ledger_of_all(slot).admitted;
        record.admitted_before.store(admitted, Ordering::Relaxed);
        // Release: pairs with the Acquire in `arrivals`; who sees this arrival sees the generation.
        (self.mapping.control().arrivals).fetch_add(1, Ordering::Release);
        self.configure(slot, engine);
        (self.rows()).update_hints(|hints| hints.with_in_use(hints.in_use().max(slot + 1)));
    }

    /// Sets an engine's limits. The caller announces them next.
    pub(crate) fn configure(&self, slot: usize, engine: &Engine) {
        let limits = Limits::new(engine.weight, engine.max_in_flight);
        (self.rows()).set_limits(slot, limits, engine.max_tokens);
    }

    /// The engine in a slot, as it was added.
    pub(crate) fn read(&self, slot: usize) -> Engine {
        let limits = self.limits(slot);
        Engine::named(self.name(slot))
            .weight(limits.weight())
            .max_in_flight(limits.max_in_flight())
            .max_tokens(self.max_tokens(slot))
    }

    pub(crate) fn rewrite(
        &self,
        slot: usize,
        to: impl FnMut(Word) -> Option<RowState>,
    ) -> Option<Word> {
        self.mapping.counter().rewrite(slot, to).ok()
    }

    pub(crate) fn word(&self, slot: usize) -> Word {
        self.mapping.counter().load(slot)
    }

    fn record(&self, slot: usize) -> &'a EngineRecord {
        &self.mapping.engines()[slot]
    }
}
