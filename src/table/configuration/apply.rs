//! Bringing a living table to another configuration.

use crate::algorithm::word::RowState;
use crate::error::Difference;
use crate::error::{Error, Result};
use crate::shm::LockFile;
use crate::shm::layout::DEPLOYMENT_LOCK;
use crate::table::Table;
use crate::table::configuration::deployment::Deployment;
use crate::table::options::Options;
use std::collections::HashMap;
use std::fmt;

/// The changes that [`Table::apply`] has made.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Changes {
    /// Each value that was changed: from the one that was [`found`](Difference::found) to the one that was
    /// [`asked`](Difference::asked) for. First the caps of the table, then engines that were changed or
    /// added, in the order of the options, then those that were removed.
    pub differences: Vec<Difference>,
}

impl Changes {
    /// Whether the table was in that configuration already.
    pub fn is_empty(&self) -> bool {
        self.differences.is_empty()
    }

    /// The names of the engines that were added.
    pub fn added(&self) -> impl Iterator<Item = &str> {
        self.engines(Difference::is_missing_engine)
    }

    /// The names of the engines that were removed.
    pub fn removed(&self) -> impl Iterator<Item = &str> {
        self.engines(Difference::is_surplus_engine)
    }

    fn engines(&self, which: impl Fn(&Difference) -> bool) -> impl Iterator<Item = &str> {
        (self.differences.iter())
            .filter(move |difference| which(difference))
            .filter_map(|difference| difference.engine.as_deref())
    }
}

/// One line for each, as [`Difference::change`] says it.
impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (self.differences.iter()).try_for_each(|difference| writeln!(f, "{}", difference.change()))
    }
}

impl Table {
    /// Brings the table to these options while its frontends go on: engines are added, removed, and get
    /// other weights and caps, and the table gets other caps of its own and other bounds of its queue. Returns the changes. To apply
    /// the same options again changes nothing.
    ///
    /// - The engines become those of the options, told apart by their names. One that is in the table
    ///   keeps its state, its number and its count: one that is drained or down stays so. One that is not in
    ///   the options is removed as by [`remove`](Self::remove), and the requests in flight on it finish. If the
    ///   options name no engine, all engines stay; [`engines(0)`](Options::engines) removes them all.
    /// - The caps of the table become those of the options; one that they do not set is no cap. A cap below
    ///   the present count takes nothing away. So for the queue: if they do not set
    ///   [`max_waiting`](Options::max_waiting), the table has none from then on, and those that wait already wait on.
    /// - What a table was created with stays: if the options set other sizes or another mode, nothing is
    ///   changed ([`Error::Differs`]).
    ///
    /// When this returns, no request is admitted by the old configuration. Processes that apply at the same time
    /// do so one after the other. One that is killed half-way leaves a valid table, with a part of the
    /// changes; to apply again does the rest.
    ///
    /// A table that is served by a [`Deployment`] is left to it. A process that is the deployment calls
    /// [`Deployment::apply`].
    ///
    /// ```
    /// # fn main() -> Result<(), headcount::Error> {
    /// use headcount::{Engine, Table};
    /// let table = Table::options().engine(Engine::named("a").max_in_flight(8)).memfd()?;
    /// let options = Table::options()
    ///     .engine(Engine::named("a").max_in_flight(9))
    ///     .engine(Engine::named("b"))
    ///     .max_in_flight(60);
    /// let changes = table.apply(&options)?;
    /// assert_eq!(
    ///     changes.to_string(),
    ///     "max_in_flight none, now 60\nengine a: max_in_flight 8, now 9\nengine b: added\n",
    /// );
    /// assert!(table.apply(&options)?.is_empty());
    /// # Ok(()) }
    /// ```
    ///
    /// Costs some ten system calls, and two read-modify-writes for each engine. For each engine that is added,
    /// the names of all others are read.
    ///
    /// # Errors
    /// Nothing is changed on [`Error::Deployed`], [`Error::Differs`], [`Error::Option`], [`Error::EngineName`],
    /// [`Error::NameTaken`], [`Error::Weight`], [`Error::ReadOnly`], [`Error::Busy`], [`Error::Io`]. On
    /// [`Error::EnginesFull`] all is changed but that some engines were not added: apply again when those that
    /// were removed have finished their requests. [`differences`](Self::differences) returns the rest.
    pub fn apply(&self, options: &Options) -> Result<Changes> {
        let changer = self.change_engines()?;
        if self.is_held(DEPLOYMENT_LOCK) {
            return Err(self.deployed());
        }
        self.bring_to(options, &changer)
    }

    /// What [`apply`](Self::apply) would change now, in the order of [`Changes`]; empty if nothing. It would fail
    /// with [`Error::Differs`] if one of them [cannot be changed](Difference::can_be_changed). A look, without a
    /// lock: each thing is as it is when it is read.
    ///
    /// ```
    /// # fn main() -> Result<(), headcount::Error> {
    /// use headcount::Table;
    /// let table = Table::options().engines(2).memfd()?;
    /// let differences = table.differences(&Table::options().engines(2).max_in_flight(60));
    /// assert_eq!(differences[0].to_string(), "max_in_flight is none, not 60");
    /// # Ok(()) }
    /// ```
    pub fn differences(&self, options: &Options) -> Vec<Difference> {
        options.differences(self, true)
    }

    /// The caller has the lock of those who change engines.
    fn bring_to(&self, options: &Options, _changer: &LockFile) -> Result<Changes> {
        options.check_engines()?;
        options.check_mode()?;
        options.queue.check()?;
        let differences = self.differences(options);
        if !differences.iter().all(Difference::can_be_changed) {
            return Err(Error::Differs {
                path: self.path().to_owned(),
                differences,
            });
        }
        let room = self.header().geometry.max_engines;
        if options.engines.len() > room {
            return Err(Error::Option {
                option: "engines",
                found: options.engines.len() as u64,
                expected: format!("0 to {room}, which is the table's max_engines"),
            });
        }
        let engines = self.engines();
        let configured = &self.mapping().control().configured;
        configured.begin(options);
        let mut slots: HashMap<_, _> = (self.present_engines())
            .map(|(slot, engine)| (engine.name, slot))
            .collect();
        let mut new = Vec::new();
        for engine in &options.engines {
            match slots.remove(engine.name()) {
                Some(slot) if engines.read(slot) == *engine => {}
                Some(slot) => {
                    engines.configure(slot, engine);
                    engines.rewrite(slot, |word| Some(word.state()));
                }
                None => new.push(engine),
            }
        }
        // Those that come before those that go, as far as there are slots, so that there is always one.
        new.retain(|engine| self.put(engine).is_err());
        if options.names_engines() {
            for slot in slots.into_values() {
                engines.rewrite(slot, |_| Some(RowState::Removed));
            }
        }
        let added = new
            .into_iter()
            .try_for_each(|engine| self.put(engine).map(drop));
        // In any case: a process that was killed half-way may have come to a part of the changes only. This announces
        // the limits, too.
        self.queue().set_bounds(options.queue.bounds());
        engines.rows().set_total_caps(options.total_caps());
        self.wake_waiting();
        added?;
        configured.complete(options);
        Ok(Changes { differences })
    }
}

impl Deployment {
    /// Brings the table to these options; see [`Table::apply`].
    ///
    /// # Errors
    /// As [`Table::apply`], but not [`Error::Deployed`]; and [`Error::Forked`].
    pub fn apply(&self, options: &Options) -> Result<Changes> {
        if !self.role.is_ours() {
            return Err(Error::Forked);
        }
        let changer = self.table.change_engines()?;
        self.table.bring_to(options, &changer)
    }
}
