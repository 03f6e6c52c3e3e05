"""What can go wrong: one class for each kind of error, all of them under ``Error``.

The class for the library's ``Error::X`` is ``XError``. The message of each says what was found, what
was expected, and what to do about it. Nothing is changed by a call that raises, and the table works on
as before.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from headcount._view import Difference


class Error(Exception):
    """Every error of this package that is not one of Python's own."""


class _SystemError(Error, OSError):
    # In the instance and not where ``OSError`` keeps them: the text stays the message, and pickle has them.
    errno: int | None = None
    strerror: str | None = None
    filename: str | None = None
    path: Path


# -- Routing -----------------------------------------------------------------------------------------


class SaturatedError(Error):
    """Every engine that could take the request is at its cap, or the table is at its own.

    If it ``passes``, answer 503 with a Retry-After, or try again when a permit of yours was released. If it
    does not, answer 400 or 413: to try again never helps.
    """

    cap: Literal["engine_requests", "engine_tokens", "table_requests", "table_tokens"]
    """The cap that is in the way."""
    passes: bool
    """False: the request is larger than that cap allows even when nothing is in flight."""


class UnavailableError(Error):
    """No engine can take the request: each is down, draining, removed, or excluded by it.

    Answer 503 with a Retry-After, or try again later.
    """

    engines: int
    """Engines that were looked at: all of the table's, or the one that was pinned."""
    down: int
    """How many of these are down."""
    draining: int
    """How many of these are draining."""
    excluded: int
    """How many of these are active, but excluded by the request."""


class NoSuchEngineError(Error):
    """The table has no engine of that number, or the engine of that id was removed."""

    engine: int
    removed: bool
    """Whether it was named by its id, so that it was there once. Another that may have its number now was
    left alone."""


class ForkedError(Error):
    """The handle was made by another process, of which this one is a forked child. Join anew."""


# -- Joining and publishing --------------------------------------------------------------------------


class FrontendsFullError(Error):
    """Every slot for a frontend belongs to a living process."""

    max_frontends: int


class PublisherHeldError(Error):
    """Another process publishes. Try again when it is gone."""

    pid: int


class TooManyStatsError(Error, ValueError):
    """More statistics than the table has engines."""

    found: int
    engines: int


class KvUsageError(Error, ValueError):
    """A share of the KV cache that is not from 0 to 1."""

    engine: int
    found: float


# -- Engines -----------------------------------------------------------------------------------------


class EnginesFullError(Error):
    """No slot for another engine is free."""

    max_engines: int


class EngineNameError(Error, ValueError):
    """A name that an engine cannot have."""

    name: str


class NameTakenError(Error):
    """Another engine has that name."""

    name: str
    engine: int


class WeightError(Error, ValueError):
    """A weight that an engine cannot have."""

    found: float


class BusyError(Error):
    """Another process has been changing the table's engines for seconds, and does not end."""

    pid: int


class DeployedError(Error):
    """Another process is the table's deployment. Nothing was changed."""

    path: Path
    pid: int


# -- Creating and opening ----------------------------------------------------------------------------


class ExistsError(_SystemError, FileExistsError):
    """Something is there already."""


class NotFoundError(_SystemError, FileNotFoundError):
    """Nothing is there."""


class OptionError(Error, ValueError):
    """An option that a new table cannot have."""

    option: str
    found: int


class DiffersError(Error):
    """The table at that path has other engines or caps than were asked for, and was last configured with others, too;
    or it was created with other sizes or another mode.

    ``engine`` to ``asked`` are those of the first thing that differs. Nothing was changed; ``Table.apply`` changes
    all but what a table was created with.
    """

    path: Path
    differences: list[Difference]
    """All that differs."""
    engine: str | None
    """The name of the engine that differs. None: the table itself."""
    option: str
    """The option that differs. "engine": the engine is there and was not asked for, or the other way round."""
    found: str
    asked: str


class NoSpaceError(_SystemError):
    """The file system has no room for the table. Nothing was created."""

    needed: int


class SymlinkError(Error):
    """The path is a symbolic link, which is not followed."""

    path: Path


class NotATableError(Error):
    """What is there is not a table."""

    path: Path
    found: str


class VersionError(Error):
    """A table of another version of the format."""

    path: Path


class ChecksumError(Error):
    """The header was changed after its creation."""

    path: Path


class GeometryError(Error):
    """A header that names an impossible table."""

    path: Path


class SizeError(Error):
    """The file is shorter or longer than its header says."""

    path: Path


class OwnerError(_SystemError, PermissionError):
    """The file belongs to another user."""


class ModeError(_SystemError, PermissionError):
    """The file is open to more users than its creator said."""


class ReadOnlyError(Error):
    """The table was opened for reading only."""


class IoError(_SystemError):
    """The kernel refused something. Python's own class for that ``errno``, if there is one, catches it as well:
    ``PermissionError``, ``NotADirectoryError`` and so on."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _io_again, (self.errno, self.args), self.__dict__


@cache
def io(errno: int | None) -> type[IoError]:
    """The class of an ``IoError`` with that number: it is one of Python's own, too."""
    own = type(OSError(errno, "")) if errno else OSError
    if own is OSError:
        return IoError
    return type("IoError", (IoError, own), {"__module__": "headcount", "__doc__": IoError.__doc__})


def _io_again(errno: int | None, args: tuple[Any, ...]) -> IoError:
    return io(errno)(*args)
