//! Errors: [`Error`] in general, [`RouteError`] when a request is placed.

mod acquire;
mod cap;
pub(crate) mod difference;
mod route;

pub use acquire::AcquireError;
pub use cap::Cap;
pub use difference::Difference;
pub use route::{RouteError, Unavailable};

use std::io;
use std::path::PathBuf;

/// The result of this crate's fallible calls.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Every way in which a call can fail. Nothing is changed by a call that fails, unless its variant
/// says so, and the table works on as before.
///
/// Each message names the value that was found, the one that was expected, and a remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    // -- Routing ---------------------------------------------------------------------------------
    /// As [`RouteError::Saturated`].
    #[error("{}", .cap.advice(*.passes))]
    #[non_exhaustive]
    Saturated {
        /// The cap that is in the way.
        cap: Cap,
        /// Whether waiting can help.
        passes: bool,
    },

    /// As [`RouteError::Unavailable`].
    #[error("{0}")]
    Unavailable(Unavailable),

    /// The table has no engine of that number, or the engine of that id was removed.
    #[error("{}", route::no_such_engine(*.engine, *.removed))]
    #[non_exhaustive]
    NoSuchEngine {
        /// The number that was given, or that the engine of that id had.
        engine: usize,
        /// Whether the engine was named by its [`EngineId`](crate::EngineId), so that it was there once. Its
        /// number may be another engine's now, which was left alone.
        removed: bool,
    },

    /// The frontend, publisher or deployment was made by another process, of which this one is a forked child.
    /// Nothing was counted, published or changed; what the parent has stays the parent's.
    #[error("{}", route::FORKED)]
    Forked,

    /// The request itself cannot be: as [`RouteError::NoSuchClass`], [`RouteError::TenantName`] or
    /// [`RouteError::NoShare`].
    #[error(transparent)]
    Request(RouteError),

    /// A request got no place by waiting: as [`AcquireError`], but for [`AcquireError::Route`].
    #[error(transparent)]
    Acquire(AcquireError),

    /// There is no policy of that name.
    #[error("there is no policy {name:?}; use {}", .known.join(", "))]
    #[non_exhaustive]
    Policy {
        /// The name that was given.
        name: String,
        /// The names that there are.
        known: &'static [&'static str],
    },

    // -- Joining and publishing ------------------------------------------------------------------
    /// Every slot for a frontend belongs to a living process.
    #[error(
        "all {max_frontends} frontend slots belong to living processes; create the table with a larger `max_frontends`"
    )]
    #[non_exhaustive]
    FrontendsFull {
        /// How many the table was created for.
        max_frontends: usize,
    },

    /// Another process publishes. It may be taken over as soon as its holder is gone.
    #[error("process {pid} publishes to this table already; try again when it is gone")]
    #[non_exhaustive]
    PublisherHeld {
        /// The holder as it sees itself; pid namespaces may differ.
        pid: u32,
    },

    /// More statistics than the table has engines.
    #[error(
        "statistics for {found} engines, but the table has {engines}; publish one for each engine, in the order of their numbers"
    )]
    #[non_exhaustive]
    TooManyStats {
        /// How many were given.
        found: usize,
        /// How many there may be.
        engines: usize,
    },

    /// A statistic that cannot be.
    #[error(
        "the KV usage of engine {engine} is {found}, but it is a share of the cache, from 0 to 1; nothing was published"
    )]
    #[non_exhaustive]
    KvUsage {
        /// The engine whose statistic it is.
        engine: usize,
        /// The value that was given.
        found: f32,
    },

    // -- Engines ---------------------------------------------------------------------------------
    /// No slot for another engine is free. One whose engine was removed is free again when nothing
    /// is in flight on it.
    #[error(
        "all {max_engines} engine slots are taken; remove an engine and let it finish, or create the table with a larger `max_engines`"
    )]
    #[non_exhaustive]
    EnginesFull {
        /// How many the table was created for.
        max_engines: usize,
    },

    /// A name that an engine cannot have.
    #[error("the engine name {name:?} {reason}; use 1 to {max} bytes of printable text", max = crate::shm::layout::MAX_NAME)]
    #[non_exhaustive]
    EngineName {
        /// The name that was given.
        name: String,
        /// Why no engine can have it.
        reason: &'static str,
    },

    /// Another engine has that name.
    #[error(
        "the name {name:?} belongs to engine {engine} already; give each engine a name of its own"
    )]
    #[non_exhaustive]
    NameTaken {
        /// The name that was given.
        name: String,
        /// The engine that has it.
        engine: usize,
    },

    /// A weight that an engine cannot have.
    #[error(
        "the weight {found} cannot be: a weight is a finite number above 0; use `Table::down` for an engine that is to get nothing"
    )]
    #[non_exhaustive]
    Weight {
        /// The value that was given.
        found: f32,
    },

    /// Another process has been changing the table's engines for seconds, and does not end.
    #[error(
        "process {pid} is in the middle of changing this table's engines and does not go on (stopped?); resume or kill it, then try again"
    )]
    #[non_exhaustive]
    Busy {
        /// The process as it sees itself; pid namespaces may differ.
        pid: u32,
    },

    /// Another process is the table's deployment; see [`Table::deploy`](crate::Table::deploy). Nothing was
    /// changed. Its place is free as soon as it is gone.
    #[error("{path} is served by process {pid}; give this deployment a table of its own, or stop that one", path = .path.display())]
    #[non_exhaustive]
    Deployed {
        /// The path of the table.
        path: PathBuf,
        /// The process as it sees itself; pid namespaces may differ.
        pid: u32,
    },

    // -- Creating and opening --------------------------------------------------------------------
    /// A file lies at that path already.
    #[error("{path} exists; open it, or use `open_or_create`", path = .path.display())]
    #[non_exhaustive]
    Exists {
        /// The path that was given.
        path: PathBuf,
    },

    /// No file lies at that path.
    #[error("{path} does not exist; create the table or its directory first, or check the path", path = .path.display())]
    #[non_exhaustive]
    NotFound {
        /// The path that was given.
        path: PathBuf,
    },

    /// No parent has passed a table to this very process; see [`Table::pass_to`](crate::Table::pass_to).
    #[error(
        "no table was passed to this process ({variable}); start it by a command that was given to `Table::pass_to`, or open the table by its path"
    )]
    #[non_exhaustive]
    NotPassed {
        /// The environment variable that would name it.
        variable: &'static str,
    },

    /// An option that a new table cannot have.
    #[error("{}; change that option", impossible_option(.option, *.found, .expected))]
    #[non_exhaustive]
    Option {
        /// The option's name.
        option: &'static str,
        /// The value that was given.
        found: u64,
        /// The values that are possible.
        expected: String,
    },

    /// The table at that path has other engines or caps than were asked for, or was created with other
    /// sizes or another mode. Nothing was changed.
    #[error("{}", difference::message(.path, .differences))]
    #[non_exhaustive]
    Differs {
        /// The path that was given.
        path: PathBuf,
        /// The differences; one at least.
        differences: Vec<Difference>,
    },

    /// The file system has no room for the table. Nothing was created.
    #[error("no room for the {needed} bytes of {path}; free some, or create the table with fewer engines and frontends", path = .path.display())]
    #[non_exhaustive]
    NoSpace {
        /// The path that was given.
        path: PathBuf,
        /// The bytes that the table takes.
        needed: u64,
    },

    /// The path is a symbolic link, which is not followed.
    #[error("{path} is a symbolic link, and tables are not opened through links; give the path of the table itself", path = .path.display())]
    #[non_exhaustive]
    Symlink {
        /// The path that was given.
        path: PathBuf,
    },

    /// The file at that path is not a table.
    #[error("{path} is not a headcount table: it is {found}; check the path", path = .path.display())]
    #[non_exhaustive]
    NotATable {
        /// The path that was given.
        path: PathBuf,
        /// What the file is instead.
        found: String,
    },

    /// A table of another version of the format.
    #[error("{path} has format version {found}, and this library reads version {expected}; use one version of headcount everywhere, or remove the file when no process uses it", path = .path.display())]
    #[non_exhaustive]
    Version {
        /// The path that was given.
        path: PathBuf,
        /// The version that the file names.
        found: u32,
        /// The version that this library reads.
        expected: u32,
    },

    /// The header was changed after its creation.
    #[error("the header of {path} is damaged: its checksum is {found:#018x} and should be {expected:#018x}; remove the file and create the table again", path = .path.display())]
    #[non_exhaustive]
    Checksum {
        /// The path that was given.
        path: PathBuf,
        /// The checksum that the file names.
        found: u64,
        /// The checksum of what the header says.
        expected: u64,
    },

    /// A header that names an impossible table.
    #[error("the header of {path} says {field} = {found}, but it must be {expected}; remove the file and create the table again", path = .path.display())]
    #[non_exhaustive]
    Geometry {
        /// The path that was given.
        path: PathBuf,
        /// The field of the header.
        field: &'static str,
        /// The value that the file names.
        found: u64,
        /// The values that are possible.
        expected: String,
    },

    /// The file is shorter or longer than its header says.
    #[error("{path} has {found} bytes and should have {expected}; remove the file and create the table again", path = .path.display())]
    #[non_exhaustive]
    Size {
        /// The path that was given.
        path: PathBuf,
        /// The bytes that the file has.
        found: u64,
        /// The bytes that it should have.
        expected: u64,
    },

    /// The file belongs to another user.
    #[error("{path} belongs to user {found}, and this process runs as user {expected}; run as that user, or allow it with `any_owner(true)`", path = .path.display())]
    #[non_exhaustive]
    Owner {
        /// The path that was given.
        path: PathBuf,
        /// The user who owns the file.
        found: u32,
        /// The user who opens it.
        expected: u32,
    },

    /// The file is open to more users than its creator said.
    #[error("{path} has mode {found:04o}, which is wider than the {expected:04o} that it was created with; use chmod, or create it with that mode", path = .path.display())]
    #[non_exhaustive]
    Mode {
        /// The path that was given.
        path: PathBuf,
        /// The permission bits that the file has.
        found: u32,
        /// The permission bits that its header names.
        expected: u32,
    },

    /// The table was opened for reading only.
    #[error("this table was opened for reading only; open it with `open` to change it")]
    ReadOnly,

    /// A system call failed.
    #[error("{doing} {path}: {source}; check the path, its permissions and its file system", path = .path.display())]
    #[non_exhaustive]
    Io {
        /// The action that failed.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the system call.
        source: io::Error,
    },
}

fn impossible_option(option: &str, found: u64, expected: &str) -> String {
    if option != "mode" {
        return format!("{option} is {found}, but it must be {expected}");
    }
    // Given in decimal by mistake: 660 for 0o660, say.
    let octal = u32::from_str_radix(&found.to_string(), 8).ok();
    let meant = match octal.filter(|mode| mode & !0o777 == 0 && mode & 0o600 == 0o600) {
        Some(mode) => format!(" (did you mean {mode:#o}?)"),
        None => String::new(),
    };
    format!("mode is {found:#o}, but it must be {expected}{meant}")
}

impl From<AcquireError> for Error {
    fn from(error: AcquireError) -> Self {
        match error {
            AcquireError::Route(error) => error.into(),
            error => Self::Acquire(error),
        }
    }
}

impl From<RouteError> for Error {
    fn from(error: RouteError) -> Self {
        match error {
            RouteError::Saturated { cap, passes } => Self::Saturated { cap, passes },
            RouteError::Unavailable(why) => Self::Unavailable(why),
            RouteError::NoSuchEngine { engine, removed } => Self::NoSuchEngine {
                engine: engine as usize,
                removed,
            },
            RouteError::Forked => Self::Forked,
            fault @ (RouteError::NoSuchClass { .. }
            | RouteError::TenantName { .. }
            | RouteError::NoShare) => Self::Request(fault),
        }
    }
}
