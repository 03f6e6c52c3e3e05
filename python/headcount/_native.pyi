"""The compiled half of ``headcount``."""

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from types import EllipsisType, TracebackType
from typing import Final, Literal, NoReturn, final

from headcount._engine import Engine, EngineId, EngineStats
from headcount._policy import PolicyName
from headcount._view import Changes, Difference, Dimensions, Reaped, Verification, View

__all__ = [
    "__version__",
    "MAX_ENGINES",
    "MAX_FRONTENDS",
    "MAX_IN_FLIGHT",
    "MAX_NAME_LEN",
    "WAITED_BOUNDS",
    "Deployment",
    "Frontend",
    "Permit",
    "Publisher",
    "Reaper",
    "Table",
    "_Acquire",
    "_Wakeups",
]

__version__: Final[str]
MAX_ENGINES: Final[int]
MAX_FRONTENDS: Final[int]
MAX_IN_FLIGHT: Final[int]
MAX_NAME_LEN: Final[int]
WAITED_BOUNDS: Final[tuple[float, ...]]

_Engines = int | Sequence[Engine | str]
_AnyEngine = int | EngineId

@final
class Table:
    """A table that processes of one host share: exact in-flight counts and the last statistics of each engine.

    ``open_or_create``, ``create``, ``open``, ``open_read_only``, ``memfd`` and ``from_fd`` return one. Put the
    file on a tmpfs such as /dev/shm. An open table takes no place in the file; a Frontend, a Publisher or a
    Deployment does.

    A method that takes an engine takes its number, which means the engine that has it at that moment, or its
    EngineId, which means that very engine.
    """

    @staticmethod
    def open_or_create(
        path: str | PathLike[str],
        engines: _Engines | None = None,
        *,
        max_engines: int | None = None,
        max_frontends: int | None = None,
        threads: int | None = None,
        max_in_flight: int | None = None,
        max_tokens: int | None = None,
        max_waiting: int | None = None,
        max_waiting_of_class: Mapping[int, int] | None = None,
        share_tokens: bool | None = None,
        mode: int | None = None,
        any_owner: bool = False,
    ) -> Table:
        """Opens the table at ``path``, or creates it if there is none.

        Any number of processes may do so at once: all get the same table. Opening also reaps dead frontends.

        An existing table must fit the options that are given: its engines by name, weight and caps, in any
        order; its own caps; and the sizes and the mode that it was created with. Engines and caps fit if the
        table has them now, or if it was last configured with them, by its creation or by ``apply``. So a worker
        can be started again after an operator has changed a cap in place, and the operator's cap stays. If an
        option does not fit, DiffersError names it, and nothing is changed; ``apply`` brings the table to these
        options.

        engines: a number of engines, named "0", "1" and so on, or a list of Engine or of names. For a new
        table, 0 or an empty list if engines are added later.
        max_engines: how many engines the table has room for, 1 to 4,096; default 64.
        max_frontends: how many processes can join, 1 to 4,095; default 64.
        threads: how many threads of each process have a lane of their own, so that they never wait for another
        thread; all further threads share one lane. 0 or more; default 3.
        max_in_flight, max_tokens: caps on all engines together; None, the default, for no cap. With
        max_in_flight=0 the table takes no request, and with max_tokens=0 only requests without tokens: others
        raise SaturatedError, whose ``passes`` is False.
        max_waiting: how many requests wait at most for a place, over all processes, 1 to 1,048,575; see
        ``Frontend.acquire``. None, the default, for a table without a queue.
        max_waiting_of_class: how many of them may be of a class, as in {3: 100}, for each class that has a bound of
        its own; 1 to 1,048,575.
        share_tokens: whether tenants share the tokens of requests, and not their number; default False.
        mode: permission bits of the file; default 0o600.
        any_owner: whether to open a table that belongs to another user.

        Raises ExistsError, NotFoundError, NotATableError, SymlinkError, OwnerError, ModeError, VersionError,
        ChecksumError, GeometryError, SizeError, DiffersError, NoSpaceError, OptionError, EngineNameError,
        NameTakenError, WeightError, IoError.
        """
    @staticmethod
    def create(
        path: str | PathLike[str],
        engines: _Engines | None = None,
        *,
        max_engines: int | None = None,
        max_frontends: int | None = None,
        threads: int | None = None,
        max_in_flight: int | None = None,
        max_tokens: int | None = None,
        max_waiting: int | None = None,
        max_waiting_of_class: Mapping[int, int] | None = None,
        share_tokens: bool | None = None,
        mode: int | None = None,
    ) -> Table:
        """Creates a table at ``path``, where no file may lie yet. Takes the options of ``open_or_create``.

        Raises ExistsError, NotFoundError, NoSpaceError, OptionError, EngineNameError, NameTakenError,
        WeightError, IoError.
        """
    @staticmethod
    def open(path: str | PathLike[str], *, any_owner: bool = False) -> Table:
        """Opens the table at ``path``, with the options that it has. Also reaps dead frontends.

        Raises NotFoundError, NotATableError, SymlinkError, OwnerError, ModeError, VersionError,
        ChecksumError, GeometryError, SizeError, IoError.
        """
    @staticmethod
    def open_read_only(path: str | PathLike[str], *, any_owner: bool = False) -> Table:
        """Opens the table at ``path`` for reading only: no call changes anything in it, and none reaps.

        Raises the errors of ``open``.
        """
    @staticmethod
    def memfd(
        engines: _Engines | None = None,
        *,
        max_engines: int | None = None,
        max_frontends: int | None = None,
        threads: int | None = None,
        max_in_flight: int | None = None,
        max_tokens: int | None = None,
        max_waiting: int | None = None,
        max_waiting_of_class: Mapping[int, int] | None = None,
        share_tokens: bool | None = None,
    ) -> Table:
        """Creates a table without a path. Pass its ``fileno()`` to child processes, by ``pass_fds`` of ``subprocess``
        say, and open it there by ``from_fd``. Takes the options of ``open_or_create``, but no mode.

        Raises NoSpaceError, OptionError, EngineNameError, NameTakenError, WeightError, IoError.
        """
    @staticmethod
    def from_fd(fd: int, *, any_owner: bool = False) -> Table:
        """Opens the table behind a descriptor, which stays open and the caller's.

        Raises the errors of ``open``, and OSError if the number is no open descriptor.
        """
    def join(self, policy: PolicyName = "in_flight", stale_after: float | None = None) -> Frontend:
        """Takes a place in the table for this process, after reaping dead frontends. Returns the Frontend.

        policy: how load is computed: in_flight, open, floor, tokens, round_robin or power_of_two.
        stale_after: the age in seconds beyond which the policy ignores published statistics; default 1.

        Raises PolicyError, FrontendsFullError, ReadOnlyError, IoError.
        """
    def publisher(self) -> Publisher:
        """Takes the right to publish statistics, if no living process has it. Returns the Publisher.

        Raises PublisherHeldError, ReadOnlyError, IoError.
        """
    def deploy(self) -> Deployment:
        """Takes the table's deployment lock, if no living process has it. Returns the Deployment.

        The parent of a deployment calls this before it changes anything. Frontends do not need the lock.

        Raises DeployedError, ReadOnlyError, IoError.
        """
    def apply(
        self,
        engines: _Engines | None = None,
        *,
        max_engines: int | None = None,
        max_frontends: int | None = None,
        threads: int | None = None,
        max_in_flight: int | None = None,
        max_tokens: int | None = None,
        max_waiting: int | None = None,
        max_waiting_of_class: Mapping[int, int] | None = None,
        share_tokens: bool | None = None,
        mode: int | None = None,
    ) -> Changes:
        """Brings the table to these options while its frontends go on: adds and removes engines, and changes their
        weights and caps and the table's own caps. Returns the Changes. Takes the options of ``open_or_create``.

        An engine whose name the table has already keeps its state and what is in flight on it. Without
        ``engines``, all engines stay as they are. A cap of the table that is not given is taken away, and
        so is the queue. The sizes and the mode cannot be changed.

        Processes that apply at the same time do so one after the other. If another process is the table's
        deployment, this raises DeployedError: only that process changes the table, by ``Deployment.apply``.

        Raises DeployedError, DiffersError, OptionError, EnginesFullError, EngineNameError, NameTakenError,
        WeightError, ReadOnlyError, BusyError, IoError.
        """
    def differences(
        self,
        engines: _Engines | None = None,
        *,
        max_engines: int | None = None,
        max_frontends: int | None = None,
        threads: int | None = None,
        max_in_flight: int | None = None,
        max_tokens: int | None = None,
        max_waiting: int | None = None,
        max_waiting_of_class: Mapping[int, int] | None = None,
        share_tokens: bool | None = None,
        mode: int | None = None,
    ) -> list[Difference]:
        """Returns what ``apply`` would change now, in its order. Takes the options of ``open_or_create``.

        The options are compared with what the table has now, also where an operator has changed it in place. If
        one of the differences cannot be changed (``Difference.can_be_changed``), ``apply`` raises DiffersError
        and changes nothing. ``apply`` refuses options that no table can have; this does not. This takes no
        lock, and works on a table of ``open_read_only``, too.
        """
    def view(self) -> View:
        """Returns what the table holds now, for people and metrics. No other process waits for it."""
    def dimensions(self) -> Dimensions:
        """Returns the sizes and the mode that the table was created with, which never change."""
    def reap(self) -> Reaped:
        """Reaps dead frontends: takes their requests off the counts, and frees their places. Returns a Reaped.

        Raises ReadOnlyError, IoError.
        """
    def reap_every(self, period: float) -> Reaper:
        """Starts a thread that reaps every ``period`` seconds, and returns the Reaper that stops it.

        A period of less than a millisecond counts as one millisecond.

        Raises ReadOnlyError, IoError.
        """
    def add(self, engine: Engine | str) -> EngineId:
        """Adds an engine, given as an Engine or as a name. Returns its EngineId.

        Raises EngineNameError, WeightError, NameTakenError, EnginesFullError, ReadOnlyError, BusyError, IoError.
        """
    def remove(self, engine: _AnyEngine) -> int:
        """Removes an engine, and returns how many requests are in flight on it. These stay counted until they finish.

        Raises NoSuchEngineError, ReadOnlyError, BusyError, IoError.
        """
    def drain(self, engine: _AnyEngine) -> None:
        """Makes an engine drain: it takes no new request, and those in flight finish.

        Raises NoSuchEngineError, ReadOnlyError.
        """
    def down(self, engine: _AnyEngine) -> None:
        """Marks an engine as down, since it does not answer: it takes no request.

        Raises NoSuchEngineError, ReadOnlyError.
        """
    def up(self, engine: _AnyEngine) -> None:
        """Makes an engine take requests again. What is in flight on it still counts.

        Raises NoSuchEngineError, ReadOnlyError.
        """
    def down_if_active(self, engine: _AnyEngine) -> bool:
        """Marks an engine as down if it is active, and returns whether it was.

        For health checks: an engine that an operator drains goes on draining.

        Raises NoSuchEngineError, ReadOnlyError.
        """
    def up_if_down(self, engine: _AnyEngine) -> bool:
        """Makes an engine take requests again if it is down, and returns whether it was.

        For health checks: an engine that an operator drains goes on draining.

        Raises NoSuchEngineError, ReadOnlyError.
        """
    def set_weight(self, engine: _AnyEngine, weight: float) -> None:
        """Changes an engine's weight.

        Raises WeightError, NoSuchEngineError, ReadOnlyError, BusyError, IoError.
        """
    def set_caps(
        self,
        engine: _AnyEngine,
        max_in_flight: int | None | EllipsisType = ...,
        max_tokens: int | None | EllipsisType = ...,
    ) -> None:
        """Changes an engine's caps. None means no cap; with max_in_flight=0 the engine takes no request.

        A cap that is not given stays as it is. So two processes that change one cap each do not undo each
        other's change.

        Raises NoSuchEngineError, ReadOnlyError, BusyError, IoError.
        """
    def set_total_max_in_flight(self, cap: int | None) -> None:
        """Changes the most requests that all engines together take. None means no cap.

        With 0 the table takes no request. The table's cap on tokens stays as it is. Requests in flight beyond
        the new cap go on. ``apply`` puts the configured cap back.

        Raises ReadOnlyError, BusyError, IoError.
        """
    def set_total_max_tokens(self, cap: int | None) -> None:
        """Changes the most tokens that all engines together take. None means no cap.

        With 0 the table takes only requests without tokens. See ``set_total_max_in_flight``.

        Raises ReadOnlyError, BusyError, IoError.
        """
    def find(self, name: str) -> EngineId | None:
        """Returns the EngineId of the engine of that name, or None if there is none."""
    def path_state(self) -> Literal["here", "gone", "replaced", "none"]:
        """Returns what lies at the table's path now: "here", this table; "gone", no file; "replaced", another
        file; "none", the table has no path.

        If it is "gone" or "replaced", a process that opens the path from now on counts in another table, and
        caps are exceeded: start this process anew. A Reaper's ``last_error`` says so as well.

        Raises IoError if this process may not read the directory any more.
        """
    def verify(self) -> Verification:
        """Recounts all requests and checks every field of the file. Returns what it found: a Verification.

        It only reads, and no other process waits for it. It takes milliseconds for a table of the default size.

        Raises IoError.
        """
    def dump(self) -> str:
        """Returns the file word by word, with the meaning of each, for a bug report.

        Raises IoError.
        """
    @property
    def path(self) -> Path:
        """The path by which the table was opened."""
    def fileno(self) -> int:
        """Returns the descriptor of the table's file, which stays the table's."""
    def __reduce__(self) -> tuple[object, tuple[Path, bool, bool]]: ...

@final
class Deployment:
    """A table's deployment lock, which one process at a time has. From ``Table.deploy``.

    The process gives it back by ``close()``, at the end of a ``with`` block, when this object is gone, or by its
    death.
    """

    @property
    def table(self) -> Table:
        """The table of the deployment. Raises ValueError after ``close``."""
    def apply(
        self,
        engines: _Engines | None = None,
        *,
        max_engines: int | None = None,
        max_frontends: int | None = None,
        threads: int | None = None,
        max_in_flight: int | None = None,
        max_tokens: int | None = None,
        max_waiting: int | None = None,
        max_waiting_of_class: Mapping[int, int] | None = None,
        share_tokens: bool | None = None,
        mode: int | None = None,
    ) -> Changes:
        """Brings the table to these options, as ``Table.apply`` does for a process that is no deployment.

        Raises DiffersError, OptionError, EnginesFullError, EngineNameError, NameTakenError, WeightError,
        BusyError, IoError, ForkedError, and ValueError after ``close``.
        """
    def close(self) -> None:
        """Gives the lock back. A second call changes nothing."""
    def __enter__(self) -> Deployment: ...
    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        value: BaseException | None = None,
        traceback: TracebackType | None = None,
        /,
    ) -> None: ...
    async def __aenter__(self) -> Deployment: ...
    async def __aexit__(
        self,
        kind: type[BaseException] | None = None,
        value: BaseException | None = None,
        traceback: TracebackType | None = None,
        /,
    ) -> None: ...
    def __reduce__(self) -> NoReturn: ...

@final
class Frontend:
    """This process's place in a table, with the policy by which it routes. From ``Table.join``.

    Any thread and any asyncio task may use it: no call but ``acquire`` blocks. It leaves the table by ``close()``, at the end
    of a ``with`` block, or when this object is gone. Permits that are still counted then keep the place until
    the last of them is released. A process that dies without leaving stays in the table as a dead frontend
    until the next reap. In a forked child, calls raise ``ForkedError``; join there anew.
    """

    def route(
        self,
        tokens: int = 0,
        pin: _AnyEngine | None = None,
        exclude: Iterable[_AnyEngine] | None = (),
        prefer: tuple[_AnyEngine, float] | None = None,
    ) -> Permit:
        """Places a request on the least loaded engine and counts it there, in one atomic step. Returns its permit.

        tokens: how many tokens the request costs, counted beside it until it finishes; 0 to 2**32 - 1.
        pin: the only engine that will do. The request is counted there like any other.
        exclude: engines that will not do; those that have just failed, say.
        prefer: (engine, slack): that engine (a warm prefix cache, say), unless its load is more than slack above
        that of the least loaded engine.

        Each engine is given by its number, which means the engine that has it now, or by its EngineId, which
        means that very engine. An excluded or preferred engine that is gone is no error, since the request can
        go elsewhere.

        Raises SaturatedError, UnavailableError, NoSuchEngineError, ForkedError, and ValueError after ``close``.
        Nothing is counted then.
        """
    def route_many(
        self,
        count: int,
        tokens: int = 0,
        pin: _AnyEngine | None = None,
        exclude: Iterable[_AnyEngine] | None = (),
        prefer: tuple[_AnyEngine, float] | None = None,
    ) -> list[Permit]:
        """Places ``count`` requests as that many calls of ``route`` would, or none. Returns their permits.

        Raises the errors of ``route``.
        """
    def acquire(
        self,
        *,
        timeout: float | None = None,
        tokens: int = 0,
        class_: int = 0,
        tenant: str | None = None,
        share: int = 1,
        pin: _AnyEngine | None = None,
        exclude: Iterable[_AnyEngine] | None = (),
        prefer: tuple[_AnyEngine, float] | None = None,
    ) -> Permit:
        """Places a request as ``route`` does, and if there is no place for it, waits for one. Returns its permit.

        All processes of the table have one queue: see ``max_waiting`` of ``Table.open_or_create``. Of the requests that
        may use a place, that of the smallest class gets it, and within a class the one that began to wait first, or
        that of the tenant whose turn it is. While a request waits, a later one gets no place that it could take.

        Other threads run meanwhile. A signal handler of Python's that raises ends the wait, at most 50 ms later in the
        main thread: so does Ctrl-C. Under asyncio, use ``acquire_async``.

        timeout: for how many seconds it waits; 0 or more. With 0 it tries once. None, the default: for ever.
        tokens, pin, exclude, prefer: as in ``route``.
        class_: 0, the default, is served first, to 3. Later classes wait for as long as earlier ones come.
        tenant: the customer or the API key that it is for, of at most ``MAX_NAME_LEN`` bytes. While requests of one class
        wait, tenants are served in proportion to their shares, whichever sends more. None: one more tenant.
        share: the share of its tenant, 1 or more.

        Raises QueueFullError, WaitedTooLongError, NoQueueError, RequestError, and the errors of ``route``; but
        SaturatedError only if waiting cannot help. Nothing is counted then.
        """
    async def acquire_async(
        self,
        *,
        timeout: float | None = None,
        tokens: int = 0,
        class_: int = 0,
        tenant: str | None = None,
        share: int = 1,
        pin: _AnyEngine | None = None,
        exclude: Iterable[_AnyEngine] | None = (),
        prefer: tuple[_AnyEngine, float] | None = None,
    ) -> Permit:
        """Places a request as ``acquire`` does, while other tasks of the event loop run: ``await`` it. Returns its permit.

        Works on asyncio's loops and on uvloop's, from any number of tasks: one thread of the process waits for all tasks
        of a frontend. The request begins to wait when it is awaited, and the timeout runs from then.

        A task that is cancelled while it waits (``Task.cancel``, ``asyncio.timeout``, ``asyncio.wait_for``) leaves the queue
        at once. A place that it had got by then goes to the next request.

        Takes the arguments of ``acquire``. Raises its errors, and NoThreadError.
        """
    def with_policy(self, policy: PolicyName, stale_after: float | None = None) -> Frontend:
        """Returns a frontend with the same place that routes by another policy; see ``Table.join``. The place
        stays taken until both were closed.
        """
    @property
    def table(self) -> Table:
        """The table of this frontend. Raises ValueError after ``close``."""
    @property
    def slot(self) -> int:
        """The number of its place among the table's places for frontends. Raises ValueError after ``close``."""
    def close(self) -> None:
        """Leaves the table. A second call changes nothing.

        Requests in flight stay counted until their permits are released; the last of these gives the place
        back. In a forked child the place is the parent's, and stays.
        """
    def __enter__(self) -> Frontend: ...
    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        value: BaseException | None = None,
        traceback: TracebackType | None = None,
        /,
    ) -> None: ...
    async def __aenter__(self) -> Frontend: ...
    async def __aexit__(
        self,
        kind: type[BaseException] | None = None,
        value: BaseException | None = None,
        traceback: TracebackType | None = None,
        /,
    ) -> None: ...
    def __reduce__(self) -> NoReturn: ...

@final
class Permit:
    """One admitted request, counted until its permit is released.

    ``release()`` or the end of a ``with`` block finishes the request; if neither is reached, the garbage
    collector does. It is finished once, however often the permit is released. Any thread may release it. In a
    forked child the permit is the parent's, and a release there changes nothing.
    """

    @property
    def engine(self) -> int:
        """The number of the engine that the request is to be sent to: an index into lists of your own."""
    @property
    def engine_id(self) -> EngineId:
        """The EngineId of that engine. It is equal to the number, and stays that engine's after the release."""
    @property
    def engine_name(self) -> str:
        """The name of that engine. Raises ValueError after the release: the number may be another engine's then."""
    @property
    def tokens(self) -> int:
        """The tokens that are counted with the request."""
    def set_tokens(self, tokens: int) -> None:
        """Changes the tokens that are counted with the request, in one atomic step: its output fills the KV cache, say.

        tokens: the new number, 0 to 2**32 - 1.

        Fewer tokens are always taken. If a cap leaves no room for more, it raises SaturatedError at once and the
        permit keeps its former number; the request goes on, and holds more than it counts. The state of the engine
        does not matter.

        Raises SaturatedError, ForkedError, and ValueError after the release.
        """
    @property
    def released(self) -> bool:
        """Whether the request was finished."""
    def release(self) -> None:
        """Finishes the request. A second call changes nothing."""
    def __enter__(self) -> Permit: ...
    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        value: BaseException | None = None,
        traceback: TracebackType | None = None,
        /,
    ) -> None: ...
    async def __aenter__(self) -> Permit: ...
    async def __aexit__(
        self,
        kind: type[BaseException] | None = None,
        value: BaseException | None = None,
        traceback: TracebackType | None = None,
        /,
    ) -> None: ...
    def __reduce__(self) -> NoReturn: ...

@final
class Publisher:
    """The right to publish statistics to a table, which one process at a time has. From ``Table.publisher``.

    The process gives it back by ``close()``, at the end of a ``with`` block, when this object is gone, or by its
    death.
    """

    def publish(self, stats: Sequence[EngineStats], words: tuple[int, int] = (0, 0)) -> None:
        """Publishes the statistics of the first engines, in the order of their numbers.

        Readers see the whole publication or the one before it, and never wait. ``words`` are two numbers of
        your own, 0 to 2**64 - 1, that are published with the statistics.

        Raises TooManyStatsError, KvUsageError, ForkedError, and ValueError after ``close``. Nothing is
        published then.
        """
    def close(self) -> None:
        """Gives the right to publish back. A second call changes nothing."""
    def __enter__(self) -> Publisher: ...
    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        value: BaseException | None = None,
        traceback: TracebackType | None = None,
        /,
    ) -> None: ...
    async def __aenter__(self) -> Publisher: ...
    async def __aexit__(
        self,
        kind: type[BaseException] | None = None,
        value: BaseException | None = None,
        traceback: TracebackType | None = None,
        /,
    ) -> None: ...
    def __reduce__(self) -> NoReturn: ...

@final
class Reaper:
    """A thread that reaps dead frontends at intervals. From ``Table.reap_every``.

    It ends by ``stop()``, at the end of a ``with`` block, or when this object is gone.
    """

    @property
    def last_error(self) -> str | None:
        """The error of the last reap, or None; the thread tries again at the next interval. A table that does not
        lie at its path any more is an error here, too: see ``Table.path_state``.
        """
    def stop(self) -> None:
        """Ends the thread. A second call changes nothing."""
    def __enter__(self) -> Reaper: ...
    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        value: BaseException | None = None,
        traceback: TracebackType | None = None,
        /,
    ) -> None: ...
    async def __aenter__(self) -> Reaper: ...
    async def __aexit__(
        self,
        kind: type[BaseException] | None = None,
        value: BaseException | None = None,
        traceback: TracebackType | None = None,
        /,
    ) -> None: ...
    def __reduce__(self) -> NoReturn: ...

@final
class _Acquire:
    """A request of a task that waits for a place."""

    def poll(self, wakeups: _Wakeups, number: int) -> Permit | None:
        """Returns the permit, or None if the request has no place yet: ``wakeups`` tells this number when to call again."""
    def close(self) -> None:
        """Leaves the queue. A place that the request has got meanwhile goes to the next one."""

@final
class _Wakeups:
    """Tells an event loop which of its tasks are to be polled."""

    def __new__(cls) -> _Wakeups: ...
    def fileno(self) -> int:
        """Returns the descriptor that is readable when a task is to be polled."""
    def take(self) -> list[int]:
        """Returns the numbers of the tasks that are to be polled since the last call."""
