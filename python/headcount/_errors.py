"""The errors of this package: a class for each kind, all of them under ``Error``.

The class for the Rust library's ``Error::X`` or ``AcquireError::X`` is ``XError``. Each message says what was found,
what was expected, and what to do about it. A call that raises changes nothing, and the table works on as before.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from headcount._view import Difference


class Error(Exception):
    """The base of all errors of this package. Wrong arguments raise Python's own TypeError and ValueError."""


class _SystemError(Error, OSError):
    # Attributes of the instance, not arguments of ``OSError``: so ``str`` gives the message, and pickle keeps them.
    errno: int | None = None
    strerror: str | None = None
    filename: str | None = None
    path: Path


# -- Routing -----------------------------------------------------------------------------------------


class SaturatedError(Error):
    """Every engine that could take the request is at its cap, or the table is at its own.

    If ``passes`` is True, answer 503 with a Retry-After, or try again when a permit of yours was released. If it is
    False, answer 400 or 413: to try again never helps.
    """

    cap: Literal["engine_requests", "engine_tokens", "table_requests", "table_tokens"]
    """The cap that refused the request."""
    passes: bool
    """Whether waiting can help. False: the request is larger than that cap allows even when nothing is in flight."""


class UnavailableError(Error):
    """No engine can take the request: each is down, draining, removed, or excluded by the request.

    Answer 503 with a Retry-After, or try again later.
    """

    engines: int
    """How many engines were looked at: all of the table's, or the one that was pinned."""
    down: int
    """How many of them are down."""
    draining: int
    """How many of them are draining."""
    excluded: int
    """How many of them are active, but excluded by the request."""


class NoSuchEngineError(Error):
    """The table has no engine of that number, or the engine of that id was removed."""

    engine: int
    """The number that was given, or that the engine of that id had."""
    removed: bool
    """Whether the engine was given by its id, so that it was there once. Another engine may have its number now, and
    was left alone."""


class ForkedError(Error):
    """The frontend, publisher or deployment belongs to the process that this one was forked from. Call
    ``Table.join``, ``Table.publisher`` or ``Table.deploy`` in the child."""


class RequestError(Error, ValueError):
    """The request itself cannot be: it has a class above 3, a tenant whose name is too long, or a share of 0."""


class PolicyError(Error, ValueError):
    """There is no policy of that name."""

    name: str
    known: list[str]
    """The names of all policies."""


# -- Waiting for a place -----------------------------------------------------------------------------


class QueueFullError(Error):
    """As many requests wait as the table's ``max_waiting`` allows, in all or of the request's class. The request has
    not waited.

    Answer 429 or 503 with a Retry-After.
    """

    class_: int | None
    """The class whose own bound it is. None: the bound of all classes together."""
    retry_after: float | None
    """In how many seconds there would be a place for a request at the end of the queue, by the rate at which requests
    that waited were served lately. None: not known."""


class WaitedTooLongError(Error, TimeoutError):
    """The request's time was over before it got a place."""

    waited: float
    """For how many seconds it has waited."""


class NoQueueError(Error):
    """The table has no queue, and no place for the request now. Set ``max_waiting`` when the table is created, or by
    ``Table.apply``."""


class NoThreadError(Error):
    """The kernel did not start the thread that waits for tasks."""

    errno: int
    """The kernel's error."""


# -- Joining and publishing --------------------------------------------------------------------------


class FrontendsFullError(Error):
    """Every place for a frontend belongs to a living process."""

    max_frontends: int


class PublisherHeldError(Error):
    """Another process is the publisher. Try again when it is gone."""

    pid: int


class TooManyStatsError(Error, ValueError):
    """More statistics than the table has engines."""

    found: int
    """How many statistics were given."""
    engines: int
    """How many the table takes."""


class KvUsageError(Error, ValueError):
    """A KV usage that is no share of the cache, from 0 to 1."""

    engine: int
    """The number of the engine whose statistics have it."""
    found: float


# -- Engines -----------------------------------------------------------------------------------------


class EnginesFullError(Error):
    """The table has no room for another engine."""

    max_engines: int


class EngineNameError(Error, ValueError):
    """A name that an engine cannot have."""

    name: str


class NameTakenError(Error):
    """Another engine has that name."""

    name: str
    engine: int
    """The number of that engine."""


class WeightError(Error, ValueError):
    """A weight that an engine cannot have."""

    found: float


class BusyError(Error):
    """Another process has been changing the table's engines for five seconds, and has not finished. It may be
    stopped."""

    pid: int


class DeployedError(Error):
    """Another process is the table's deployment. Nothing was changed."""

    path: Path
    pid: int


# -- Creating and opening ----------------------------------------------------------------------------


class ExistsError(_SystemError, FileExistsError):
    """There is a file at the path already."""


class NotFoundError(_SystemError, FileNotFoundError):
    """There is no file at the path."""


class OptionError(Error, ValueError):
    """A value that an option of a new table cannot have."""

    option: str
    found: int


class DiffersError(Error):
    """The table at the path does not fit the options: it has other engines or caps and was last configured with
    others, or it was created with other sizes or another mode.

    ``engine``, ``option``, ``found`` and ``asked`` are those of the first difference. ``Table.apply`` can change all
    but the sizes and the mode.
    """

    path: Path
    differences: list[Difference]
    """All differences."""
    engine: str | None
    option: str
    found: str
    asked: str


class NoSpaceError(_SystemError):
    """The file system has no room for the table."""

    needed: int
    """The bytes that the table takes."""


class SymlinkError(Error):
    """The path is a symbolic link, which is not followed."""

    path: Path


class NotATableError(Error):
    """The file at the path is not a table."""

    path: Path
    found: str
    """A description of the file."""


class VersionError(Error):
    """The table has another version of the format than this package reads."""

    path: Path


class ChecksumError(Error):
    """The header of the file was changed after its creation."""

    path: Path


class GeometryError(Error):
    """The header of the file describes a table that cannot be."""

    path: Path


class SizeError(Error):
    """The file is shorter or longer than its header says."""

    path: Path


class OwnerError(_SystemError, PermissionError):
    """The file belongs to another user."""


class ModeError(_SystemError, PermissionError):
    """More users may open the file than its creator has allowed."""


class ReadOnlyError(Error):
    """The table was opened for reading only."""


class IoError(_SystemError):
    """The kernel has refused an operation. If Python has a class of its own for that ``errno``, as
    ``PermissionError`` or ``NotADirectoryError``, the error is of that class, too."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _io_again, (self.errno, self.args), self.__dict__


@cache
def io(errno: int | None) -> type[IoError]:
    """Returns the class of an ``IoError`` with that number: a subclass of Python's own class for it, too."""
    own = type(OSError(errno, "")) if errno else OSError
    if own is OSError:
        return IoError
    return type("IoError", (IoError, own), {"__module__": "headcount", "__doc__": IoError.__doc__})


def _io_again(errno: int | None, args: tuple[Any, ...]) -> IoError:
    return io(errno)(*args)
