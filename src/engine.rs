//! Engines: their names, weights, caps and states, and how they come and go while frontends run.

use crate::algorithm::word::{MAX_REQUESTS, RowState, Word};
use crate::error::{Error, Result};
use crate::file::{Access, EngineRecord, LockFile, Mapping};
use crate::layout::{ENGINES_LOCK, MAX_NAME, checksum};
use crate::primitive::{Atomic, Ordering, fence};
use crate::table::Table;
use bytemuck::{Pod, Zeroable};
use std::thread;
use std::time::{Duration, Instant};

/// An engine to be put into a table.
///
/// ```
/// use headcount::Engine;
/// let engine = Engine::named("http://10.0.0.7:8000").weight(2.0).max_in_flight(256);
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Engine {
    name: String,
    weight: f32,
    max_in_flight: u32,
    max_tokens: u32,
}

impl Engine {
    /// An engine of weight 1 without caps. The name is 1 to 112 bytes of printable text, and the
    /// only one of its kind in the table; an address, say.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            weight: 1.0,
            max_in_flight: MAX_REQUESTS,
            max_tokens: u32::MAX,
        }
    }

    /// How much it can do, compared with the others: an engine of weight 2 is given twice the
    /// requests of an engine of weight 1. A finite number above 0.
    pub fn weight(mut self, weight: f32) -> Self {
        self.weight = weight;
        self
    }

    /// The most requests in flight, from all frontends together. No engine takes more than
    /// 1,048,575.
    pub fn max_in_flight(mut self, requests: u32) -> Self {
        self.max_in_flight = requests.min(MAX_REQUESTS);
        self
    }

    /// The most tokens in flight, from all frontends together. No engine takes more than 2^32 - 1.
    pub fn max_tokens(mut self, tokens: u32) -> Self {
        self.max_tokens = tokens;
        self
    }

    pub(crate) fn check(&self) -> Result<()> {
        let reason = match self.name.len() {
            0 => Some("is empty"),
            length if length > MAX_NAME => Some("is too long"),
            _ if self.name.chars().any(char::is_control) => Some("has control characters"),
            _ => None,
        };
        if let Some(reason) = reason {
            return Err(Error::EngineName {
                name: self.name.clone(),
                reason,
            });
        }
        check_weight(self.weight)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

/// A number that differs for lists of engines that differ.
pub(crate) fn fingerprint(engines: &[Engine]) -> u64 {
    let mut words = Vec::new();
    for engine in engines {
        words.push(engine.name.len() as u64);
        words.extend(engine.name.bytes().map(u64::from));
        words.push(engine.weight.to_bits().into());
        words.push((u64::from(engine.max_in_flight) << 32) | u64::from(engine.max_tokens));
    }
    checksum(&words)
}

fn check_weight(weight: f32) -> Result<()> {
    // Subnormal weights would make loads infinite.
    if weight.is_normal() && weight > 0.0 {
        return Ok(());
    }
    Err(Error::Weight { found: weight })
}

/// What an engine in a table is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EngineState {
    /// Takes requests.
    Active,
    /// Takes nothing new; what is in flight finishes.
    Draining,
    /// Does not answer; takes nothing.
    Down,
    /// Removed from the table while requests were in flight. Its slot is free once they finish; if
    /// it is added again under its name before that, it starts from what is in flight.
    Leaving,
}

impl EngineState {
    /// What a word says; `None` for a row that no engine has.
    pub(crate) fn of(word: Word) -> Option<Self> {
        match word.state() {
            RowState::Active => Some(Self::Active),
            RowState::Draining => Some(Self::Draining),
            RowState::Down => Some(Self::Down),
            RowState::Removed => (word.value() > 0).then_some(Self::Leaving),
        }
    }
}

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

/// The engines of a mapped table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Engines<'a> {
    mapping: &'a Mapping,
}

impl<'a> Engines<'a> {
    pub(crate) fn of(mapping: &'a Mapping) -> Self {
        Self { mapping }
    }

    /// How many slots a scan has to look at.
    #[inline]
    pub(crate) fn in_use(&self) -> usize {
        // Acquire: pairs with the Release in `write`, so that a slot within it has been written.
        let in_use = self
            .mapping
            .control()
            .engines_in_use
            .load(Ordering::Acquire);
        (in_use as usize).min(self.mapping.layout().geometry.max_engines)
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
        // Release: pairs with the Acquire in `generation`.
        (record.generation).store(generation.wrapping_add(1), Ordering::Release);
        self.configure(slot, engine);
        let in_use = &self.mapping.control().engines_in_use;
        // Release: pairs with the Acquire in `in_use`.
        in_use.fetch_max(slot as u64 + 1, Ordering::Release);
    }

    fn configure(&self, slot: usize, engine: &Engine) {
        // Relaxed, both: made visible by the Release of the mark that follows.
        let caps = &self.mapping.token_caps()[slot];
        caps.store(engine.max_tokens.into(), Ordering::Relaxed);
        let limits = &self.mapping.limits()[slot];
        limits.store(Limits::of(engine), Ordering::Relaxed);
    }

    /// The engine in a slot, as it was added.
    fn read(&self, slot: usize) -> Engine {
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

/// Engines come and go while frontends run. None of these calls disturbs a request in flight, and
/// when one returns, no frontend acts on the former state any more: a request that was about to be
/// counted by it is placed anew.
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
        engines.mark(slot, |_| Some(RowState::Active));
        Ok(slot)
    }

    /// Takes an engine out of the table. What is in flight on it finishes as it would have, and
    /// the slot is used for another engine only after that. Returns how many that is.
    ///
    /// # Errors
    /// [`Error::NoSuchEngine`], [`Error::ReadOnly`], [`Error::Busy`], [`Error::Io`].
    pub fn remove(&self, engine: usize) -> Result<u32> {
        let _changer = self.change_engines()?;
        Ok(self.move_to(engine, RowState::Removed)?.value())
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
        self.writable()?;
        if engine >= self.header().geometry.max_engines {
            return Err(Error::NoSuchEngine { engine });
        }
        self.engines()
            .mark(engine, |word| {
                (word.state() != RowState::Removed).then_some(to)
            })
            .ok_or(Error::NoSuchEngine { engine })
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
