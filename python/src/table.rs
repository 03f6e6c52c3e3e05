//! The table: a handle on the shared file.

use crate::argument::{Cap, Count, Descriptor, Flag, Mode, Name, Seconds, Tokens, Weight, Which};
use crate::deployment::Deployment;
use crate::engine::{Engine, Engines};
use crate::error::OrRaise;
use crate::frontend::Frontend;
use crate::options::Asked;
use crate::policy::Named;
use crate::publisher::Publisher;
use crate::reaper::Reaper;
use crate::view;
use headcount::{Options, PathState};
use pyo3::exceptions::{PyOSError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// A table that processes of one host share: exact in-flight counts and the last statistics of each
/// engine.
///
/// Made by ``open_or_create``, ``create``, ``open``, ``open_read_only``, ``memfd`` or ``from_fd``. Put the
/// file on a tmpfs such as /dev/shm. A handle holds nothing in the table; only a Frontend, a Permit or
/// a Publisher does.
#[pyclass(frozen, module = "headcount")]
pub(crate) struct Table(pub(crate) headcount::Table, pub(crate) Opened);

/// How a table was opened, which another process has to know that is to open it again.
#[derive(Clone, Copy, Default)]
pub(crate) struct Opened {
    any_owner: bool,
    read_only: bool,
}

impl Opened {
    fn options(self) -> Options {
        headcount::Table::options().any_owner(self.any_owner)
    }
}

/// Why a handle of this process is not pickled for another.
#[cold]
pub(crate) fn of_this_process(name: &str, instead: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "a headcount.{name} belongs to its process and cannot be pickled; {instead}"
    ))
}

/// Creates or opens, while other threads run.
fn open(
    py: Python<'_>,
    options: Options,
    opened: Opened,
    open: impl FnOnce(&Options) -> headcount::Result<headcount::Table> + Send,
) -> PyResult<Table> {
    py.detach(|| open(&options))
        .or_raise(py)
        .map(|table| Table(table, opened))
}

#[pymethods]
impl Table {
    /// Opens the table at ``path``, or creates it if there is none.
    ///
    /// Any number of processes may do so at once: they end in one table. Opening returns what dead
    /// frontends held. Options that are given must fit an existing table: its engines by name, weight and
    /// caps, in any order, its own caps, and the sizes and the mode that it was created with. Engines and
    /// caps fit if they are those that the table has now, or those that it was last configured with, by its
    /// creation or by ``apply``: a worker is started again after an operator has changed a cap in place, and
    /// the operator's cap stands. What does not fit is named by DiffersError, and nothing is changed; ``apply``
    /// brings the table to these options.
    ///
    /// engines: how many (named "0", "1" and so on), or a list of Engine or of names; for a new table, 0 or
    /// an empty list if they come later.
    /// max_engines: room for so many, 1 to 4,096; default 64.
    /// max_frontends: how many processes can join, 1 to 4,095; default 64.
    /// lanes: how many threads of a process can route at the same instant without waiting; default 4.
    /// max_in_flight, max_tokens: caps on all engines together; None, the default, for no cap. max_in_flight=0 takes
    /// nothing, and max_tokens=0 only requests without tokens: others raise SaturatedError, whose ``passes`` is False.
    /// mode: permission bits of the file; default 0o600.
    /// any_owner: open even a table that belongs to another user.
    ///
    /// Raises ExistsError, NotFoundError, NotATableError, SymlinkError, OwnerError, ModeError, VersionError,
    /// ChecksumError, GeometryError, SizeError, DiffersError, NoSpaceError, OptionError, EngineNameError,
    /// NameTakenError, WeightError, IoError.
    #[staticmethod]
    #[pyo3(signature = (path, engines=None, *, max_engines=None, max_frontends=None, lanes=None,
        max_in_flight=None, max_tokens=None, mode=None, any_owner=Flag(false)),
        text_signature = "(path, engines=None, *, max_engines=None, max_frontends=None, lanes=None, max_in_flight=None, max_tokens=None, mode=None, any_owner=False)")]
    #[allow(clippy::too_many_arguments)] // keyword arguments of Python
    fn open_or_create(
        py: Python<'_>,
        path: PathBuf,
        engines: Option<Engines>,
        max_engines: Option<Count>,
        max_frontends: Option<Count>,
        lanes: Option<Count>,
        max_in_flight: Option<Tokens>,
        max_tokens: Option<Tokens>,
        mode: Option<Mode>,
        any_owner: Flag,
    ) -> PyResult<Self> {
        let asked = Asked {
            engines,
            max_engines,
            max_frontends,
            lanes,
            max_in_flight,
            max_tokens,
            mode,
            any_owner: any_owner.0,
        };
        let opened = Opened {
            any_owner: any_owner.0,
            read_only: false,
        };
        open(py, asked.into(), opened, |o| o.open_or_create(path))
    }

    /// Creates a table at ``path``, on which nothing may lie yet. Options as for ``open_or_create``.
    ///
    /// Raises ExistsError, NotFoundError, NoSpaceError, OptionError, EngineNameError, NameTakenError,
    /// WeightError, IoError.
    #[staticmethod]
    #[pyo3(signature = (path, engines=None, *, max_engines=None, max_frontends=None, lanes=None,
        max_in_flight=None, max_tokens=None, mode=None))]
    #[allow(clippy::too_many_arguments)] // keyword arguments of Python
    fn create(
        py: Python<'_>,
        path: PathBuf,
        engines: Option<Engines>,
        max_engines: Option<Count>,
        max_frontends: Option<Count>,
        lanes: Option<Count>,
        max_in_flight: Option<Tokens>,
        max_tokens: Option<Tokens>,
        mode: Option<Mode>,
    ) -> PyResult<Self> {
        let asked = Asked {
            engines,
            max_engines,
            max_frontends,
            lanes,
            max_in_flight,
            max_tokens,
            mode,
            any_owner: false,
        };
        open(py, asked.into(), Opened::default(), |o| o.create(path))
    }

    /// Opens the table at ``path``, whatever it was created with.
    ///
    /// Raises NotFoundError, NotATableError, SymlinkError, OwnerError, ModeError, VersionError,
    /// ChecksumError, GeometryError, SizeError, IoError.
    #[staticmethod]
    #[pyo3(signature = (path, *, any_owner=Flag(false)), text_signature = "(path, *, any_owner=False)")]
    fn open(py: Python<'_>, path: PathBuf, any_owner: Flag) -> PyResult<Self> {
        let opened = Opened {
            any_owner: any_owner.0,
            read_only: false,
        };
        open(py, opened.options(), opened, |o| o.open(path))
    }

    /// Opens the table at ``path`` to look at it only: nothing in it is changed, not even by a reap.
    ///
    /// Raises as ``open``.
    #[staticmethod]
    #[pyo3(signature = (path, *, any_owner=Flag(false)), text_signature = "(path, *, any_owner=False)")]
    fn open_read_only(py: Python<'_>, path: PathBuf, any_owner: Flag) -> PyResult<Self> {
        let opened = Opened {
            any_owner: any_owner.0,
            read_only: true,
        };
        open(py, opened.options(), opened, |o| o.open_read_only(path))
    }

    /// Creates a table without a path. Hand its ``fileno()`` to children, by ``pass_fds`` of
    /// ``subprocess`` say, and let them use ``from_fd``. Options as for ``open_or_create``.
    ///
    /// Raises NoSpaceError, OptionError, EngineNameError, NameTakenError, WeightError, IoError.
    #[staticmethod]
    #[pyo3(signature = (engines=None, *, max_engines=None, max_frontends=None, lanes=None,
        max_in_flight=None, max_tokens=None))]
    fn memfd(
        py: Python<'_>,
        engines: Option<Engines>,
        max_engines: Option<Count>,
        max_frontends: Option<Count>,
        lanes: Option<Count>,
        max_in_flight: Option<Tokens>,
        max_tokens: Option<Tokens>,
    ) -> PyResult<Self> {
        let asked = Asked {
            engines,
            max_engines,
            max_frontends,
            lanes,
            max_in_flight,
            max_tokens,
            ..Asked::default()
        };
        open(py, asked.into(), Opened::default(), Options::memfd)
    }

    /// Opens the table behind a descriptor. The descriptor stays the caller's.
    ///
    /// Raises as ``open``, and OSError if the number is no open descriptor.
    #[staticmethod]
    #[pyo3(signature = (fd, *, any_owner=Flag(false)), text_signature = "(fd, *, any_owner=False)")]
    fn from_fd(py: Python<'_>, fd: Descriptor, any_owner: Flag) -> PyResult<Self> {
        let opened = Opened {
            any_owner: any_owner.0,
            read_only: false,
        };
        let fd = duplicate(fd)?;
        open(py, opened.options(), opened, |o| o.from_fd(fd))
    }

    /// Takes a place in the table for this process, after returning what dead frontends held.
    ///
    /// policy: how load is computed: in_flight, open, floor, tokens, round_robin or power_of_two.
    /// stale_after: the age in seconds from which on a snapshot counts as absent; default 1.
    ///
    /// Raises FrontendsFullError, ReadOnlyError, IoError.
    #[pyo3(
        signature = (policy=Named::default(), stale_after=None),
        text_signature = "($self, policy=\"in_flight\", stale_after=None)"
    )]
    fn join(
        &self,
        py: Python<'_>,
        policy: Named,
        stale_after: Option<Seconds>,
    ) -> PyResult<Frontend> {
        let policy = policy.with_limit(stale_after)?;
        let frontend = py.detach(|| self.0.join()).or_raise(py)?;
        Frontend::new(py, frontend.with_policy(policy), self.1)
    }

    /// Becomes the publisher, if no living process is.
    ///
    /// Raises PublisherHeldError, ReadOnlyError, IoError.
    fn publisher(&self, py: Python<'_>) -> PyResult<Publisher> {
        let publisher = py.detach(|| self.0.publisher()).or_raise(py)?;
        Ok(Publisher::new(publisher, self.0.path()))
    }

    /// Takes the table's deployment lock, if no living process has it. For the parent of a deployment, before it
    /// changes anything; frontends do not need it.
    ///
    /// Raises DeployedError, ReadOnlyError, IoError.
    fn deploy(&self, py: Python<'_>) -> PyResult<Deployment> {
        let deployment = py.detach(|| self.0.deploy()).or_raise(py)?;
        Ok(Deployment::new(deployment, self.1))
    }

    /// Brings the table to these options while its frontends go on: adds and removes engines, and changes their
    /// weights and caps and the table's own caps. Returns what was changed: Changes. Options as for
    /// ``open_or_create``.
    ///
    /// An engine that is there already, by its name, keeps its state and what is in flight on it. Without
    /// ``engines`` all stay as they are; a cap of the table that is not given is taken away. What a table was
    /// created with cannot be changed.
    ///
    /// Processes that apply at the same time do so one after the other. A table that a deployment serves is left to it
    /// (DeployedError): that process calls ``Deployment.apply``.
    ///
    /// Raises DeployedError, DiffersError, OptionError, EnginesFullError, EngineNameError, NameTakenError,
    /// WeightError, ReadOnlyError, BusyError, IoError.
    #[pyo3(signature = (engines=None, *, max_engines=None, max_frontends=None, lanes=None,
        max_in_flight=None, max_tokens=None, mode=None))]
    #[allow(clippy::too_many_arguments)] // keyword arguments of Python
    fn apply<'py>(
        &self,
        py: Python<'py>,
        engines: Option<Engines>,
        max_engines: Option<Count>,
        max_frontends: Option<Count>,
        lanes: Option<Count>,
        max_in_flight: Option<Tokens>,
        max_tokens: Option<Tokens>,
        mode: Option<Mode>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let asked = Asked {
            engines,
            max_engines,
            max_frontends,
            lanes,
            max_in_flight,
            max_tokens,
            mode,
            any_owner: false,
        };
        let options = asked.into();
        view::changes(py, &py.detach(|| self.0.apply(&options)).or_raise(py)?)
    }

    /// What ``apply`` would change now, in its order: a list of Difference, empty if nothing. Options as for
    /// ``open_or_create``; an operator's change in place counts, whatever the table was last configured with.
    ///
    /// ``apply`` raises DiffersError, and changes nothing, if one of them cannot be changed
    /// (``Difference.can_be_changed``). Options that no table can have are an error there, and not here.
    /// A look, without a lock, which a table of ``open_read_only`` allows as well.
    #[pyo3(signature = (engines=None, *, max_engines=None, max_frontends=None, lanes=None,
        max_in_flight=None, max_tokens=None, mode=None))]
    #[allow(clippy::too_many_arguments)] // keyword arguments of Python
    fn differences<'py>(
        &self,
        py: Python<'py>,
        engines: Option<Engines>,
        max_engines: Option<Count>,
        max_frontends: Option<Count>,
        lanes: Option<Count>,
        max_in_flight: Option<Tokens>,
        max_tokens: Option<Tokens>,
        mode: Option<Mode>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let asked = Asked {
            engines,
            max_engines,
            max_frontends,
            lanes,
            max_in_flight,
            max_tokens,
            mode,
            any_owner: false,
        };
        let options = asked.into();
        view::differences(py, &py.detach(|| self.0.differences(&options)))
    }

    /// A look at the whole table, for people and metrics: a View. Nothing waits for it.
    fn snapshot<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        view::view(py, &py.detach(|| self.0.view()))
    }

    /// Returns to the engines what dead frontends held. Tells how much that was: a Reaped.
    ///
    /// Raises ReadOnlyError, IoError.
    fn reap<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let reaped = py.detach(|| self.0.reap()).or_raise(py)?;
        view::reaped(py, reaped)
    }

    /// Reaps every ``period`` seconds from a thread of this process, until the Reaper is stopped. Less than
    /// a millisecond counts as one.
    ///
    /// Raises ReadOnlyError, IoError.
    fn reap_every(&self, py: Python<'_>, period: Seconds) -> PyResult<Reaper> {
        let period = period.duration("period")?;
        let reaper = py.detach(|| self.0.reap_every(period)).or_raise(py)?;
        Ok(Reaper::new(reaper, self.0.path()))
    }

    /// Adds an engine, an Engine or a name, and returns its EngineId.
    ///
    /// The calls that change an engine take its number, which means the engine that has it then, or its
    /// EngineId, which means that very engine: if it is gone, another that has its number is left alone.
    ///
    /// Raises EngineNameError, WeightError, NameTakenError, EnginesFullError, ReadOnlyError, BusyError, IoError.
    fn add<'py>(&self, py: Python<'py>, engine: Engine) -> PyResult<Bound<'py, PyAny>> {
        view::id(py, py.detach(|| self.0.add(&engine.0)).or_raise(py)?)
    }

    /// Takes an engine out. What is in flight on it finishes as it would have; returns how many.
    ///
    /// Raises NoSuchEngineError, ReadOnlyError, BusyError, IoError.
    fn remove(&self, py: Python<'_>, engine: Which) -> PyResult<u32> {
        py.detach(|| self.0.remove(engine.0)).or_raise(py)
    }

    /// The engine takes nothing new; what is in flight finishes.
    ///
    /// Raises NoSuchEngineError, ReadOnlyError.
    fn drain(&self, py: Python<'_>, engine: Which) -> PyResult<()> {
        self.0.drain(engine.0).or_raise(py)
    }

    /// The engine does not answer: it takes nothing.
    ///
    /// Raises NoSuchEngineError, ReadOnlyError.
    fn down(&self, py: Python<'_>, engine: Which) -> PyResult<()> {
        self.0.down(engine.0).or_raise(py)
    }

    /// The engine takes requests again, starting from what is in flight on it.
    ///
    /// Raises NoSuchEngineError, ReadOnlyError.
    fn up(&self, py: Python<'_>, engine: Which) -> PyResult<()> {
        self.0.up(engine.0).or_raise(py)
    }

    /// As ``down``, if the engine is active: one that is draining or down stays as it is. For health checks.
    /// Tells whether it was.
    ///
    /// Raises NoSuchEngineError, ReadOnlyError.
    fn down_if_active(&self, py: Python<'_>, engine: Which) -> PyResult<bool> {
        self.0.down_if_active(engine.0).or_raise(py)
    }

    /// As ``up``, if the engine is down: one that an operator drains goes on draining. For health checks.
    /// Tells whether it was.
    ///
    /// Raises NoSuchEngineError, ReadOnlyError.
    fn up_if_down(&self, py: Python<'_>, engine: Which) -> PyResult<bool> {
        self.0.up_if_down(engine.0).or_raise(py)
    }

    /// Changes an engine's weight.
    ///
    /// Raises WeightError, NoSuchEngineError, ReadOnlyError, BusyError, IoError.
    fn set_weight(&self, py: Python<'_>, engine: Which, weight: Weight) -> PyResult<()> {
        py.detach(|| self.0.set_weight(engine.0, weight.0))
            .or_raise(py)
    }

    /// Changes an engine's caps; None for no cap, while max_in_flight=0 takes nothing. A cap that is not given stays as
    /// it is: of two processes that change one each, both have their way.
    ///
    /// Raises NoSuchEngineError, ReadOnlyError, BusyError, IoError.
    #[pyo3(
        signature = (engine, max_in_flight=Cap::Stays, max_tokens=Cap::Stays),
        text_signature = "($self, engine, max_in_flight=..., max_tokens=...)"
    )]
    fn set_caps(
        &self,
        py: Python<'_>,
        engine: Which,
        max_in_flight: Cap,
        max_tokens: Cap,
    ) -> PyResult<()> {
        py.detach(|| match (max_in_flight, max_tokens) {
            (Cap::Stays, Cap::Stays) => Ok(()),
            (Cap::Is(requests), Cap::Stays) => self.0.set_max_in_flight(engine.0, requests),
            (Cap::Stays, Cap::Is(tokens)) => self.0.set_max_tokens(engine.0, tokens),
            (Cap::Is(requests), Cap::Is(tokens)) => self.0.set_caps(engine.0, requests, tokens),
        })
        .or_raise(py)
    }

    /// Changes the most requests that all engines together take; None for no cap, while 0 takes nothing.
    /// The table's cap on tokens stays as it is. A cap below what is in flight takes nothing away. ``apply`` puts the
    /// configured cap back.
    ///
    /// Raises ReadOnlyError, BusyError, IoError.
    fn set_total_max_in_flight(&self, py: Python<'_>, cap: Option<Tokens>) -> PyResult<()> {
        let cap = cap.map(|Tokens(cap)| cap);
        py.detach(|| self.0.set_total_max_in_flight(cap))
            .or_raise(py)
    }

    /// Changes the most tokens that all engines together take; None for no cap, while one of 0 takes requests without
    /// tokens only. See ``set_total_max_in_flight``.
    ///
    /// Raises ReadOnlyError, BusyError, IoError.
    fn set_total_max_tokens(&self, py: Python<'_>, cap: Option<Tokens>) -> PyResult<()> {
        let cap = cap.map(|Tokens(cap)| cap);
        py.detach(|| self.0.set_total_max_tokens(cap)).or_raise(py)
    }

    /// The EngineId of the engine of that name, or None.
    fn find<'py>(&self, py: Python<'py>, name: Name) -> PyResult<Option<Bound<'py, PyAny>>> {
        let found = self.0.find(&name.0);
        found.map(|found| view::id(py, found)).transpose()
    }

    /// What lies at the path of this table now: "here", this table; "gone", nothing; "replaced", another
    /// file; "none", the table has no path.
    ///
    /// When it is "gone" or "replaced", processes that open the path from now on count in another table, and
    /// caps are exceeded: start the process anew. A Reaper's ``last_error`` says so as well.
    ///
    /// Raises IoError, if this process may not look there any more.
    fn path_state(&self, py: Python<'_>) -> PyResult<&'static str> {
        Ok(self.0.path_state().or_raise(py)?.name())
    }

    /// Recounts everything, and checks the file and all that it says: a Verification. Reads only, and
    /// nothing waits for it; milliseconds for a table of the default size.
    ///
    /// Raises IoError.
    fn verify<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        view::verification(py, &py.detach(|| self.0.verify()).or_raise(py)?)
    }

    /// The file word by word, each with what it means: for a bug report.
    ///
    /// Raises IoError.
    fn dump(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| self.0.dump()).or_raise(py)
    }

    /// Where the table lies, as it was opened.
    #[getter]
    fn path(&self) -> &Path {
        self.0.path()
    }

    /// The descriptor of the table's file, which stays the table's.
    fn fileno(&self) -> i32 {
        self.0.as_fd().as_raw_fd()
    }

    fn __repr__(&self) -> String {
        format!("<headcount.Table {}>", self.0.path().display())
    }

    /// By its path: another process opens it there.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let state = self.0.path_state().or_raise(py)?;
        if state != PathState::Here {
            let why = match state {
                PathState::NoPath => "has no path",
                _ => "does not lie at its path any more",
            };
            return Err(PyTypeError::new_err(format!(
                "this headcount.Table {why}, so it cannot be pickled; hand over its fileno(), by pass_fds of \
                 subprocess say, and use Table.from_fd"
            )));
        }
        let again = py.import("headcount._pickle")?.getattr("opened")?;
        let Opened {
            any_owner,
            read_only,
        } = self.1;
        (again, (self.0.path(), any_owner, read_only)).into_pyobject(py)
    }
}

const EBADF: i32 = 9; // of Linux, on all its processors

/// A descriptor of our own on what the caller's number stands for.
fn duplicate(Descriptor(fd): Descriptor) -> PyResult<OwnedFd> {
    // By way of /proc: a number from Python may be anything, and this fails if it is nothing.
    let file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(format!("/proc/self/fd/{fd}"))
        .map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                PyOSError::new_err((EBADF, format!("{fd} is no open descriptor")))
            }
            _ => error.into(),
        })?;
    Ok(file.into())
}
