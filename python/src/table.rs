//! The table.

use crate::argument::{Cap, Descriptor, Flag, Name, Seconds, Tokens, Weight, Which};
use crate::deployment::Deployment;
use crate::engine::{Engine, Engines};
use crate::error::OrRaise;
use crate::frontend::Frontend;
use crate::options;
use crate::policy::Named;
use crate::publisher::Publisher;
use crate::reaper::Reaper;
use crate::view;
use headcount::{Options, PathState};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};

/// A table that processes of one host share: exact in-flight counts and the last statistics of each engine.
///
/// ``open_or_create``, ``create``, ``open``, ``open_read_only``, ``memfd`` and ``from_fd`` return one. Put the
/// file on a tmpfs such as /dev/shm. An open table takes no place in the file; a Frontend, a Publisher or a
/// Deployment does.
///
/// A method that takes an engine takes its number, which means the engine that has it at that moment, or its
/// EngineId, which means that very engine.
#[pyclass(frozen, module = "headcount")]
pub(crate) struct Table(pub(crate) headcount::Table, pub(crate) Opened);

/// How a table was opened, so that another process can open it in the same way.
#[derive(Clone, Copy, Default)]
pub(crate) struct Opened {
    any_owner: bool,
    read_only: bool,
}

impl Opened {
    fn writable(Flag(any_owner): Flag) -> Self {
        Self {
            any_owner,
            read_only: false,
        }
    }

    fn options(self) -> Options {
        headcount::Table::options().any_owner(self.any_owner)
    }
}

/// The error for an object that cannot be pickled because it belongs to its process.
#[cold]
pub(crate) fn of_this_process(name: &str, instead: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "a headcount.{name} belongs to its process and cannot be pickled; {instead}"
    ))
}

/// Creates or opens a table, while other threads run.
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
    /// Any number of processes may do so at once: all get the same table. Opening also reaps dead frontends.
    ///
    /// An existing table must fit the options that are given: its engines by name, weight and caps, in any
    /// order; its own caps; and the sizes and the mode that it was created with. Engines and caps fit if the
    /// table has them now, or if it was last configured with them, by its creation or by ``apply``. So a worker
    /// can be started again after an operator has changed a cap in place, and the operator's cap stays. If an
    /// option does not fit, DiffersError names it, and nothing is changed; ``apply`` brings the table to these
    /// options.
    ///
    /// engines: a number of engines, named "0", "1" and so on, or a list of Engine or of names. For a new
    /// table, 0 or an empty list if engines are added later.
    /// max_engines: how many engines the table has room for, 1 to 4,096; default 64.
    /// max_frontends: how many processes can join, 1 to 4,095; default 64.
    /// threads: how many threads of each process have a lane of their own, so that they never wait for another
    /// thread; all further threads share one lane. 0 or more; default 3.
    /// max_in_flight, max_tokens: caps on all engines together; None, the default, for no cap. With
    /// max_in_flight=0 the table takes no request, and with max_tokens=0 only requests without tokens: others
    /// raise SaturatedError, whose ``passes`` is False.
    /// max_waiting: how many requests wait at most for a place, over all processes, 1 to 1,048,575; see
    /// ``Frontend.acquire``. None, the default, for a table without a queue.
    /// max_waiting_of_class: how many of them may be of a class, as in {3: 100}, for each class that has a bound of
    /// its own; 1 to 1,048,575.
    /// share_tokens: whether tenants share the tokens of requests, and not their number; default False.
    /// mode: permission bits of the file; default 0o600.
    /// any_owner: whether to open a table that belongs to another user.
    ///
    /// Raises ExistsError, NotFoundError, NotATableError, SymlinkError, OwnerError, ModeError, VersionError,
    /// ChecksumError, GeometryError, SizeError, DiffersError, NoSpaceError, OptionError, EngineNameError,
    /// NameTakenError, WeightError, IoError.
    #[staticmethod]
    #[pyo3(
        signature = (path, engines=None, *, any_owner=Flag(false), **keywords),
        text_signature = "(path, engines=None, *, max_engines=None, max_frontends=None, threads=None, max_in_flight=None, max_tokens=None, max_waiting=None, max_waiting_of_class=None, share_tokens=None, mode=None, any_owner=False)"
    )]
    fn open_or_create(
        py: Python<'_>,
        path: PathBuf,
        engines: Option<Engines>,
        any_owner: Flag,
        keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let opened = Opened::writable(any_owner);
        let options = options::at_path("Table.open_or_create", engines, keywords)?;
        let options = options.any_owner(opened.any_owner);
        open(py, options, opened, |o| o.open_or_create(path))
    }

    /// Creates a table at ``path``, where no file may lie yet. Takes the options of ``open_or_create``.
    ///
    /// Raises ExistsError, NotFoundError, NoSpaceError, OptionError, EngineNameError, NameTakenError,
    /// WeightError, IoError.
    #[staticmethod]
    #[pyo3(
        signature = (path, engines=None, **keywords),
        text_signature = "(path, engines=None, *, max_engines=None, max_frontends=None, threads=None, max_in_flight=None, max_tokens=None, max_waiting=None, max_waiting_of_class=None, share_tokens=None, mode=None)"
    )]
    fn create(
        py: Python<'_>,
        path: PathBuf,
        engines: Option<Engines>,
        keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let options = options::at_path("Table.create", engines, keywords)?;
        open(py, options, Opened::default(), |o| o.create(path))
    }

    /// Opens the table at ``path``, with the options that it has. Also reaps dead frontends.
    ///
    /// Raises NotFoundError, NotATableError, SymlinkError, OwnerError, ModeError, VersionError,
    /// ChecksumError, GeometryError, SizeError, IoError.
    #[staticmethod]
    #[pyo3(signature = (path, *, any_owner=Flag(false)), text_signature = "(path, *, any_owner=False)")]
    fn open(py: Python<'_>, path: PathBuf, any_owner: Flag) -> PyResult<Self> {
        let opened = Opened::writable(any_owner);
        open(py, opened.options(), opened, |o| o.open(path))
    }

    /// Opens the table at ``path`` for reading only: no call changes anything in it, and none reaps.
    ///
    /// Raises the errors of ``open``.
    #[staticmethod]
    #[pyo3(signature = (path, *, any_owner=Flag(false)), text_signature = "(path, *, any_owner=False)")]
    fn open_read_only(py: Python<'_>, path: PathBuf, any_owner: Flag) -> PyResult<Self> {
        let opened = Opened {
            read_only: true,
            ..Opened::writable(any_owner)
        };
        open(py, opened.options(), opened, |o| o.open_read_only(path))
    }

    /// Creates a table without a path. Pass its ``fileno()`` to child processes, by ``pass_fds`` of ``subprocess``
    /// say, and open it there by ``from_fd``. Takes the options of ``open_or_create``, but no mode.
    ///
    /// Raises NoSpaceError, OptionError, EngineNameError, NameTakenError, WeightError, IoError.
    #[staticmethod]
    #[pyo3(
        signature = (engines=None, **keywords),
        text_signature = "(engines=None, *, max_engines=None, max_frontends=None, threads=None, max_in_flight=None, max_tokens=None, max_waiting=None, max_waiting_of_class=None, share_tokens=None)"
    )]
    fn memfd(
        py: Python<'_>,
        engines: Option<Engines>,
        keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let options = options::without_path("Table.memfd", engines, keywords)?;
        open(py, options, Opened::default(), Options::memfd)
    }

    /// Opens the table behind a descriptor, which stays open and the caller's.
    ///
    /// Raises the errors of ``open``, and OSError if the number is no open descriptor.
    #[staticmethod]
    #[pyo3(signature = (fd, *, any_owner=Flag(false)), text_signature = "(fd, *, any_owner=False)")]
    fn from_fd(py: Python<'_>, fd: Descriptor, any_owner: Flag) -> PyResult<Self> {
        let opened = Opened::writable(any_owner);
        let fd = fd.duplicate()?;
        open(py, opened.options(), opened, |o| o.from_fd(fd))
    }

    /// Takes a place in the table for this process, after reaping dead frontends. Returns the Frontend.
    ///
    /// policy: how load is computed: in_flight, open, floor, tokens, round_robin or power_of_two.
    /// stale_after: the age in seconds beyond which the policy ignores published statistics; default 1.
    ///
    /// Raises PolicyError, FrontendsFullError, ReadOnlyError, IoError.
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

    /// Takes the right to publish statistics, if no living process has it. Returns the Publisher.
    ///
    /// Raises PublisherHeldError, ReadOnlyError, IoError.
    fn publisher(&self, py: Python<'_>) -> PyResult<Publisher> {
        let publisher = py.detach(|| self.0.publisher()).or_raise(py)?;
        Ok(Publisher::new(publisher, self.0.path()))
    }

    /// Takes the table's deployment lock, if no living process has it. Returns the Deployment.
    ///
    /// The parent of a deployment calls this before it changes anything. Frontends do not need the lock.
    ///
    /// Raises DeployedError, ReadOnlyError, IoError.
    fn deploy(&self, py: Python<'_>) -> PyResult<Deployment> {
        let deployment = py.detach(|| self.0.deploy()).or_raise(py)?;
        Ok(Deployment::new(deployment, self.1))
    }

    /// Brings the table to these options while its frontends go on: adds and removes engines, and changes their
    /// weights and caps and the table's own caps. Returns the Changes. Takes the options of ``open_or_create``.
    ///
    /// An engine whose name the table has already keeps its state and what is in flight on it. Without
    /// ``engines``, all engines stay as they are. A cap of the table that is not given is taken away, and
    /// so is the queue. The sizes and the mode cannot be changed.
    ///
    /// Processes that apply at the same time do so one after the other. If another process is the table's
    /// deployment, this raises DeployedError: only that process changes the table, by ``Deployment.apply``.
    ///
    /// Raises DeployedError, DiffersError, OptionError, EnginesFullError, EngineNameError, NameTakenError,
    /// WeightError, ReadOnlyError, BusyError, IoError.
    #[pyo3(
        signature = (engines=None, **keywords),
        text_signature = "($self, engines=None, *, max_engines=None, max_frontends=None, threads=None, max_in_flight=None, max_tokens=None, max_waiting=None, max_waiting_of_class=None, share_tokens=None, mode=None)"
    )]
    fn apply<'py>(
        &self,
        py: Python<'py>,
        engines: Option<Engines>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let options = options::at_path("Table.apply", engines, keywords)?;
        view::changes(py, &py.detach(|| self.0.apply(&options)).or_raise(py)?)
    }

    /// Returns what ``apply`` would change now, in its order. Takes the options of ``open_or_create``.
    ///
    /// The options are compared with what the table has now, also where an operator has changed it in place. If
    /// one of the differences cannot be changed (``Difference.can_be_changed``), ``apply`` raises DiffersError
    /// and changes nothing. ``apply`` refuses options that no table can have; this does not. This takes no
    /// lock, and works on a table of ``open_read_only``, too.
    #[pyo3(
        signature = (engines=None, **keywords),
        text_signature = "($self, engines=None, *, max_engines=None, max_frontends=None, threads=None, max_in_flight=None, max_tokens=None, max_waiting=None, max_waiting_of_class=None, share_tokens=None, mode=None)"
    )]
    fn differences<'py>(
        &self,
        py: Python<'py>,
        engines: Option<Engines>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let options = options::at_path("Table.differences", engines, keywords)?;
        view::differences(py, &py.detach(|| self.0.differences(&options)))
    }

    /// Returns what the table holds now, for people and metrics. No other process waits for it.
    fn view<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        view::view(py, &py.detach(|| self.0.view()))
    }

    /// Returns the sizes and the mode that the table was created with, which never change.
    fn dimensions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        view::dimensions(py, self.0.dimensions())
    }

    /// Reaps dead frontends: takes their requests off the counts, and frees their places. Returns a Reaped.
    ///
    /// Raises ReadOnlyError, IoError.
    fn reap<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let reaped = py.detach(|| self.0.reap()).or_raise(py)?;
        view::reaped(py, reaped)
    }

    /// Starts a thread that reaps every ``period`` seconds, and returns the Reaper that stops it.
    ///
    /// A period of less than a millisecond counts as one millisecond.
    ///
    /// Raises ReadOnlyError, IoError.
    fn reap_every(&self, py: Python<'_>, period: Seconds) -> PyResult<Reaper> {
        let period = period.duration("period")?;
        let reaper = py.detach(|| self.0.reap_every(period)).or_raise(py)?;
        Ok(Reaper::new(reaper, self.0.path()))
    }

    /// Adds an engine, given as an Engine or as a name. Returns its EngineId.
    ///
    /// Raises EngineNameError, WeightError, NameTakenError, EnginesFullError, ReadOnlyError, BusyError, IoError.
    fn add<'py>(&self, py: Python<'py>, engine: Engine) -> PyResult<Bound<'py, PyAny>> {
        view::id(py, py.detach(|| self.0.add(&engine.0)).or_raise(py)?)
    }

    /// Removes an engine, and returns how many requests are in flight on it. These stay counted until they finish.
    ///
    /// Raises NoSuchEngineError, ReadOnlyError, BusyError, IoError.
    fn remove(&self, py: Python<'_>, engine: Which) -> PyResult<u32> {
        py.detach(|| self.0.remove(engine)).or_raise(py)
    }

    /// Makes an engine drain: it takes no new request, and those in flight finish.
    ///
    /// Raises NoSuchEngineError, ReadOnlyError.
    fn drain(&self, py: Python<'_>, engine: Which) -> PyResult<()> {
        self.0.drain(engine).or_raise(py)
    }

    /// Marks an engine as down, since it does not answer: it takes no request.
    ///
    /// Raises NoSuchEngineError, ReadOnlyError.
    fn down(&self, py: Python<'_>, engine: Which) -> PyResult<()> {
        self.0.down(engine).or_raise(py)
    }

    /// Makes an engine take requests again. What is in flight on it still counts.
    ///
    /// Raises NoSuchEngineError, ReadOnlyError.
    fn up(&self, py: Python<'_>, engine: Which) -> PyResult<()> {
        self.0.up(engine).or_raise(py)
    }

    /// Marks an engine as down if it is active, and returns whether it was.
    ///
    /// For health checks: an engine that an operator drains goes on draining.
    ///
    /// Raises NoSuchEngineError, ReadOnlyError.
    fn down_if_active(&self, py: Python<'_>, engine: Which) -> PyResult<bool> {
        self.0.down_if_active(engine).or_raise(py)
    }

    /// Makes an engine take requests again if it is down, and returns whether it was.
    ///
    /// For health checks: an engine that an operator drains goes on draining.
    ///
    /// Raises NoSuchEngineError, ReadOnlyError.
    fn up_if_down(&self, py: Python<'_>, engine: Which) -> PyResult<bool> {
        self.0.up_if_down(engine).or_raise(py)
    }

    /// Changes an engine's weight.
    ///
    /// Raises WeightError, NoSuchEngineError, ReadOnlyError, BusyError, IoError.
    fn set_weight(&self, py: Python<'_>, engine: Which, weight: Weight) -> PyResult<()> {
        py.detach(|| self.0.set_weight(engine, weight.0))
            .or_raise(py)
    }

    /// Changes an engine's caps. None means no cap; with max_in_flight=0 the engine takes no request.
    ///
    /// A cap that is not given stays as it is. So two processes that change one cap each do not undo each
    /// other's change.
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
            (Cap::Is(requests), Cap::Stays) => self.0.set_max_in_flight(engine, requests),
            (Cap::Stays, Cap::Is(tokens)) => self.0.set_max_tokens(engine, tokens),
            (Cap::Is(requests), Cap::Is(tokens)) => self.0.set_caps(engine, requests, tokens),
        })
        .or_raise(py)
    }

    /// Changes the most requests that all engines together take. None means no cap.
    ///
    /// With 0 the table takes no request. The table's cap on tokens stays as it is. Requests in flight beyond
    /// the new cap go on. ``apply`` puts the configured cap back.
    ///
    /// Raises ReadOnlyError, BusyError, IoError.
    fn set_total_max_in_flight(&self, py: Python<'_>, cap: Option<Tokens>) -> PyResult<()> {
        let cap = cap.map(|Tokens(cap)| cap);
        py.detach(|| self.0.set_total_max_in_flight(cap))
            .or_raise(py)
    }

    /// Changes the most tokens that all engines together take. None means no cap.
    ///
    /// With 0 the table takes only requests without tokens. See ``set_total_max_in_flight``.
    ///
    /// Raises ReadOnlyError, BusyError, IoError.
    fn set_total_max_tokens(&self, py: Python<'_>, cap: Option<Tokens>) -> PyResult<()> {
        let cap = cap.map(|Tokens(cap)| cap);
        py.detach(|| self.0.set_total_max_tokens(cap)).or_raise(py)
    }

    /// Returns the EngineId of the engine of that name, or None if there is none.
    fn find<'py>(&self, py: Python<'py>, name: Name) -> PyResult<Option<Bound<'py, PyAny>>> {
        let found = self.0.find(&name.0);
        found.map(|found| view::id(py, found)).transpose()
    }

    /// Returns what lies at the table's path now: "here", this table; "gone", no file; "replaced", another
    /// file; "none", the table has no path.
    ///
    /// If it is "gone" or "replaced", a process that opens the path from now on counts in another table, and
    /// caps are exceeded: start this process anew. A Reaper's ``last_error`` says so as well.
    ///
    /// Raises IoError if this process may not read the directory any more.
    fn path_state(&self, py: Python<'_>) -> PyResult<&'static str> {
        Ok(py.detach(|| self.0.path_state()).or_raise(py)?.name())
    }

    /// Recounts all requests and checks every field of the file. Returns what it found: a Verification.
    ///
    /// It only reads, and no other process waits for it. It takes milliseconds for a table of the default size.
    ///
    /// Raises IoError.
    fn verify<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        view::verification(py, &py.detach(|| self.0.verify()).or_raise(py)?)
    }

    /// Returns the file word by word, with the meaning of each, for a bug report.
    ///
    /// Raises IoError.
    fn dump(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| self.0.dump()).or_raise(py)
    }

    /// The path by which the table was opened.
    #[getter]
    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns the descriptor of the table's file, which stays the table's.
    fn fileno(&self) -> i32 {
        self.0.as_fd().as_raw_fd()
    }

    fn __repr__(&self) -> String {
        format!("<headcount.Table {}>", self.0.path().display())
    }

    /// Pickles the path: another process opens the table there.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let state = py.detach(|| self.0.path_state()).or_raise(py)?;
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
