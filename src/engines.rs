//! The engines of a mapped table: what their slots say, and how a slot is written.

use crate::algorithm::word::{MAX_REQUESTS, RowState, Word};
use crate::engine::Engine;
use crate::file::{EngineRecord, Mapping};
use crate::layout::MAX_NAME;
use crate::primitive::{Atomic, Ordering, fence};
use bytemuck::{Pod, Zeroable};

/// What a scan needs to know of an engine besides its count, in one word:
/// weight 32 | 0 (12) | request cap 20.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Pod, Zeroable)]
#[repr(transparent)]
pub(crate) struct Limits(u64);

impl Limits {
    fn of(engine: &Engine) -> Self {
        let weight = u64::from(engine.weight.to_bits());
        Self((weight << 32) | u64::from(engine.max_in_flight))
    }

    #[inline]
    pub(crate) fn weight(self) -> f64 {
        f64::from(f32::from_bits((self.0 >> 32) as u32))
    }

    #[inline]
    pub(crate) fn max_in_flight(self) -> u32 {
        self.0 as u32 & MAX_REQUESTS
    }
}

/// What a scan has to know of the engines as a whole, in one word:
/// 0 (30) | any cap 1 | weights differ 1 | engines in use 32.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Pod, Zeroable)]
#[repr(transparent)]
pub(crate) struct Roster(u64);

const WEIGHTS_DIFFER: u64 = 1 << 32;
const ANY_CAP: u64 = 1 << 33;

impl Roster {
    fn of(in_use: usize, weights_differ: bool, any_cap: bool) -> Self {
        let flags = u64::from(weights_differ) * WEIGHTS_DIFFER + u64::from(any_cap) * ANY_CAP;
        Self(in_use as u64 | flags)
    }

    /// One more than the highest slot ever used.
    #[inline]
    pub(crate) fn in_use(self) -> usize {
        self.0 as u32 as usize
    }

    /// Whether two engines may have different weights. If not, loads compare as counts do.
    #[inline]
    pub(crate) fn weights_differ(self) -> bool {
        self.0 & WEIGHTS_DIFFER != 0
    }

    /// Whether an engine may have a cap. If not, all that are active have room.
    #[inline]
    pub(crate) fn any_cap(self) -> bool {
        self.0 & ANY_CAP != 0
    }
}

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
    pub(crate) fn roster(&self) -> Roster {
        // Acquire: pairs with the Release in `write`, so that a slot within it has been written.
        self.mapping.control().roster.load(Ordering::Acquire)
    }

    /// How many slots a scan has to look at.
    #[inline]
    pub(crate) fn in_use(&self) -> usize {
        (self.roster().in_use()).min(self.mapping.layout().geometry.max_engines)
    }

    /// The limits of all slots.
    #[inline]
    pub(crate) fn all_limits(&self) -> &'a [Atomic<Limits>] {
        self.mapping.limits()
    }

    #[inline]
    pub(crate) fn limits(&self, engine: usize) -> Limits {
        // Relaxed: written before the row's word was marked, and read after that word, whose
        // Release and Acquire order the two.
        self.mapping.limits()[engine].load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn max_tokens(&self, engine: usize) -> u32 {
        // Relaxed: as for the limits.
        self.mapping.token_caps()[engine].load(Ordering::Relaxed) as u32
    }

    /// Whether a request of so many tokens may join those that are taken. One without any always may.
    #[inline]
    pub(crate) fn has_room(&self, engine: usize, taken: u32, tokens: u32) -> bool {
        let after = u64::from(taken) + u64::from(tokens);
        tokens == 0 || after <= u64::from(self.max_tokens(engine))
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
        // Acquire: pairs with the Releases in `write`; see `name`.
        self.record(engine).generation.load(Ordering::Acquire)
    }

    /// The name of the engine in a slot. Empty if the slot never had one or is being given one.
    pub(crate) fn name(&self, engine: usize) -> String {
        let record = self.record(engine);
        // An engine's name does not change while it has a state or requests; a slot that is about to
        // be reused may be read half-way, which the generation shows.
        let before = self.generation(engine);
        // Relaxed, both: between the Acquire above and the fence below.
        let length = record.name_length.load(Ordering::Relaxed) as usize;
        let bytes: Vec<u8> = (record.name.iter())
            .flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes())
            .take(length.min(MAX_NAME))
            .collect();
        // Acquire fence: pairs with the Release fence in `write`; if we read a byte of a later name,
        // then we see that the generation has moved.
        fence(Ordering::Acquire);
        if before % 2 == 1 || record.generation.load(Ordering::Relaxed) != before {
            return String::new();
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Puts an engine into a slot on which nothing is counted and that no engine has. The caller is
    /// the only one to change engines.
    pub(crate) fn write(&self, slot: usize, engine: &Engine) {
        let record = self.record(slot);
        // Relaxed: only the changer writes it. A changer that died half-way has left it odd.
        let generation = record.generation.load(Ordering::Relaxed) | 1;
        record.generation.store(generation, Ordering::Relaxed);
        // Release fence: pairs with the Acquire fence in `name`.
        fence(Ordering::Release);
        // Relaxed, both: between the fence and the Release below.
        (record.name_length).store(engine.name.len() as u64, Ordering::Relaxed);
        let mut name = engine.name.as_bytes().chunks(8);
        for word in &record.name {
            let mut bytes = [0; 8];
            let chunk = name.next().unwrap_or_default();
            bytes[..chunk.len()].copy_from_slice(chunk);
            word.store(u64::from_le_bytes(bytes), Ordering::Relaxed);
        }
        // Relaxed, both: for people only. All that was admitted here has finished, and the ledgers
        // say so: a request is in its ledger before its permit is handed out.
        let admitted = self.mapping.registry().ledger_of_all(slot).admitted;
        record.admitted_before.store(admitted, Ordering::Relaxed);
        // Release: pairs with the Acquire in `generation`.
        (record.generation).store(generation.wrapping_add(1), Ordering::Release);
        // Release: pairs with the Acquire in `arrivals`; who sees this arrival sees the generation.
        (self.mapping.control().arrivals).fetch_add(1, Ordering::Release);
        self.configure(slot, engine);
        let roster = self.roster();
        let in_use = roster.in_use().max(slot + 1);
        self.set_roster(Roster::of(
            in_use,
            roster.weights_differ(),
            roster.any_cap(),
        ));
    }

    /// Sets an engine's limits. The caller marks the row next, and calls
    /// [`renew_roster`](Self::renew_roster) then.
    pub(crate) fn configure(&self, slot: usize, engine: &Engine) {
        let roster = self.roster();
        let differs = |other: usize| self.limits(other).weight() as f32 != engine.weight;
        let weights_differ = self.slots().filter(|&other| other != slot).any(differs);
        // Before the mark: who sees the mark must not go by counts alone if that is not enough any more.
        self.set_roster(Roster::of(
            roster.in_use(),
            roster.weights_differ() || weights_differ,
            roster.any_cap() || has_cap(engine.max_in_flight, engine.max_tokens),
        ));
        // Relaxed, both: made visible by the Release of the mark that follows.
        let caps = &self.mapping.token_caps()[slot];
        caps.store(engine.max_tokens.into(), Ordering::Relaxed);
        let limits = &self.mapping.limits()[slot];
        limits.store(Limits::of(engine), Ordering::Relaxed);
    }

    /// Has scans go by counts alone if that is enough.
    pub(crate) fn renew_roster(&self) {
        let weight = |slot: usize| self.limits(slot).weight();
        let first = self.slots().next().map(weight);
        let weights_differ = self.slots().any(|slot| Some(weight(slot)) != first);
        let capped = |slot| has_cap(self.limits(slot).max_in_flight(), self.max_tokens(slot));
        let any_cap = self.slots().any(capped);
        self.set_roster(Roster::of(self.roster().in_use(), weights_differ, any_cap));
    }

    /// The slots that have an engine.
    fn slots(&self) -> impl Iterator<Item = usize> {
        (0..self.in_use()).filter(|&slot| self.word(slot).state() != RowState::Removed)
    }

    /// The caller is the only one to change engines.
    fn set_roster(&self, roster: Roster) {
        // Release: pairs with the Acquire in `roster`.
        (self.mapping.control().roster).store(roster, Ordering::Release);
    }

    /// The engine in a slot, as it was added.
    pub(crate) fn read(&self, slot: usize) -> Engine {
        let limits = self.limits(slot);
        Engine::named(self.name(slot))
            .weight(limits.weight() as f32)
            .max_in_flight(limits.max_in_flight())
            .max_tokens(self.max_tokens(slot))
    }

    pub(crate) fn mark(
        &self,
        slot: usize,
        to: impl FnMut(Word) -> Option<RowState>,
    ) -> Option<Word> {
        self.mapping.counter().mark(slot, to).ok()
    }

    pub(crate) fn word(&self, slot: usize) -> Word {
        self.mapping.counter().load(slot)
    }

    fn record(&self, slot: usize) -> &'a EngineRecord {
        &self.mapping.engines()[slot]
    }
}

fn has_cap(max_in_flight: u32, max_tokens: u32) -> bool {
    max_in_flight < MAX_REQUESTS || max_tokens < u32::MAX
}
