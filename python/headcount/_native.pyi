"""The compiled half of ``headcount``."""

from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from types import EllipsisType, TracebackType
from typing import Final, Literal, NoReturn, final

from headcount._engine import Engine, EngineId, EngineStats
from headcount._policy import PolicyName
from headcount._view import Changes, Difference, Reaped, Verification, View

__all__ = [
    "__version__",
    "MAX_ENGINES",
    "MAX_FRONTENDS",
    "MAX_IN_FLIGHT",
    "MAX_NAME_LEN",
    "Deployment",
    "Frontend",
    "Permit",
    "Publisher",
    "Reaper",
    "Table",
]

__version__: Final[str]
MAX_ENGINES: Final[int]
MAX_FRONTENDS: Final[int]
MAX_IN_FLIGHT: Final[int]
MAX_NAME_LEN: Final[int]

_Engines = int | Sequence[Engine | str]
_Which = int | EngineId

@final
class Table:
    """A table that processes of one host share: exact in-flight counts and the last statistics of each
    engine.

    Made by ``open_or_create``, ``create``, ``open``, ``open_read_only``, ``memfd`` or ``from_fd``. Put the
    file on a tmpfs such as /dev/shm. A handle holds nothing in the table; only a Frontend, a Permit or
    a Publisher does.
    """

    @staticmethod
    def open_or_create(
        path: str | PathLike[str],
        engines: _Engines | None = None,
        *,
        max_engines: int | None = None,
        max_frontends: int | None = None,
        lanes: int | None = None,
        max_in_flight: int | None = None,
        max_tokens: int | None = None,
        mode: int | None = None,
        any_owner: bool = False,
    ) -> Table:
        """Opens the table at ``path``, or creates it if there is none.

        Any number of processes may do so at once: they end in one table. Opening returns what dead
        frontends held. Options that are given must fit an existing table: its engines by name, weight and
        caps, in any order, its own caps, and the sizes and the mode that it was created with. Engines and
        caps fit if they are those that the table has now, or those that it was last configured with, by its
        creation or by ``apply``: a worker is started again after an operator has changed a cap in place, and
        the operator's cap stands. What does not fit is named by DiffersError, and nothing is changed; ``apply``
        brings the table to these options.

        engines: how many (named "0", "1" and so on), or a list of Engine or of names; for a new table, 0 or
        an empty list if they come later.
        max_engines: room for so many, 1 to 4,096; default 64.
        max_frontends: how many processes can join, 1 to 4,095; default 64.
        lanes: how many threads of a process can route at the same instant without waiting; default 4.
        max_in_flight, max_tokens: caps on all engines together; None, the default, for no cap. max_in_flight=0 takes
        nothing, and max_tokens=0 only requests without tokens: others raise SaturatedError, whose ``passes`` is False.
        mode: permission bits of the file; default 0o600.
        any_owner: open even a table that belongs to another user.

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
        lanes: int | None = None,
        max_in_flight: int | None = None,
        max_tokens: int | None = None,
        mode: int | None = None,
    ) -> Table:
        """Creates a table at ``path``, on which nothing may lie yet. Options as for ``open_or_create``.

        Raises ExistsError, NotFoundError, NoSpaceError, OptionError, EngineNameError, NameTakenError,
        WeightError, IoError.
        """
    @staticmethod
    def open(path: str | PathLike[str], *, any_owner: bool = False) -> Table:
        """Opens the table at ``path``, whatever it was created with.

        Raises NotFoundError, NotATableError, SymlinkError, OwnerError, ModeError, VersionError,
        ChecksumError, GeometryError, SizeError, IoError.
        """
    @staticmethod
    def open_read_only(path: str | PathLike[str], *, any_owner: bool = False) -> Table:
        """Opens the table at ``path`` to look at it only: nothing in it is changed, not even by a reap.

        Raises as ``open``.
        """
    @staticmethod
    def memfd(
        engines: _Engines | None = None,
        *,
        max_engines: int | None = None,
        max_frontends: int | None = None,
        lanes: int | None = None,
        max_in_flight: int | None = None,
        max_tokens: int | None = None,
    ) -> Table:
        """Creates a table without a path. Hand its ``fileno()`` to children, by ``pass_fds`` of
        ``subprocess`` say, and let them use ``from_fd``. Options as for ``open_or_create``.

        Raises NoSpaceError, OptionError, EngineNameError, NameTakenError, WeightError, IoError.
        """
    @staticmethod
    def from_fd(fd: int, *, any_owner: bool = False) -> Table:
        """Opens the table behind a descriptor. The descriptor stays the caller's.

        Raises as ``open``, and OSError if the number is no open descriptor.
        """
    def join(self, policy: PolicyName = "in_flight", stale_after: float | None = None) -> Frontend:
        """Takes a place in the table for this process, after returning what dead frontends held.

        policy: how load is computed: in_flight, open, floor, tokens, round_robin or power_of_two.
        stale_after: the age in seconds from which on a snapshot counts as absent; default 1.

        Raises FrontendsFullError, ReadOnlyError, IoError.
        """
    def publisher(self) -> Publisher:
        """Becomes the publisher, if no living process is.

        Raises PublisherHeldError, ReadOnlyError, IoError.
        """
    def deploy(self) -> Deployment:
        """Takes the table's deployment lock, if no living process has it. For the parent of a deployment, before it
        changes anything; frontends do not need it.

        Raises DeployedError, ReadOnlyError, IoError.
        """
    def apply(
        self,
        engines: _Engines | None = None,
        *,
        max_engines: int | None = None,
        max_frontends: int | None = None,
        lanes: int | None = None,
        max_in_flight: int | None = None,
        max_tokens: int | None = None,
        mode: int | None = None,
    ) -> Changes:
        """Brings the table to these options while its frontends go on: adds and removes engines, and changes their
        weights and caps and the table's own caps. Returns what was changed: Changes. Options as for
        ``open_or_create``.

        An engine that is there already, by its name, keeps its state and what is in flight on it. Without
        ``engines`` all stay as they are; a cap of the table that is not given is taken away. What a table was
        created with cannot be changed.

        Processes that apply at the same time do so one after the other. A table that a deployment serves is left to it
        (DeployedError): that process calls ``Deployment.apply``.

        Raises DeployedError, DiffersError, OptionError, EnginesFullError, EngineNameError, NameTakenError,
        WeightError, ReadOnlyError, BusyError, IoError.
        """
    def differences(
        self,
        engines: _Engines | None = None,
        *,
        max_engines: int | None = None,
        max_frontends: int | None = None,
        lanes: int | None = None,
        max_in_flight: int | None = None,
        max_tokens: int | None = None,
        mode: int | None = None,
    ) -> list[Difference]:
        """What ``apply`` would change now, in its order: a list of Difference, empty if nothing. Options as for
        ``open_or_create``; an operator's change in place counts, whatever the table was last configured with.

        ``apply`` raises DiffersError, and changes nothing, if one of them cannot be changed
        (``Difference.can_be_changed``). Options that no table can have are an error there, and not here.
        A look, without a lock, which a table of ``open_read_only`` allows as well.
        """
    def snapshot(self) -> View:
        """A look at the whole table, for people and metrics: a View. Nothing waits for it."""
    def reap(self) -> Reaped:
        """Returns to the engines what dead frontends held. Tells how much that was: a Reaped.

        Raises ReadOnlyError, IoError.
        """
    def reap_every(self, period: float) -> Reaper:
        """Reaps every ``period`` seconds from a thread of this process, until the Reaper is stopped. Less than
        a millisecond counts as one.

        Raises ReadOnlyError, IoError.
        """
    def add(self, engine: Engine | str) -> EngineId:
        """Adds an engine, an Engine or a name, and returns its EngineId.

        The calls that change an engine take its number, which means the engine that has it then, or its
        EngineId, which means that very engine: if it is gone, another that has its number is left alone.

        Raises EngineNameError, WeightError, NameTakenError, EnginesFullError, ReadOnlyError, BusyError, IoError.
        """
    def remove(self, engine: _Which) -> int:
        """Takes an engine out. What is in flight on it finishes as it would have; returns how many.

        Raises NoSuchEngineError, ReadOnlyError, BusyError, IoError.
        """
    def drain(self, engine: _Which) -> None:
        """The engine takes nothing new; what is in flight finishes.

        Raises NoSuchEngineError, ReadOnlyError.
        """
    def down(self, engine: _Which) -> None:
        """The engine does not answer: it takes nothing.

        Raises NoSuchEngineError, ReadOnlyError.
        """
    def up(self, engine: _Which) -> None:
        """The engine takes requests again, starting from what is in flight on it.

        Raises NoSuchEngineError, ReadOnlyError.
        """
    def down_if_active(self, engine: _Which) -> bool:
        """As ``down``, if the engine is active: one that is draining or down stays as it is. For health checks.
        Tells whether it was.

        Raises NoSuchEngineError, ReadOnlyError.
        """
    def up_if_down(self, engine: _Which) -> bool:
        """As ``up``, if the engine is down: one that an operator drains goes on draining. For health checks.
        Tells whether it was.

        Raises NoSuchEngineError, ReadOnlyError.
        """
    def set_weight(self, engine: _Which, weight: float) -> None:
        """Changes an engine's weight.

        Raises WeightError, NoSuchEngineError, ReadOnlyError, BusyError, IoError.
        """
    def set_caps(
        self,
        engine: _Which,
        max_in_flight: int | None | EllipsisType = ...,
        max_tokens: int | None | EllipsisType = ...,
    ) -> None:
        """Changes an engine's caps; None for no cap, while max_in_flight=0 takes nothing. A cap that is not given stays as
        it is: of two processes that change one each, both have their way.

        Raises NoSuchEngineError, ReadOnlyError, BusyError, IoError.
        """
    def set_total_max_in_flight(self, cap: int | None) -> None:
        """Changes the most requests that all engines together take; None for no cap, while 0 takes nothing.
        The table's cap on tokens stays as it is. A cap below what is in flight takes nothing away. ``apply`` puts the
        configured cap back.

        Raises ReadOnlyError, BusyError, IoError.
        """
    def set_total_max_tokens(self, cap: int | None) -> None:
        """Changes the most tokens that all engines together take; None for no cap, while one of 0 takes requests without
        tokens only. See ``set_total_max_in_flight``.

        Raises ReadOnlyError, BusyError, IoError.
        """
    def find(self, name: str) -> EngineId | None:
        """The EngineId of the engine of that name, or None."""
    def path_state(self) -> Literal["here", "gone", "replaced", "none"]:
        """What lies at the path of this table now: "here", this table; "gone", nothing; "replaced", another
        file; "none", the table has no path.

        When it is "gone" or "replaced", processes that open the path from now on count in another table, and
        caps are exceeded: start the process anew. A Reaper's ``last_error`` says so as well.

        Raises IoError, if this process may not look there any more.
        """
    def verify(self) -> Verification:
        """Recounts everything, and checks the file and all that it says: a Verification. Reads only, and
        nothing waits for it; milliseconds for a table of the default size.

        Raises IoError.
        """
    def dump(self) -> str:
        """The file word by word, each with what it means: for a bug report.

        Raises IoError.
        """
    @property
    def path(self) -> Path:
        """Where the table lies, as it was opened."""
    def fileno(self) -> int:
        """The descriptor of the table's file, which stays the table's."""
    def __reduce__(self) -> tuple[object, tuple[Path, bool, bool]]: ...

@final
class Deployment:
    """A table's deployment lock, which one process at a time has. From ``Table.deploy``.

    It goes back by ``close()``, at the end of a ``with`` block, when this object is gone, or when the process
    dies.
    """

    @property
    def table(self) -> Table:
        """The table that it serves. Not after ``close``."""
    def apply(
        self,
        engines: _Engines | None = None,
        *,
        max_engines: int | None = None,
        max_frontends: int | None = None,
        lanes: int | None = None,
        max_in_flight: int | None = None,
        max_tokens: int | None = None,
        mode: int | None = None,
    ) -> Changes:
        """As ``Table.apply``, by the deployment itself.

        Raises DiffersError, OptionError, EnginesFullError, EngineNameError, NameTakenError, WeightError,
        BusyError, IoError, and ValueError after ``close``.
        """
    def close(self) -> None:
        """Gives the lock back. A second time changes nothing."""
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

    May be used from any thread and from asyncio: nothing blocks. It leaves the table by ``close()``, at the
    end of a ``with`` block, or when this object is gone: the place is given back then, or when its last permit
    ends, if that comes later. A process that dies without it, whatever it dies of, is "dead" in the table until
    the next reap. In a forked child its calls raise ``ForkedError``; join there anew.
    """

    def route(
        self,
        tokens: int = 0,
        pin: _Which | None = None,
        exclude: Iterable[_Which] | None = (),
        prefer: tuple[_Which, float] | None = None,
    ) -> Permit:
        """Places a request on the least loaded engine and counts it there, in one atomic step.

        tokens: what it costs, counted beside it until it finishes; 0 to 2**32 - 1.
        pin: only this engine will do, by its number or its EngineId. Counted like any other.
        exclude: any engines but these; those that have just failed, say.
        prefer: (engine, slack): that engine (a warm prefix cache, say), unless its load is more than
        slack above that of the least loaded.

        An engine that is excluded or preferred may be gone by then: that is no error, since the request can go
        elsewhere. These two mean the engine that has the number, also if they are given an EngineId.

        Raises SaturatedError, UnavailableError, NoSuchEngineError, ForkedError, and ValueError after ``close``.
        Nothing is counted then.
        """
    def route_many(
        self,
        count: int,
        tokens: int = 0,
        pin: _Which | None = None,
        exclude: Iterable[_Which] | None = (),
        prefer: tuple[_Which, float] | None = None,
    ) -> list[Permit]:
        """Places ``count`` requests as that many calls of ``route`` would, or none. Returns their permits.

        Raises as ``route``.
        """
    def with_policy(self, policy: PolicyName, stale_after: float | None = None) -> Frontend:
        """The same place, routing by another policy. See ``Table.join``. It stays taken until each of these
        frontends was closed.
        """
    @property
    def table(self) -> Table:
        """The table that this is a place in. Not after ``close``."""
    @property
    def slot(self) -> int:
        """Which of the table's places for frontends this is. Not after ``close``."""
    def close(self) -> None:
        """Leaves the table. A second time changes nothing.

        Requests that are in flight stay counted until their permits are released; the last of these gives the place
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
    """One admitted request, counted until it is released.

    ``release()`` or the end of a ``with`` block finishes it; if neither is reached, the garbage
    collector does. Only the first time counts. May be released from any thread. In a forked child it
    is the parent's, and releasing it there changes nothing.
    """

    @property
    def engine(self) -> int:
        """The number of the engine that the request is to be sent to."""
    @property
    def engine_name(self) -> str:
        """The name of that engine. Not after the release: the number may be another engine's then."""
    @property
    def tokens(self) -> int:
        """The tokens that are counted with the request."""
    @property
    def released(self) -> bool:
        """Whether the request was finished."""
    def release(self) -> None:
        """Finishes the request. A second time changes nothing."""
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
    """The right to publish statistics to a table; one process at a time has it. From ``Table.publisher``.

    It goes back by ``close()``, at the end of a ``with`` block, when this object is gone, or when the
    process dies.
    """

    def publish(self, stats: Sequence[EngineStats], words: tuple[int, int] = (0, 0)) -> None:
        """Publishes the statistics of the first engines, in the order of their numbers.

        Readers see all of it or nothing, and do not wait. ``words`` are two numbers of one's own, 0 to
        2**64 - 1, that are seen with the statistics or not at all.

        Raises TooManyStatsError, KvUsageError, ForkedError, and ValueError after ``close``. Nothing is published then.
        """
    def close(self) -> None:
        """Gives the right to publish back. A second time changes nothing."""
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
    """A thread that returns what dead frontends held, at intervals. From ``Table.reap_every``.

    It ends by ``stop()``, at the end of a ``with`` block, or when this object is gone.
    """

    @property
    def last_error(self) -> str | None:
        """What went wrong with the last reap, if anything did; it is tried again at the next interval. Or that
        the table does not lie at its path any more; see ``Table.path_state``.
        """
    def stop(self) -> None:
        """Ends the thread. A second time changes nothing."""
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
