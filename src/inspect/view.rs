//! The whole table at one moment, for people and metrics.

use crate::algorithm::primitive::AtomicU64;
use crate::algorithm::word::{MAX_REQUESTS, MAX_TOKENS};
use crate::inspect::queue::QueueView;
use crate::publication::record::{self, EngineStats, Reading};
use crate::shm::clock;
use crate::shm::is_locked;
use crate::shm::layout::{DEPLOYMENT_LOCK, PUBLISHER_LOCK};
use crate::table::Table;
use crate::table::engine::EngineState;
use crate::table::engine_id::{EngineId, EngineSelector};
use crate::table::refusals::Refusals;
use std::os::fd::AsFd;
use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// All that a table holds: engines, frontends and the snapshot; from [`Table::view`].
///
/// Each count is exact at the moment at which it was read, an engine's requests and tokens at one
/// moment; different engines and frontends are read one after the other, while others go on.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct View {
    /// Every engine, also those that were removed while requests were in flight.
    pub engines: Vec<EngineView>,
    /// Every frontend, also those that died and were not reaped yet.
    pub frontends: Vec<FrontendView>,
    /// The pid of the process that publishes, as it sees itself. `None` if no living process does.
    pub publisher: Option<u32>,
    /// The pid of the table's deployment, as it sees itself: see [`Table::deploy`]. `None` if no living process
    /// is one.
    pub deployment: Option<u32>,
    /// The snapshot: the last complete publication. `None` if there was none.
    pub snapshot: Option<SnapshotView>,
    /// How many calls were refused since the table was created, by reason.
    pub refusals_total: Refusals,
    /// The queue, in which requests wait for a place. `None`: the table has none.
    pub queue: Option<QueueView>,
    /// The cap of the whole table in requests.
    pub max_in_flight: Option<u32>,
    /// The cap of the whole table in tokens.
    pub max_tokens: Option<u32>,
}

impl View {
    /// Returns the engine of a number or of an id, if there is one. Numbers may have gaps where engines were
    /// removed.
    pub fn engine(&self, engine: impl Into<EngineSelector>) -> Option<&EngineView> {
        let selector = engine.into();
        self.engines.iter().find(|view| selector.means(view.id))
    }
}

/// An engine in a [`View`].
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct EngineView {
    /// Which engine it is.
    pub id: EngineId,
    /// Its name.
    pub name: String,
    /// Whether it takes requests.
    pub state: EngineState,
    /// Its capacity, compared with the others.
    pub weight: f32,
    /// Requests in flight.
    pub in_flight: u32,
    /// Their tokens.
    pub tokens: u32,
    /// Requests that it was ever given, since it was added. Only grows.
    pub admitted_total: u64,
    /// How many of these have finished, or were returned by a reap. Only grows.
    pub finished_total: u64,
    /// The most requests that it takes. `None`: no cap.
    pub max_in_flight: Option<u32>,
    /// The most tokens that it takes. `None`: no cap.
    pub max_tokens: Option<u32>,
    /// Its last published statistics, however old they are.
    pub stats: Option<EngineStats>,
}

/// A frontend in a [`View`].
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct FrontendView {
    /// Which of the table's places for frontends it has.
    pub slot: usize,
    /// Its process, as that sees itself; pid namespaces may differ.
    pub pid: u32,
    /// Whether the process lives. One that does not is reaped soon, or is just being reaped.
    pub alive: bool,
    /// When it joined.
    pub joined_at: SystemTime,
    /// Requests that it has in flight.
    pub in_flight: u64,
    /// Their tokens.
    pub tokens: u64,
    /// Requests of its that wait for a place.
    pub waiting: u64,
}

/// The snapshot in a [`View`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SnapshotView {
    /// How long ago it was published.
    pub age: Duration,
    /// The publisher's own two words.
    pub words: [u64; 2],
}

impl Table {
    /// Returns all that the table holds, for people and metrics. Reads only and delays no frontend. Costs one
    /// system call for each frontend, and allocates.
    ///
    /// ```
    /// # fn main() -> Result<(), headcount::Error> {
    /// use headcount::Table;
    /// let table = Table::options().engines(2).memfd()?;
    /// let frontend = table.join()?;
    /// let permit = frontend.route()?;
    /// let view = table.view();
    /// let engine = view.engine(permit.engine()).expect("it is in the table");
    /// assert_eq!((engine.in_flight, engine.admitted_total), (1, 1));
    /// # Ok(()) }
    /// ```
    pub fn view(&self) -> View {
        let mapping = self.mapping();
        let latch = mapping.latch();
        let in_use = self.engines().in_use();
        let look = |reading: Reading<'_>| {
            let stats: Vec<_> = (0..in_use)
                .map(|engine| {
                    // The id first: if the slot still has that engine later on, it had it all the time.
                    let id = self.engines().id(engine);
                    reading.stats(engine, &self.engines()).map(|s| (id, s))
                })
                .collect();
            let snapshot = reading.age(clock::now()).map(|age| SnapshotView {
                age: Duration::from_nanos(age),
                words: reading.words(),
            });
            (stats, snapshot)
        };
        // Overtaken is overtaken by many publications in a row; the next look is as good.
        let (stats, snapshot) = (0..100)
            .find_map(|_| record::read(latch, look).ok())
            .unwrap_or_default();
        let engines = (0..in_use)
            .filter_map(|engine| {
                let mut view = self.engine_view(engine)?;
                let published = stats.get(engine).copied().flatten();
                let of_it = published.filter(|(id, _)| *id == view.id);
                view.stats = of_it.map(|(_, stats)| stats);
                Some(view)
            })
            .collect();
        let slots = 0..self.header().geometry.max_frontends;
        // Relaxed: for people only.
        let pid = |holder: &AtomicU64| holder.load(Ordering::Relaxed) as u32;
        let control = mapping.control();
        let caps = mapping.rows().total_caps();
        View {
            engines,
            frontends: slots.filter_map(|slot| self.frontend_view(slot)).collect(),
            publisher: (self.is_held(PUBLISHER_LOCK)).then(|| pid(&control.publisher_pid)),
            deployment: (self.is_held(DEPLOYMENT_LOCK)).then(|| pid(&control.deployment_pid)),
            snapshot,
            refusals_total: self.refusals(),
            queue: self.queue_view(),
            max_in_flight: caps.requests,
            max_tokens: caps.tokens,
        }
    }

    /// An engine without its statistics; all that is said is of one engine.
    fn engine_view(&self, index: usize) -> Option<EngineView> {
        // A slot is given to another engine by system calls, and a look makes none: the second look
        // finds nearly always what the first one missed.
        const LOOKS: usize = 100;
        for _ in 0..LOOKS {
            let id = self.engines().id(index);
            let view = self.engine_under(id);
            // Acquire fence: pairs with the Release fence in `Name::write`; if we have read
            // anything of a later engine, then we see that the generation has moved.
            fence(Ordering::Acquire);
            if self.engines().id(index) == id {
                return view;
            }
        }
        None
    }

    /// The contents of a slot, if it has the engine of that id before and after they are read.
    fn engine_under(&self, id: EngineId) -> Option<EngineView> {
        let index = id.index();
        let engines = self.engines();
        let (word, tokens) = self.mapping().counter().observe(index);
        let state = EngineState::of(word)?;
        let limits = engines.limits(index);
        let totals = self.mapping().registry().ledger_of_all(index);
        let before = engines.admitted_before(index);
        Some(EngineView {
            id,
            name: engines.name(index),
            state,
            weight: limits.weight(),
            in_flight: word.value(),
            tokens,
            admitted_total: totals.admitted.saturating_sub(before),
            finished_total: totals.finished.saturating_sub(before),
            max_in_flight: Some(limits.max_in_flight()).filter(|cap| *cap < MAX_REQUESTS),
            max_tokens: Some(engines.max_tokens(index)).filter(|cap| *cap < MAX_TOKENS),
            stats: None,
        })
    }

    fn frontend_view(&self, slot: usize) -> Option<FrontendView> {
        let registry = self.mapping().registry();
        let record = &registry.slots[slot];
        if !record.word().is_taken() {
            return None;
        }
        let (mut in_flight, mut tokens) = (0_u64, 0_u64);
        for engine in 0..self.engines().in_use() {
            let ledger = registry.ledger(slot, engine);
            // Its lanes are read one after the other, so a sum may be off for a moment. Saturating:
            // in a damaged file it may be off by any number.
            in_flight = in_flight.saturating_add(ledger.requests().max(0) as u64);
            tokens = tokens.saturating_add(ledger.tokens.max(0) as u64);
        }
        let queue_row = self.mapping().counter().queue_row;
        let waiting = registry.ledger(slot, queue_row).requests().max(0) as u64;
        // Relaxed, both: for people only.
        let joined_at = Duration::from_nanos(record.since.load(Ordering::Relaxed));
        Some(FrontendView {
            slot,
            pid: record.pid.load(Ordering::Relaxed) as u32,
            alive: self.is_alive(slot)?,
            joined_at: UNIX_EPOCH.checked_add(joined_at).unwrap_or(UNIX_EPOCH),
            in_flight,
            tokens,
            waiting,
        })
    }

    /// Whether a lock is held. A lock that cannot be asked for says nothing of a death.
    pub(crate) fn is_held(&self, byte: u64) -> bool {
        is_locked(self.as_fd(), byte).unwrap_or(true)
    }
}
