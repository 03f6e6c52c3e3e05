//! A small table in loom's memory.

use crate::algorithm::choose::{Anywhere, Renewal};
use crate::algorithm::counter::Counter;
use crate::algorithm::lane_cell::LaneCell;
use crate::algorithm::place::Choice;
use crate::algorithm::primitive::{Atomic, AtomicU64};
use crate::algorithm::record::lane::LaneRecord;
use crate::algorithm::record::ledger::{Ledger, PLANES};
use crate::algorithm::record::slot::SlotRecord;
use crate::algorithm::registry::{Holder, Locks, Registry};
use crate::algorithm::rows::{Limits, Rows, ScanHints};
use crate::algorithm::scan;
use crate::algorithm::seqlatch::{COPIES, SeqLatch};
use crate::algorithm::terms::{Source, Term, Terms};
use crate::algorithm::total::{Total, TotalCaps};
use crate::algorithm::word::{Amount, LaneId, MAX_REQUESTS, RowState, TokenWord, Witness, Word};
use bytemuck::Zeroable;
use loom::sync::Mutex;
use std::convert::Infallible;
use std::sync::Arc;

/// The words of a table, and the locks that the kernel would keep.
pub(crate) struct Scene {
    words: Vec<Atomic<Word>>,
    tokens: Vec<Atomic<TokenWord>>,
    lanes: Vec<LaneRecord>,
    ledgers: Vec<AtomicU64>,
    anonymous_tags: AtomicU64,
    witnesses: Vec<Atomic<Witness>>,
    hints: Atomic<ScanHints>,
    limits: Vec<Atomic<Limits>>,
    token_caps: Vec<AtomicU64>,
    slots: Vec<SlotRecord>,
    sequence: AtomicU64,
    publications: Vec<AtomicU64>,
    held: Vec<Mutex<Option<Holder>>>,
    lanes_per_slot: usize,
    cap: u32,
    total_caps: TotalCaps,
    /// What the first lane of each slot remembers.
    memories: Vec<LaneCell<Memory>>,
}

/// What a lane remembers from choice to choice.
struct Memory {
    terms: Terms,
    /// Engine 0 comes first among equals.
    turns: [[i32; 8]; 1],
}

/// What loads are computed from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// The requests in flight and the weight.
    Count,
    /// The tokens in flight and the weight.
    Tokens,
}

/// Where the terms of a scene's engines come from: as the library's, without statistics.
struct Loads<'a>(&'a Scene, By);

impl Renewal for Loads<'_> {
    fn is_of_now(&self, terms: &Terms) -> bool {
        terms.are_of(0, self.1 as u64)
    }

    fn has_expired(&self, terms: &Terms) -> bool {
        !terms.never_expire()
    }

    fn renew(&self, terms: &mut Terms) {
        let rows = self.0.rows();
        let source = Source {
            hints: rows.hints(),
            publication: 0,
            policy: self.1 as u64,
        };
        let term = |engine| {
            let is_there = rows.counter.load(engine).state() != RowState::Removed;
            let limits = rows.limits(engine);
            is_there.then(|| Term {
                has_token_cap: rows.max_tokens(engine) < u32::MAX,
                ..Term::of_limits(limits.max_in_flight(), limits.weight())
            })
        };
        let engines = 0..rows.in_use(source.hints);
        terms.renew(source, u64::MAX, self.1 == By::Tokens, engines.map(term));
    }
}

/// The words of a publication in a scene.
pub(crate) const PUBLICATION: usize = 2;

impl Scene {
    /// A table of active engines with so many slots of one lane each; no caps.
    pub(crate) fn new(engines: usize, slots: usize) -> Self {
        Self::with_lanes(engines, slots, 1)
    }

    pub(crate) fn with_lanes(engines: usize, slots: usize, lanes_per_slot: usize) -> Self {
        Self::with_rows(engines, 0, slots, lanes_per_slot)
    }

    /// The same with rows of a queue after the table's own.
    pub(crate) fn with_rows(
        engines: usize,
        queue_rows: usize,
        slots: usize,
        lanes_per_slot: usize,
    ) -> Self {
        let lanes = slots * lanes_per_slot;
        let rows = engines + 1 + queue_rows;
        let scene = Self {
            words: (0..rows).map(|_| Atomic::new(Word::zeroed())).collect(),
            tokens: (0..rows)
                .map(|_| Atomic::new(TokenWord::zeroed()))
                .collect(),
            lanes: (0..lanes).map(|_| LaneRecord::new()).collect(),
            ledgers: (0..rows * lanes * PLANES)
                .map(|_| AtomicU64::new(0))
                .collect(),
            anonymous_tags: AtomicU64::new(0),
            witnesses: (0..lanes * lanes)
                .map(|_| Atomic::new(Witness::NONE))
                .collect(),
            hints: Atomic::new(ScanHints::zeroed().with_in_use(engines)),
            limits: (0..engines)
                .map(|_| Atomic::new(Limits::new(1.0, MAX_REQUESTS)))
                .collect(),
            token_caps: (0..engines)
                .map(|_| AtomicU64::new(u32::MAX.into()))
                .collect(),
            slots: (0..slots).map(|_| SlotRecord::new()).collect(),
            sequence: AtomicU64::new(0),
            publications: (0..COPIES * PUBLICATION)
                .map(|_| AtomicU64::new(0))
                .collect(),
            held: (0..slots).map(|_| Mutex::new(None)).collect(),
            lanes_per_slot,
            cap: u32::MAX,
            total_caps: TotalCaps::none(),
            memories: (0..slots)
                .map(|_| {
                    LaneCell::new(Memory {
                        terms: Terms::new(engines),
                        turns: [std::array::from_fn(|engine| scan::turn(0, engine))],
                    })
                })
                .collect(),
        };
        for engine in 0..engines {
            scene.rewrite(engine, RowState::Active);
        }
        scene
    }

    /// No engine takes more than so many requests.
    pub(crate) fn with_cap(mut self, cap: u32) -> Self {
        self.cap = cap;
        self
    }

    /// The table as a whole takes no more than so many requests.
    pub(crate) fn with_total(self, max_requests: u32) -> Self {
        self.set_total(Some(max_requests));
        self
    }

    /// No engine takes more than so many tokens.
    pub(crate) fn with_token_cap(self, cap: u32) -> Self {
        for engine in 0..self.engines() {
            let limits = Limits::new(1.0, MAX_REQUESTS);
            self.rows().set_limits(engine, limits, cap);
        }
        self
    }

    /// The table as a whole takes no more than so many requests, and so many tokens.
    pub(crate) fn with_totals(self, requests: Option<u32>, tokens: u32) -> Self {
        let tokens = Some(tokens);
        self.rows().set_total_caps(Total { requests, tokens });
        self
    }

    /// The table as a whole gets another cap on requests.
    pub(crate) fn set_total(&self, requests: Option<u32>) {
        let tokens = None;
        self.rows().set_total_caps(Total { requests, tokens });
    }

    /// What a thread of its own is to do with it.
    pub(crate) fn with<T, F: FnOnce(&Self) -> T>(
        self: &Arc<Self>,
        act: F,
    ) -> impl FnOnce() -> T + use<T, F> {
        let scene = Arc::clone(self);
        move || act(&scene)
    }

    pub(crate) fn counter(&self) -> Counter<'_> {
        Counter {
            words: &self.words,
            tokens: &self.tokens,
            lanes: &self.lanes,
            ledgers: &self.ledgers,
            plane_stride: self.words.len(),
            total_row: self.limits.len(),
            queue_row: self.limits.len() + 1,
            anonymous_tags: &self.anonymous_tags,
            witnesses: &self.witnesses,
            witness_stride: self.lanes.len(),
        }
    }

    pub(crate) fn rows(&self) -> Rows<'_> {
        Rows {
            counter: self.counter(),
            hints: &self.hints,
            limits: &self.limits,
            token_caps: &self.token_caps,
            total_caps: &self.total_caps,
        }
    }

    pub(crate) fn registry(&self) -> Registry<'_> {
        Registry {
            slots: &self.slots,
            lanes_per_slot: self.lanes_per_slot,
            counter: self.counter(),
            heads: &[],
        }
    }

    pub(crate) fn latch(&self) -> SeqLatch<'_, PUBLICATION> {
        SeqLatch::new(&self.sequence, &self.publications).expect("there is room")
    }

    /// The first lane of `slot`.
    pub(crate) fn lane(&self, slot: usize) -> &LaneRecord {
        &self.lanes[slot * self.lanes_per_slot]
    }

    /// Returns how many engines there are: one for each row before the table's own.
    pub(crate) fn engines(&self) -> usize {
        self.counter().total_row
    }

    /// Joins, with a slot that must be free.
    pub(crate) fn join(&self) -> usize {
        self.try_join().expect("a slot is free")
    }

    pub(crate) fn try_join(&self) -> Option<usize> {
        let registry = self.registry();
        let Ok(slot) = registry.lock_vacant(self);
        slot.inspect(|&slot| registry.enter(slot))
    }

    /// Gives a slot back, on which nothing is counted.
    pub(crate) fn leave(&self, slot: usize) {
        self.registry().vacate(slot);
        let Ok(()) = self.unlock(slot);
    }

    /// Routes to the least loaded engine, as the first lane of `slot`. `None`: all at their caps.
    pub(crate) fn route(&self, slot: usize, tokens: u32) -> Option<usize> {
        self.route_as(self.registry().lane(slot, 0), tokens)
    }

    pub(crate) fn route_as(&self, lane: LaneId, tokens: u32) -> Option<usize> {
        let least = || {
            (0..self.engines())
                .map(|engine| self.choice(engine))
                .filter(|choice| choice.seen.is_active() && choice.seen.value() < self.cap)
                .min_by_key(|choice| choice.seen.value())
                .ok_or(())
        };
        let placed = self.rows().place(lane, Amount::request(tokens), least);
        placed.ok().map(|choice| choice.engine())
    }

    /// The choice of an engine by its word as it is.
    pub(crate) fn choice(&self, engine: usize) -> Choice {
        let seen = self.counter().load(engine);
        Choice::new(engine, seen, self.rows().hints())
    }

    /// Routes to this engine, as the first lane of `slot`. `false`: the table is at its cap.
    pub(crate) fn route_to(&self, engine: usize, slot: usize, tokens: u32) -> bool {
        let this = || Ok::<_, ()>(self.choice(engine));
        let lane = self.registry().lane(slot, 0);
        let placed = self.rows().place(lane, Amount::request(tokens), this);
        placed.is_ok()
    }

    /// Routes to this engine if it has room for the tokens, as the first lane of `slot`. `false`: it or the table has
    /// none.
    pub(crate) fn route_if_it_has_room(&self, engine: usize, slot: usize, tokens: u32) -> bool {
        let rows = self.rows();
        let this = || {
            let (seen, taken) = rows.counter.observe(engine);
            let has_room = rows.has_room(engine, taken, tokens);
            has_room
                .then_some(Choice::new(engine, seen, rows.hints()))
                .ok_or(())
        };
        let lane = self.registry().lane(slot, 0);
        rows.place(lane, Amount::request(tokens), this).is_ok()
    }

    /// Changes the tokens of a request on `engine`, as the first lane of `slot`. `false`: the engine or the table has
    /// no room for them.
    pub(crate) fn set_tokens(&self, slot: usize, engine: usize, before: u32, after: u32) -> bool {
        self.set_tokens_as(self.registry().lane(slot, 0), engine, before, after)
    }

    pub(crate) fn set_tokens_as(
        &self,
        lane: LaneId,
        engine: usize,
        before: u32,
        after: u32,
    ) -> bool {
        let set = self.rows().change_tokens(lane, engine, before, after);
        set.is_ok()
    }

    /// Routes by the choice that ships, as the first lane of `slot`: by the short way, and if that has more to
    /// consider or is overtaken, by the general one. `None`: no engine takes the request.
    pub(crate) fn route_by(&self, by: By, slot: usize, tokens: u32) -> Option<usize> {
        let (rows, loads) = (self.rows(), Loads(self, by));
        let lane = self.registry().lane(slot, 0);
        self.with_memory(slot, |Memory { terms, turns }| {
            if tokens == 0
                && let Some(choice) = rows.choose_shortly(terms, turns, &loads)
                && (rows.counter).attempt(lane, choice.engine(), choice.seen, Amount::request(0))
            {
                return Some(choice.engine());
            }
            let wishes = Anywhere(tokens);
            let choose = || rows.choose(terms, turns, &wishes, &loads).ok_or(());
            let placed = rows.place(lane, Amount::request(tokens), choose);
            placed.ok().map(|choice| choice.engine())
        })
    }

    /// Makes a choice as the first lane of `slot`, and lets it be: the lane has terms from then on.
    pub(crate) fn choose_by(&self, by: By, slot: usize, tokens: u32) -> Option<usize> {
        let rows = self.rows();
        self.with_memory(slot, |Memory { terms, turns }| {
            let choice = rows.choose(terms, turns, &Anywhere(tokens), &Loads(self, by));
            choice.map(|choice| choice.engine())
        })
    }

    /// Whether the first lane of `slot` has kept the terms of its last choice.
    pub(crate) fn has_kept_terms(&self, by: By, slot: usize) -> bool {
        self.with_memory(slot, |memory| Loads(self, by).is_of_now(&memory.terms))
    }

    fn with_memory<T>(&self, slot: usize, act: impl FnOnce(&mut Memory) -> T) -> T {
        // SAFETY: each model uses a slot in one thread at a time, and loom looks whether it is so.
        unsafe { self.memories[slot].with(act) }
    }

    /// Routes by a choice of another form, made while the engines do not change, as the first lane of
    /// `slot`. `None`: no engine takes requests.
    pub(crate) fn route_while_unchanged(&self, slot: usize) -> Option<usize> {
        let rows = self.rows();
        let least = || {
            (0..rows.in_use(rows.hints()))
                .map(|engine| self.choice(engine))
                .filter(|choice| {
                    let most = rows.limits(choice.engine()).max_in_flight();
                    choice.seen.is_active() && choice.seen.value() < most
                })
                .min_by_key(|choice| choice.seen.value())
                .ok_or(())
        };
        let lane = self.registry().lane(slot, 0);
        let choose = || rows.choose_while_unchanged(least);
        let placed = rows.place(lane, Amount::request(0), choose);
        placed.ok().map(|choice| choice.engine())
    }

    /// An engine takes requests again.
    pub(crate) fn up(&self, engine: usize) {
        self.rewrite(engine, RowState::Active);
        self.rows().announce(engine);
    }

    /// An engine gets another cap.
    pub(crate) fn set_cap(&self, engine: usize, cap: u32) {
        self.set_limits(engine, 1.0, cap);
    }

    /// An engine gets another weight.
    pub(crate) fn set_weight(&self, engine: usize, weight: f32) {
        self.set_limits(engine, weight, MAX_REQUESTS);
    }

    fn set_limits(&self, engine: usize, weight: f32, cap: u32) {
        let rows = self.rows();
        rows.set_limits(engine, Limits::new(weight, cap), u32::MAX);
        rows.announce_all();
    }

    /// A slot gets an engine of this weight.
    pub(crate) fn add(&self, engine: usize, weight: f32) {
        let rows = self.rows();
        rows.set_limits(engine, Limits::new(weight, MAX_REQUESTS), u32::MAX);
        self.rewrite(engine, RowState::Active);
        rows.announce_all();
    }

    /// An engine is removed.
    pub(crate) fn remove(&self, engine: usize) {
        self.rewrite(engine, RowState::Removed);
        self.rows().outdate_terms();
    }

    /// Finishes a request, as the first lane of `slot`.
    pub(crate) fn finish(&self, slot: usize, engine: usize, tokens: u32) {
        self.finish_as(self.registry().lane(slot, 0), engine, tokens);
    }

    pub(crate) fn finish_as(&self, lane: LaneId, engine: usize, tokens: u32) {
        let counter = self.counter();
        counter.add(lane, engine, Amount::request(tokens).negated());
    }

    pub(crate) fn rewrite(&self, engine: usize, state: RowState) {
        let rewritten = self.counter().rewrite(engine, |_| Some(state));
        assert!(rewritten.is_ok());
    }

    /// The kernel drops the lock of a process that died.
    pub(crate) fn dies(&self, slot: usize) {
        *self.held[slot].lock().unwrap() = None;
    }

    /// The kernel drops the locks of processes of which only those in these slots still live.
    pub(crate) fn only_these_live(&self, slots: &[usize]) {
        for (slot, held) in self.held.iter().enumerate() {
            *held.lock().unwrap() = slots.contains(&slot).then_some(Holder::Frontend);
        }
    }

    /// Reaps. Returns how many frontends were dead.
    pub(crate) fn reap(&self) -> usize {
        let Ok(returned) = self.registry().reap(self);
        returned.frontends
    }

    /// Opens: reaps, and waits for others that do.
    pub(crate) fn open(&self) {
        let pause = || {
            loom::thread::yield_now();
            true
        };
        let Ok(()) = self.registry().reap_to_the_end(self, pause);
    }

    /// Whether the frontend of a slot lives, if it has one.
    pub(crate) fn is_alive(&self, slot: usize) -> Option<bool> {
        let Ok(alive) = self.registry().is_alive(slot, || self.holder(slot));
        alive
    }

    /// Requests and tokens of an engine.
    pub(crate) fn counted(&self, engine: usize) -> (u32, u32) {
        let (word, tokens) = self.counter().observe(engine);
        (word.value(), tokens)
    }

    /// Requests on all engines.
    pub(crate) fn in_flight(&self) -> u32 {
        (0..self.engines())
            .map(|engine| self.counted(engine).0)
            .sum()
    }

    /// Fails unless the counts are those of the living permits, by engine, each with its tokens.
    pub(crate) fn assert_counts(&self, permits: &[(usize, u32)]) {
        for engine in 0..self.engines() {
            let alive = permits.iter().filter(|permit| permit.0 == engine);
            let expected = alive.fold((0, 0), |sum, permit| (sum.0 + 1, sum.1 + permit.1));
            assert_eq!(self.counted(engine), expected, "engine {engine}");
        }
        let being_placed = self.counted(self.counter().total_row);
        assert_eq!(being_placed, (0, 0), "none is being placed");
    }

    /// The requests that the lanes of a slot hold on an engine.
    pub(crate) fn ledger(&self, slot: usize, engine: usize) -> Ledger {
        self.registry().ledger(slot, engine)
    }
}

/// The kernel's locks, as far as they matter here: taken or not, and given back at death.
impl Locks for Scene {
    type Error = Infallible;

    fn try_lock(&self, slot: usize) -> Result<bool, Infallible> {
        let mut held = self.held[slot].lock().unwrap();
        let is_free = held.is_none();
        held.get_or_insert(Holder::Visitor);
        Ok(is_free)
    }

    fn become_frontend(&self, slot: usize) -> Result<(), Infallible> {
        *self.held[slot].lock().unwrap() = Some(Holder::Frontend);
        Ok(())
    }

    fn holder(&self, slot: usize) -> Result<Option<Holder>, Infallible> {
        Ok(*self.held[slot].lock().unwrap())
    }

    fn unlock(&self, slot: usize) -> Result<(), Infallible> {
        *self.held[slot].lock().unwrap() = None;
        Ok(())
    }
}
