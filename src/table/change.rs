//! Engines that come and go while frontends run.

use crate::algorithm::primitive::Ordering;
use crate::algorithm::rows::Gone;
use crate::algorithm::total::Total;
use crate::algorithm::word::{MAX_REQUESTS, RowState, Word};
use crate::error::{Error, Result};
use crate::shm::layout::ENGINES_LOCK;
use crate::shm::{Access, LockFile};
use crate::table::Table;
use crate::table::engine::{Engine, check_weight};
use crate::table::engine_id::{EngineId, EngineSelector};
use std::thread;
use std::time::{Duration, Instant};

/// Engines come and go while frontends run. None of these calls disturbs a request in flight. When one
/// returns, no frontend acts on the former state any more: a request that was about to be counted by
/// it, on this engine or on another one, is placed anew.
///
/// Calls that make an engine more attractive (`add`, `up`, `set_weight`, `set_caps` and the like) cost one
/// read-modify-write for each engine of the table; the others cost one.
///
/// Each takes an engine by its number, which means the engine that has that slot at the moment of the
/// change, or by its [`EngineId`], which means that very engine: if it is gone, whatever has its slot now
/// is left alone, and the answer is [`Error::NoSuchEngine`]. To look whether it is that engine and to
/// change it is one atomic step. A caller that finds an engine by its name and then changes it should go by
/// the id.
impl Table {
    /// Adds an engine and returns its id.
    ///
    /// One that was removed under this name and still has requests in flight gets its slot, its id and its
    /// count back. Otherwise the engine gets the first slot on which nothing is counted, so no old
    /// permit can ever touch it.
    ///
    /// Costs a few system calls and takes effect for all frontends at once. Changes of the engine
    /// list wait for each other for up to five seconds.
    ///
    /// ```
    /// # fn main() -> Result<(), headcount::Error> {
    /// use headcount::{Engine, Table};
    /// let table = Table::options().engines(0).max_engines(8).memfd()?;
    /// let engine = table.add(Engine::named("http://10.0.0.7:8000").max_in_flight(256))?;
    /// table.drain(engine)?; // takes nothing new
    /// assert_eq!(table.remove(engine)?, 0, "requests that were in flight on it");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::EngineName`], [`Error::Weight`], [`Error::NameTaken`], [`Error::EnginesFull`],
    /// [`Error::ReadOnly`], [`Error::Busy`], [`Error::Io`].
    pub fn add(&self, engine: impl Into<Engine>) -> Result<EngineId> {
        let engine = engine.into();
        engine.check()?;
        let _changer = self.change_engines()?;
        let slot = self.put(&engine)?;
        self.engines().rows().announce_all();
        self.wake_waiting();
        // No other process gives slots new engines meanwhile: this is the only changer.
        Ok(self.engines().id(slot))
    }

    /// Puts an engine into a slot and has it take requests. The caller is the only one to change engines, and
    /// [announces](crate::algorithm::rows::Rows::announce_all) that next.
    pub(crate) fn put(&self, engine: &Engine) -> Result<usize> {
        let engines = self.engines();
        let max_engines = self.header().geometry.max_engines;
        let mut vacant = None;
        for slot in 0..max_engines {
            let word = engines.word(slot);
            let same_name = slot < engines.in_use() && engines.name(slot) == engine.name;
            match (word.state(), same_name) {
                (RowState::Removed, true) => {
                    vacant = Some((slot, word.value() == 0));
                    break;
                }
                (RowState::Removed, false) if word.value() == 0 => {
                    vacant = vacant.or(Some((slot, true)));
                }
                (RowState::Removed, false) | (_, false) => {}
                (_, true) => {
                    return Err(Error::NameTaken {
                        name: engine.name.clone(),
                        engine: slot,
                    });
                }
            }
        }
        let (slot, empty) = vacant.ok_or(Error::EnginesFull { max_engines })?;
        if empty {
            // Nothing can be counted on it from here on: the slot is not active.
            engines.write(slot, engine);
        } else {
            engines.configure(slot, engine);
        }
        engines.rewrite(slot, |_| Some(RowState::Active));
        Ok(slot)
    }

    /// Takes an engine out of the table. The requests in flight on it finish as they would have, and
    /// its slot is used for another engine only after that. Returns how many these are.
    ///
    /// # Errors
    /// [`Error::NoSuchEngine`], [`Error::ReadOnly`], [`Error::Busy`], [`Error::Io`].
    pub fn remove(&self, engine: impl Into<EngineSelector>) -> Result<u32> {
        let _changer = self.change_engines()?;
        let before = self.move_to(engine.into(), RowState::Removed)?;
        // Its weight and its caps have no say any more.
        self.engines().rows().outdate_terms();
        self.wake_waiting();
        Ok(before.value())
    }

    /// Has the engine take no new requests; those in flight finish.
    ///
    /// # Errors
    /// [`Error::NoSuchEngine`], [`Error::ReadOnly`].
    pub fn drain(&self, engine: impl Into<EngineSelector>) -> Result<()> {
        self.move_to(engine.into(), RowState::Draining).map(drop)
    }

    /// Has the engine take no requests, because it does not answer. Those in flight stay counted until their
    /// frontends give up on them.
    ///
    /// # Errors
    /// [`Error::NoSuchEngine`], [`Error::ReadOnly`].
    pub fn down(&self, engine: impl Into<EngineSelector>) -> Result<()> {
        self.move_to(engine.into(), RowState::Down).map(drop)
    }

    /// Has the engine take requests again, starting from those in flight on it.
    ///
    /// # Errors
    /// [`Error::NoSuchEngine`], [`Error::ReadOnly`].
    pub fn up(&self, engine: impl Into<EngineSelector>) -> Result<()> {
        self.move_to(engine.into(), RowState::Active).map(drop)
    }

    /// The same as [`down`](Self::down), if the engine is active: a probe that gets no answer must not undo an
    /// operator's drain. Returns whether the engine was active. One atomic step.
    ///
    /// ```
    /// # fn main() -> Result<(), headcount::Error> {
    /// # use headcount::Table;
    /// # let table = Table::options().engines(2).memfd()?;
    /// # let answers = |_: headcount::EngineId| false;
    /// // A probe, at each interval:
    /// for engine in table.view().engines {
    ///     let changed = match answers(engine.id) {
    ///         true => table.up_if_down(engine.id)?,
    ///         false => table.down_if_active(engine.id)?,
    ///     };
    ///     if changed {
    ///         println!("{} is {}", engine.name, table.view().engine(engine.id).unwrap().state);
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::NoSuchEngine`], [`Error::ReadOnly`].
    pub fn down_if_active(&self, engine: impl Into<EngineSelector>) -> Result<bool> {
        self.move_if(engine.into(), RowState::Active, RowState::Down)
    }

    /// The same as [`up`](Self::up), if the engine is down: a probe that gets an answer must not undo an
    /// operator's drain. Returns whether the engine was down. One atomic step. If it was not, another process may
    /// just be bringing the engine up, and its call may not have returned yet.
    ///
    /// # Errors
    /// [`Error::NoSuchEngine`], [`Error::ReadOnly`].
    pub fn up_if_down(&self, engine: impl Into<EngineSelector>) -> Result<bool> {
        self.move_if(engine.into(), RowState::Down, RowState::Active)
    }

    /// Changes an engine's weight.
    ///
    /// # Errors
    /// [`Error::Weight`], [`Error::NoSuchEngine`], [`Error::ReadOnly`], [`Error::Busy`],
    /// [`Error::Io`].
    pub fn set_weight(&self, engine: impl Into<EngineSelector>, weight: f32) -> Result<()> {
        check_weight(weight)?;
        self.set_limits(engine.into(), |limits| limits.weight = weight)
    }

    /// Changes the most requests that an engine takes, and leaves its cap on tokens as it is; `None` for no
    /// cap. One step: of two processes that change one cap each, both have their way.
    ///
    /// A cap below the present count takes nothing away: the engine takes no more until its count is below
    /// the new cap.
    ///
    /// # Errors
    /// [`Error::NoSuchEngine`], [`Error::ReadOnly`], [`Error::Busy`], [`Error::Io`].
    pub fn set_max_in_flight(
        &self,
        engine: impl Into<EngineSelector>,
        requests: Option<u32>,
    ) -> Result<()> {
        self.set_limits(engine.into(), |limits| {
            limits.max_in_flight = cap_in_requests(requests)
        })
    }

    /// Changes the most tokens that an engine takes, and leaves its cap on requests as it is; `None` for no
    /// cap. See [`set_max_in_flight`](Self::set_max_in_flight).
    ///
    /// # Errors
    /// As [`set_max_in_flight`](Self::set_max_in_flight).
    pub fn set_max_tokens(
        &self,
        engine: impl Into<EngineSelector>,
        tokens: Option<u32>,
    ) -> Result<()> {
        self.set_limits(engine.into(), |limits| {
            limits.max_tokens = cap_in_tokens(tokens)
        })
    }

    /// Changes both caps of an engine; `None` for no cap. To change one of them:
    /// [`set_max_in_flight`](Self::set_max_in_flight), [`set_max_tokens`](Self::set_max_tokens).
    ///
    /// A cap below the present count takes nothing away: the engine takes no more until its count is below
    /// the new cap.
    ///
    /// ```
    /// # fn main() -> Result<(), headcount::Error> {
    /// # let table = headcount::Table::options().engines(2).memfd()?;
    /// let engine = table.find("1").expect("it is in the table");
    /// table.set_caps(engine, Some(256), None)?; // 256 requests, and no cap on tokens
    /// assert_eq!(table.view().engine(engine).unwrap().max_in_flight, Some(256));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::NoSuchEngine`], [`Error::ReadOnly`], [`Error::Busy`], [`Error::Io`].
    pub fn set_caps(
        &self,
        engine: impl Into<EngineSelector>,
        max_in_flight: Option<u32>,
        max_tokens: Option<u32>,
    ) -> Result<()> {
        self.set_limits(engine.into(), |limits| {
            limits.max_in_flight = cap_in_requests(max_in_flight);
            limits.max_tokens = cap_in_tokens(max_tokens);
        })
    }

    /// Changes the most requests that all engines together take, and leaves the table's cap on tokens as it is;
    /// `None` for no cap.
    ///
    /// A cap below the present count takes nothing away. [`apply`](Self::apply) puts the configured cap back.
    /// Costs two read-modify-writes for each engine.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::Busy`], [`Error::Io`].
    pub fn set_total_max_in_flight(&self, requests: Option<u32>) -> Result<()> {
        self.set_total(|total| total.requests = requests)
    }

    /// Changes the most tokens that all engines together take, and leaves the table's cap on requests as it is;
    /// `None` for no cap. See [`set_total_max_in_flight`](Self::set_total_max_in_flight).
    ///
    /// # Errors
    /// As [`set_total_max_in_flight`](Self::set_total_max_in_flight).
    pub fn set_total_max_tokens(&self, tokens: Option<u32>) -> Result<()> {
        self.set_total(|total| total.tokens = tokens)
    }

    fn set_total(&self, change: impl FnOnce(&mut Total)) -> Result<()> {
        // No other process changes the other cap between the look and the change.
        let _changer = self.change_engines()?;
        let engines = self.engines();
        let rows = engines.rows();
        let mut total = rows.total_caps();
        change(&mut total);
        rows.set_total_caps(total);
        self.wake_waiting();
        Ok(())
    }

    fn set_limits(&self, which: EngineSelector, change: impl FnOnce(&mut Engine)) -> Result<()> {
        // No other process removes an engine or gives its slot to another while this one has the lock.
        let _changer = self.change_engines()?;
        let engines = self.engines();
        let engine = self.slot_of(which)?;
        if engines.word(engine).state() == RowState::Removed || !engines.has(which) {
            return Err(which.missing());
        }
        let mut limits = engines.read(engine);
        change(&mut limits);
        engines.configure(engine, &limits);
        engines.rows().announce_all();
        self.wake_waiting();
        Ok(())
    }

    /// Returns the engine that has this number now, if one has. Costs three loads.
    ///
    /// ```
    /// # fn main() -> Result<(), headcount::Error> {
    /// let table = headcount::Table::options().engines(2).memfd()?;
    /// assert_eq!(table.engine_at(1), table.find("1"));
    /// assert_eq!(table.engine_at(2), None);
    /// # Ok(()) }
    /// ```
    pub fn engine_at(&self, index: usize) -> Option<EngineId> {
        let engines = self.engines();
        if index >= engines.in_use() {
            return None;
        }
        // The id after the word: if a change comes in between, the id is that of the next engine, whose call of
        // `add` had begun. Its generation is odd while that writes the name, and then no engine is there.
        let is_there = engines.word(index).state() != RowState::Removed;
        (is_there.then(|| engines.id(index))).filter(|id| id.generation().is_multiple_of(2))
    }

    /// Returns the id of the engine of that name, if the table has one. A scan of the names.
    pub fn find(&self, name: &str) -> Option<EngineId> {
        let engines = self.engines();
        (0..engines.in_use())
            .filter(|&slot| engines.word(slot).state() != RowState::Removed)
            .find_map(|slot| engines.identity(slot).filter(|(_, found)| found == name))
            .map(|(id, _)| id)
    }

    fn move_to(&self, engine: EngineSelector, to: RowState) -> Result<Word> {
        // From any state, so there is a word if there is an engine.
        self.move_from(engine, |_| true, to)?
            .ok_or_else(|| engine.missing())
    }

    fn move_if(&self, engine: EngineSelector, from: RowState, to: RowState) -> Result<bool> {
        let moved = self.move_from(engine, |state| state == from, to)?;
        Ok(moved.is_some())
    }

    /// Moves an engine to another state, if it may be moved from the one that it is in, in one step:
    /// the word that is replaced is the one by which this was decided. Returns that word.
    fn move_from(
        &self,
        engine: EngineSelector,
        may: impl Fn(RowState) -> bool,
        to: RowState,
    ) -> Result<Option<Word>> {
        self.writable()?;
        let slot = self.slot_of(engine)?;
        let (engines, rows) = (self.engines(), self.engines().rows());
        let is_it = || engines.has(engine);
        let moved = rows
            .rewrite_engine(slot, is_it, |state| may(state).then_some(to))
            .map_err(|Gone| engine.missing())?;
        // Also if it was up before: the process that has brought it up may not have come to this yet.
        if to == RowState::Active && moved.is_some() {
            rows.announce(slot);
        }
        if moved.is_some() {
            // Also those whose engines are all down or gone now: they wait in vain.
            self.wake_waiting();
        }
        Ok(moved)
    }

    /// The slot that an engine has or had, if this table has such a slot.
    fn slot_of(&self, engine: EngineSelector) -> Result<usize> {
        let slot = engine.index();
        let has_slot = slot < self.header().geometry.max_engines;
        has_slot.then_some(slot).ok_or_else(|| engine.missing())
    }

    /// Waits until this process is the only one that changes engines.
    pub(crate) fn change_engines(&self) -> Result<LockFile> {
        const PATIENCE: Duration = Duration::from_secs(5);
        self.writable()?;
        let lock = self.lock_file()?;
        let start = Instant::now();
        let changer = &self.mapping().control().changer_pid;
        // The kernel frees the lock when its holder dies; only one that is stopped keeps us waiting.
        while !lock
            .try_lock_byte(ENGINES_LOCK)
            .map_err(|e| self.failed("locking the engine list of", e))?
        {
            if start.elapsed() > PATIENCE {
                // Relaxed: for a message.
                let pid = changer.load(Ordering::Relaxed) as u32;
                return Err(Error::Busy { pid });
            }
            thread::sleep(Duration::from_millis(1));
        }
        // Relaxed: for a message.
        changer.store(std::process::id().into(), Ordering::Relaxed);
        Ok(lock)
    }

    pub(crate) fn writable(&self) -> Result<()> {
        match self.access() {
            Access::ReadWrite => Ok(()),
            Access::ReadOnly => Err(Error::ReadOnly),
        }
    }
}

/// A cap as an engine has it.
fn cap_in_requests(cap: Option<u32>) -> u32 {
    cap.unwrap_or(MAX_REQUESTS).min(MAX_REQUESTS)
}

fn cap_in_tokens(cap: Option<u32>) -> u32 {
    cap.unwrap_or(u32::MAX)
}
