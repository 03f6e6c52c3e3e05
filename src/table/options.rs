//! How a table is to be created or opened.

use crate::algorithm::total::Total;
use crate::algorithm::word::{MAX_LANES, RowState};
use crate::error::{Error, Result};
use crate::shm::layout::{Geometry, Header, MAX_ENGINES, SHARED_LANES};
use crate::shm::{Access, Mapping, TableFile};
use crate::table::Table;
use crate::table::bounds::QueueOptions;
use crate::table::engine::Engine;
use crate::table::engines::Engines;
use std::collections::HashMap;
use std::fmt;
use std::os::fd::AsFd;
use std::path::Path;

/// How a table is to be created or opened; from [`Table::options`].
///
/// ```
/// # fn main() -> Result<(), headcount::Error> {
/// use headcount::{Engine, Table};
/// let table = Table::options()
///     .engine(Engine::named("http://10.0.0.7:8000").weight(2.0))
///     .engine(Engine::named("http://10.0.0.8:8000").max_in_flight(256))
///     .max_in_flight(400)
///     .memfd()?;
/// # Ok(()) }
/// ```
#[must_use = "options do nothing until a table is created, opened or changed by them"]
#[derive(Clone, PartialEq, Default)]
pub struct Options {
    pub(crate) engines: Vec<Engine>,
    /// How many engines were asked for; `None` if it was not said.
    named_engines: Option<usize>,
    pub(crate) max_engines: Option<usize>,
    pub(crate) max_frontends: Option<usize>,
    pub(crate) threads: Option<usize>,
    pub(crate) max_in_flight: Option<u32>,
    pub(crate) max_tokens: Option<u32>,
    pub(crate) mode: Option<u32>,
    pub(crate) queue: QueueOptions,
    any_owner: bool,
}

/// Shows the options that were set.
impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut said = f.debug_struct("Options");
        if self.names_engines() {
            said.field("engines", &self.engines);
        }
        let sizes = [
            ("max_engines", self.max_engines),
            ("max_frontends", self.max_frontends),
            ("threads", self.threads),
        ];
        let caps = [
            ("max_in_flight", self.max_in_flight),
            ("max_tokens", self.max_tokens),
        ];
        for (name, size) in sizes {
            size.map(|size| said.field(name, &size));
        }
        for (name, cap) in caps {
            cap.map(|cap| said.field(name, &cap));
        }
        self.queue.said(&mut said);
        self.mode
            .map(|mode| said.field("mode", &format_args!("{mode:#o}")));
        if self.any_owner {
            said.field("any_owner", &true);
        }
        said.finish()
    }
}

const DEFAULT_MAX_ENGINES: usize = 64;
const DEFAULT_MAX_FRONTENDS: usize = 64;
const DEFAULT_THREADS: usize = 3;
const DEFAULT_MODE: u32 = 0o600;

impl Options {
    /// Adds `count` engines of weight 1 without caps, named by their numbers: "0", "1" and so on. 0 says that
    /// there are none, which is not the same as to say nothing: see [`create`](Self::create) and
    /// [`Table::apply`].
    pub fn engines(mut self, count: usize) -> Self {
        self.named_engines = Some(self.named_engines.unwrap_or(0).saturating_add(count));
        let first = self.engines.len();
        // More than a table can have is refused later; here it must not fill the memory.
        let end = first + count.min(MAX_ENGINES + 1);
        (self.engines).extend((first..end).map(|number| Engine::named(number.to_string())));
        self
    }

    /// Adds an engine. Engines are numbered in the order in which they are added, from 0.
    pub fn engine(mut self, engine: impl Into<Engine>) -> Self {
        self.named_engines = Some(self.named_engines.unwrap_or(0).saturating_add(1));
        self.engines.push(engine.into());
        self
    }

    /// How many engines the table has room for, 1 to 4,096. Default: 64, or as many as were added
    /// if that is more. Each takes about 350 bytes, and 24 for each lane of each frontend.
    pub fn max_engines(mut self, count: usize) -> Self {
        self.max_engines = Some(count);
        self
    }

    /// How many processes can join, 1 to 4,095. Default: 64. Each pair of lanes takes 8 bytes: 1,000 frontends of 4
    /// lanes take 64 MB for that.
    pub fn max_frontends(mut self, count: usize) -> Self {
        self.max_frontends = Some(count);
        self
    }

    /// How many threads can use one frontend without any of them ever waiting for another to end its
    /// operation. Default: 3, or as many as fit beside `max_frontends`, if those are more than 1,023:
    /// `max_frontends * (threads + 1)` is at most 4,095.
    ///
    /// Each of so many threads has a lane of its own, which is faster, too; all other threads share one lane. A
    /// thread takes a lane when it first uses the frontend, if one has no owner, and keeps it until the thread
    /// ends, idle or not. What other frontends, other tables or the parent of a fork have given to threads has no
    /// influence. Of more than 4,096 living threads that have used the library, the later ones share. Each frontend
    /// takes 8 bytes of its process's memory for each thread and each engine that there is room for.
    pub fn threads(mut self, count: usize) -> Self {
        self.threads = Some(count);
        self
    }

    /// The most requests in flight on all engines together (the command's `--max-in-flight-total`). Default: no such
    /// cap. A table of cap 0 takes nothing. [`Engine::max_in_flight`] is the cap of one engine.
    ///
    /// It costs two more operations a request when that is placed, on one word at which all frontends meet,
    /// and a look at each engine; none when it finishes. It is never exceeded. A request that finds room but
    /// for those that are just being placed waits for these for some microseconds, and is told
    /// [`RouteError::Saturated`](crate::RouteError::Saturated) if one of them has not been placed by then. So a
    /// process that is stopped in the middle of a `route`, or waits for a processor there, keeps one place more
    /// from others than it has requests, and its request's tokens once more. (Measured with more processes than
    /// cores, all at the cap: one or two requests of 10,000 were refused so.) [`Table::apply`] changes the cap.
    pub fn max_in_flight(mut self, requests: u32) -> Self {
        self.max_in_flight = Some(requests);
        self
    }

    /// The most tokens in flight on all engines together (`--max-tokens-total`). Default: no such cap. Costs what
    /// [`max_in_flight`](Self::max_in_flight) costs; both together cost no more than one.
    pub fn max_tokens(mut self, tokens: u32) -> Self {
        self.max_tokens = Some(tokens);
        self
    }

    /// Permission bits of the file, whatever the umask is. Default: 0o600. A table that is open to
    /// more users than its creator said is refused.
    pub fn mode(mut self, bits: u32) -> Self {
        self.mode = Some(bits);
        self
    }

    /// Open a table even if it belongs to another user. Default: no, since its owner could hand out
    /// any counts, or cut the file short.
    pub fn any_owner(mut self, allowed: bool) -> Self {
        self.any_owner = allowed;
        self
    }

    /// Creates a table at `path`, on which nothing may lie yet.
    ///
    /// All its memory is reserved now. The table appears under its name when it is finished.
    ///
    /// A table without engines takes no request, so it is only created if it is asked for: by
    /// [`engines(0)`](Self::engines), or with [`max_engines`](Self::max_engines) for engines that come later.
    /// Otherwise that is [`Error::Option`], so that a program which only means to open a table does not make
    /// an empty one with [`open_or_create`](Self::open_or_create).
    ///
    /// # Errors
    /// [`Error::Exists`], [`Error::NotFound`] for the directory, [`Error::NoSpace`],
    /// [`Error::Option`], [`Error::EngineName`], [`Error::NameTaken`], [`Error::Weight`],
    /// [`Error::Io`], also if the file system has no unnamed files (tmpfs, ext4, xfs and btrfs do). A
    /// limit on the size of files (`ulimit -f`) that is too low for the table is not an error: by the
    /// kernel's rule it ends the process with SIGXFSZ, unless that signal is ignored.
    pub fn create(&self, path: impl AsRef<Path>) -> Result<Table> {
        let header = self.header()?;
        let file = TableFile::create(path.as_ref(), header, |mapping| self.fill(mapping))?;
        self.created(file)
    }

    /// Opens the table at `path`, if its options are those that were set here, and returns what
    /// dead frontends held. So when every process is gone, the next finds the table empty: also if
    /// others open it at the same instant, for it waits for those that are reaping already, for at most
    /// 200 ms, since one of them may be stopped. Costs two system calls for each living frontend.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::NotATable`], [`Error::Symlink`], [`Error::Owner`],
    /// [`Error::Mode`], [`Error::Version`], [`Error::Checksum`], [`Error::Geometry`],
    /// [`Error::Size`], [`Error::Differs`], [`Error::Io`].
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Table> {
        let file = TableFile::open(path.as_ref(), Access::ReadWrite, self.any_owner)?;
        self.opened(file)
    }

    /// Opens the table at `path` to look at it only: read permission suffices, and nothing in it is
    /// changed.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_read_only(&self, path: impl AsRef<Path>) -> Result<Table> {
        let file = TableFile::open(path.as_ref(), Access::ReadOnly, self.any_owner)?;
        self.opened(file)
    }

    /// Opens the table at `path`, or creates it if there is none. Any number of processes may do so
    /// at once: they end in one table.
    ///
    /// ```
    /// # fn main() -> Result<(), headcount::Error> {
    /// use headcount::Table;
    /// # let path = format!("/dev/shm/headcount-options-{}", std::process::id());
    /// // In each worker:
    /// let table = Table::options().engines(4).max_in_flight(400).open_or_create(&path)?;
    /// # std::fs::remove_file(&path).unwrap();
    /// # Ok(()) }
    /// ```
    ///
    /// Options that were set here must fit an existing table: its engines by name, weight and caps, in any
    /// order, its own caps, and the sizes and the mode that it was created with. Engines and caps fit if they
    /// are those that the table has now, or those that it was last configured with, by its creation or by
    /// [`Table::apply`]. So a worker can be started again after an operator has changed a cap in place, and the
    /// operator's cap stands. What does not fit is named ([`Error::Differs`]), and nothing is changed.
    /// [`Table::apply`] brings the table to these options.
    ///
    /// # Errors
    /// As [`open`](Self::open) and [`create`](Self::create).
    pub fn open_or_create(&self, path: impl AsRef<Path>) -> Result<Table> {
        let path = path.as_ref();
        // A process that loses the race for the name opens the table of the winner. It goes round again only if
        // the file was removed in between: a few times is bad luck, more is an error.
        for _ in 0..16 {
            match self.open(path) {
                Err(Error::NotFound { .. }) => {}
                result => return result,
            }
            match self.create(path) {
                Err(Error::Exists { .. }) => {}
                result => return result,
            }
        }
        Err(Error::Exists { path: path.into() })
    }

    /// Creates a table without a path, for this process and its children. Its size is sealed, so
    /// no process can cut it short.
    ///
    /// Children get it by [`Table::pass_to`], or by inheriting its descriptor.
    ///
    /// # Errors
    /// [`Error::Option`], [`Error::EngineName`], [`Error::NameTaken`], [`Error::Weight`],
    /// [`Error::NoSpace`], [`Error::Io`].
    pub fn memfd(&self) -> Result<Table> {
        let file = TableFile::memfd(self.header()?, |mapping| self.fill(mapping))?;
        self.created(file)
    }

    /// Opens the table behind a descriptor that was inherited or received. The descriptor stays the
    /// caller's; the table has an open file of its own, by way of /proc.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_fd(&self, fd: impl AsFd) -> Result<Table> {
        self.opened(TableFile::reopen(fd.as_fd(), None, self.any_owner)?)
    }

    /// Whether it was said which engines there are, if only that there are none.
    pub(crate) fn names_engines(&self) -> bool {
        self.named_engines.is_some()
    }

    pub(crate) fn allows_any_owner(&self) -> bool {
        self.any_owner
    }

    fn created(&self, file: TableFile) -> Result<Table> {
        let table = Table::from_file(file);
        table.reap()?; // finds none dead, and opens the lock file that later reaps use
        Ok(table)
    }

    pub(crate) fn opened(&self, file: TableFile) -> Result<Table> {
        let table = Table::from_file(file);
        self.compare(&table)?;
        if table.access() == Access::ReadWrite {
            table.reap_to_the_end()?;
        }
        Ok(table)
    }

    fn header(&self) -> Result<Header> {
        let option = |option, found: usize, expected: String| Error::Option {
            option,
            found: found as u64,
            expected,
        };
        let engines = self.engines.len();
        if engines > MAX_ENGINES {
            let asked = self.named_engines.unwrap_or(engines);
            return Err(option("engines", asked, format!("0 to {MAX_ENGINES}")));
        }
        let max_engines = (self.max_engines).unwrap_or(engines.max(DEFAULT_MAX_ENGINES));
        let max_frontends = self.max_frontends.unwrap_or(DEFAULT_MAX_FRONTENDS);
        let most_threads = threads_of(MAX_LANES / max_frontends.max(1));
        let threads = self.threads.unwrap_or(DEFAULT_THREADS.min(most_threads));
        let geometry = Geometry {
            max_engines,
            max_frontends,
            lanes: threads.saturating_add(SHARED_LANES),
        };
        geometry.check().map_err(|absurd| match absurd.field {
            "lanes" => option(
                "threads",
                threads,
                format!(
                    "0 to {most_threads}, for {max_frontends} frontends and {MAX_LANES} lanes in all"
                ),
            ),
            field => Error::Option {
                option: field,
                found: absurd.found,
                expected: absurd.expected,
            },
        })?;
        if engines > max_engines {
            let expected = format!("0 to {max_engines}, which is max_engines");
            return Err(option("engines", engines, expected));
        }
        self.check_mode()?;
        if !self.names_engines() && self.max_engines.is_none() {
            let expected = "1 or more, or 0 by `engines(0)` or with `max_engines` for a table whose engines come later; name its engines, or open the table that another process creates";
            return Err(option("engines", 0, expected.to_owned()));
        }
        self.check_engines()?;
        self.queue.check()?;
        Ok(Header {
            geometry,
            engines,
            mode: self.mode.unwrap_or(DEFAULT_MODE),
        })
    }

    /// Fails if no table can have the mode that was set. Otherwise the error for 660 in
    /// the place of 0o660 would name the mode of an existing table, and not the mistake.
    pub(crate) fn check_mode(&self) -> Result<()> {
        match self.mode {
            Some(mode) if mode & !0o777 != 0 || mode & 0o600 != 0o600 => Err(Error::Option {
                option: "mode",
                found: mode.into(),
                expected: "permission bits that let the owner read and write".to_owned(),
            }),
            _ => Ok(()),
        }
    }

    /// Fails if an engine cannot be, or has the name of one before it.
    pub(crate) fn check_engines(&self) -> Result<()> {
        let mut numbers = HashMap::new();
        for (number, engine) in self.engines.iter().enumerate() {
            engine.check()?;
            if let Some(taken) = numbers.insert(engine.name(), number) {
                return Err(Error::NameTaken {
                    name: engine.name().to_owned(),
                    engine: taken,
                });
            }
        }
        Ok(())
    }

    /// The caps of the table as a whole.
    pub(crate) fn total_caps(&self) -> Total {
        Total {
            requests: self.max_in_flight,
            tokens: self.max_tokens,
        }
    }

    /// Puts the engines into a table that no other process can see yet.
    fn fill(&self, mapping: &Mapping) {
        mapping.control().configured.complete(self);
        let engines = Engines::of(mapping);
        for (slot, engine) in self.engines.iter().enumerate() {
            engines.write(slot, engine);
            engines.rewrite(slot, |_| Some(RowState::Active));
        }
        mapping.queue().set_bounds(self.queue.bounds());
        // After the limits, which it announces, too.
        mapping.rows().set_total_caps(self.total_caps());
    }
}

/// How many threads have a lane of their own in a frontend of so many lanes.
pub(crate) fn threads_of(lanes: usize) -> usize {
    lanes.saturating_sub(SHARED_LANES)
}
