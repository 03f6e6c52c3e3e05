"""What can go wrong: one class for each kind of error, all of them under ``Error``.

The message of each says what was found, what was expected, and what to do about it. Nothing is changed
by a call that raises, and the table works on as before.
"""

from __future__ import annotations


class Error(Exception):
    """Every error of this package that is not one of Python's own."""


# -- Routing -----------------------------------------------------------------------------------------


class Saturated(Error):
    """Every engine that could take the request is at its cap, or the table is at its own.

    If it ``passes``, answer 503 with a Retry-After, or try again when a permit of yours was released. If it
    does not, answer 400 or 413: to try again never helps.
    """

    cap: str
    """The cap that is in the way: engine_requests, engine_tokens, table_requests or table_tokens."""
    passes: bool
    """False: the request is larger than that cap allows even when nothing is in flight."""


class Unavailable(Error):
    """No engine can take the request: each is down, draining, removed, or excluded by it."""

    engines: int
    down: int
    draining: int
    excluded: int


class NoSuchEngine(Error):
    """The table has no engine of that number, or the engine of that id was removed."""

    engine: int
    removed: bool
    """Whether it was named by its id, so that it was there once. Another that may have its number now was
    left alone."""


class Forked(Error):
    """The handle was made by another process, of which this one is a forked child. Join anew."""


# -- Joining and publishing --------------------------------------------------------------------------


class FrontendsFull(Error):
    """Every slot for a frontend belongs to a living process."""

    max_frontends: int


class PublisherHeld(Error):
    """Another process publishes. Try again when it is gone."""

    pid: int


class TooManyStats(Error, ValueError):
    """More statistics than the table has engines."""

    found: int
    engines: int


class KvUsage(Error, ValueError):
    """A share of the KV cache that is not from 0 to 1."""

    engine: int
    found: float


# -- Engines -----------------------------------------------------------------------------------------


class EnginesFull(Error):
    """No slot for another engine is free."""

    max_engines: int


class EngineName(Error, ValueError):
    """A name that an engine cannot have."""

    name: str


class NameTaken(Error):
    """Another engine has that name."""

    name: str
    engine: int


class Weight(Error, ValueError):
    """A weight that an engine cannot have."""

    found: float


class Busy(Error):
    """Another process has been changing the table's engines for seconds, and does not end."""

    pid: int


class Deployed(Error):
    """Another process is the table's deployment. Nothing was changed."""

    path: str
    pid: int


# -- Creating and opening ----------------------------------------------------------------------------


class Exists(Error, FileExistsError):
    """Something is there already."""

    path: str


class NotFound(Error, FileNotFoundError):
    """Nothing is there."""

    path: str


class Option(Error, ValueError):
    """An option that a new table cannot have."""

    option: str
    found: int


class Differs(Error):
    """The table at that path was created with other options."""

    path: str
    option: str
    found: str
    asked: str


class NoSpace(Error, OSError):
    """The file system has no room for the table. Nothing was created."""

    path: str
    needed: int


class Symlink(Error):
    """The path is a symbolic link, which is not followed."""

    path: str


class NotATable(Error):
    """What is there is not a table."""

    path: str
    found: str


class Version(Error):
    """A table of another version of the format."""

    path: str


class Checksum(Error):
    """The header was changed after its creation."""

    path: str


class Geometry(Error):
    """A header that names an impossible table."""

    path: str


class Size(Error):
    """The file is shorter or longer than its header says."""

    path: str


class Owner(Error, PermissionError):
    """The file belongs to another user."""

    path: str


class Mode(Error, PermissionError):
    """The file is open to more users than its creator said."""

    path: str


class ReadOnly(Error):
    """The table was opened for reading only."""


class Io(Error, OSError):
    """The kernel refused something."""

    path: str
