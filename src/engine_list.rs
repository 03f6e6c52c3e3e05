//! Engines that come and go while frontends run.

use crate::algorithm::word::{MAX_REQUESTS, RowState, Word};
use crate::engine::{Engine, check_weight};
use crate::error::{Error, Result};
use crate::file::{Access, LockFile};
use crate::layout::ENGINES_LOCK;
use crate::primitive::Ordering;
use crate::table::Table;
use std::thread;
use std::time::{Duration, Instant};

/// Engines come and go while frontends run. None of these calls disturbs a request in flight. When one
/// returns, no frontend acts on the former state any more: a request that was about to be counted by
/// it, on this engine or on another one, is placed anew.
///
/// Calls that make an engine more attractive (`add`, `up`, `set_weight`, `set_caps`) cost one
/// read-modify-write for each engine of the table; the others cost one.
impl Table {
    /// Adds an engine and returns its number.
    ///
    /// One that was removed under this name and still has requests in flight gets its slot and its
    /// count back. Otherwise the engine gets the first slot on which nothing is counted, so no old
    /// permit can ever touch it.
    ///
    /// Costs a few system calls and takes effect for all frontends at once. Changes of the engine
    /// list wait for each other for up to five seconds.
    ///
    /// # Errors
    /// [`Error::EngineName`], [`Error::Weight`], [`Error::NameTaken`], [`Error::EnginesFull`],
    /// [`Error::ReadOnly`], [`Error::Busy`], [`Error::Io`].
    pub fn add(&self, engine: &Engine) -> Result<usize> {
        engine.check()?;
        let _changer = self.change_engines()?;
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
        engines.activate(slot);
        Ok(slot)
    }

    /// Takes an engine out of the table. What is in flight on it finishes as it would have, and
    /// the slot is used for another engine only after that. Returns how many that is.
    ///
    /// # Errors
    /// [`Error::NoSuchEngine`], [`Error::ReadOnly`], [`Error::Busy`], [`Error::Io`].
    pub fn remove(&self, engine: usize) -> Result<u32> {
        let _changer = self.change_engines()?;
        let before = self.move_to(engine, RowState::Removed)?;
        self.engines().renew_flags();
        Ok(before.value())
    }

    /// The engine takes nothing new; what is in flight finishes.
    ///
    /// # Errors
    /// [`Error::NoSuchEngine`], [`Error::ReadOnly`].
    pub fn drain(&self, engine: usize) -> Result<()> {
        self.move_to(engine, RowState::Draining).map(drop)
    }

    /// The engine does not answer: it takes nothing. What is in flight stays counted until its
    /// frontends give up on it.
    ///
    /// # Errors
    /// [`Error::NoSuchEngine`], [`Error::ReadOnly`].
    pub fn down(&self, engine: usize) -> Result<()> {
        self.move_to(engine, RowState::Down).map(drop)
    }

    /// The engine takes requests again, starting from what is in flight on it.
    ///
    /// # Errors
    /// [`Error::NoSuchEngine`], [`Error::ReadOnly`].
    pub fn up(&self, engine: usize) -> Result<()> {
        self.move_to(engine, RowState::Active).map(drop)
    }

    /// The same as [`down`](Self::down), unless somebody has said otherwise than that the engine is
    /// active: whoever finds that it does not answer must not undo that an operator drains it. Says
    /// whether the engine was active. One atomic step.
    ///
    /// # Errors
    /// [`Error::NoSuchEngine`], [`Error::ReadOnly`].
    pub fn down_if_active(&self, engine: usize) -> Result<bool> {
        self.move_if(engine, RowState::Active, RowState::Down)
    }

    /// The same as [`up`](Self::up), if the engine is down: whoever finds that it answers again must
    /// not undo that an operator drains it. Says whether the engine was down. One atomic step.
    ///
    /// # Errors
    /// [`Error::NoSuchEngine`], [`Error::ReadOnly`].
    pub fn up_if_down(&self, engine: usize) -> Result<bool> {
        self.move_if(engine, RowState::Down, RowState::Active)
    }

    /// Changes an engine's weight.
    ///
    /// # Errors
    /// [`Error::Weight`], [`Error::NoSuchEngine`], [`Error::ReadOnly`], [`Error::Busy`],
    /// [`Error::Io`].
    pub fn set_weight(&self, engine: usize, weight: f32) -> Result<()> {
        check_weight(weight)?;
        self.set_limits(engine, |limits| limits.weight = weight)
    }

    /// Changes an engine's caps; `None` for no cap.
    ///
    /// A cap below what is in flight takes nothing away: the engine takes no more until it is under
    /// the new cap.
    ///
    /// # Errors
    /// [`Error::NoSuchEngine`], [`Error::ReadOnly`], [`Error::Busy`], [`Error::Io`].
    pub fn set_caps(
        &self,
        engine: usize,
        max_in_flight: Option<u32>,
        max_tokens: Option<u32>,
    ) -> Result<()> {
        self.set_limits(engine, |limits| {
            limits.max_in_flight = max_in_flight.unwrap_or(MAX_REQUESTS).min(MAX_REQUESTS);
            limits.max_tokens = max_tokens.unwrap_or(u32::MAX);
        })
    }

    fn set_limits(&self, engine: usize, change: impl FnOnce(&mut Engine)) -> Result<()> {
        let _changer = self.change_engines()?;
        self.engine_exists(engine)?;
        let engines = self.engines();
        let mut limits = engines.read(engine);
        change(&mut limits);
        engines.configure(engine, &limits);
        // Whoever has read the old limits must not act on them after this.
        engines.mark(engine, |word| Some(word.state()));
        engines.have_changed(engine);
        Ok(())
    }

    /// The number of the engine of that name, if the table has one. A scan of the names.
    pub fn find(&self, name: &str) -> Option<usize> {
        let engines = self.engines();
        (0..engines.in_use()).find(|&slot| {
            engines.word(slot).state() != RowState::Removed && engines.name(slot) == name
        })
    }

    fn move_to(&self, engine: usize, to: RowState) -> Result<Word> {
        self.move_from(engine, |state| state != RowState::Removed, to)?
            .ok_or(Error::NoSuchEngine { engine })
    }

    fn move_if(&self, engine: usize, from: RowState, to: RowState) -> Result<bool> {
        match self.move_from(engine, |state| state == from, to)? {
            Some(_) => Ok(true),
            None => self.engine_exists(engine).map(|()| false),
        }
    }

    /// Moves an engine to another state in one step, if it may be moved from the one that it is in.
    /// Returns its word as it was.
    fn move_from(
        &self,
        engine: usize,
        may: impl Fn(RowState) -> bool,
        to: RowState,
    ) -> Result<Option<Word>> {
        self.writable()?;
        if engine >= self.header().geometry.max_engines {
            return Err(Error::NoSuchEngine { engine });
        }
        let moved = (self.engines()).mark(engine, |word| may(word.state()).then_some(to));
        if to == RowState::Active && moved.is_some_and(|before| !before.is_active()) {
            self.engines().rows().announce(engine);
        }
        Ok(moved)
    }

    fn engine_exists(&self, engine: usize) -> Result<()> {
        let engines = self.engines();
        if engine < engines.in_use() && engines.word(engine).state() != RowState::Removed {
            return Ok(());
        }
        Err(Error::NoSuchEngine { engine })
    }

    /// Waits until this process is the only one that changes engines.
    fn change_engines(&self) -> Result<LockFile> {
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
