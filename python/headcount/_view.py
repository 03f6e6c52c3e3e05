"""The contents of a table, for people and metrics: plain objects, which ``dataclasses.asdict`` takes.

Each count is exact at the moment at which it is read. Engines and frontends are read one after the other, while other
processes go on.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from headcount._engine import EngineId, EngineStats
from headcount._native import WAITED_BOUNDS


@dataclass(frozen=True)
class EngineView:
    """An engine of a table."""

    id: EngineId
    """Its identity; ``id.index`` is its number."""
    name: str
    state: Literal["active", "draining", "down", "leaving"]
    """Whether it takes requests. Leaving: it was removed while requests were in flight."""
    weight: float
    in_flight: int
    """Requests in flight."""
    tokens: int
    """Their tokens."""
    admitted_total: int
    """Requests placed on it since it was added. Only grows."""
    finished_total: int
    """Those of them that have finished, or that a reap has taken off. Only grows."""
    max_in_flight: int | None
    """The most requests that it takes. None: no cap."""
    max_tokens: int | None
    """The most tokens that it takes. None: no cap."""
    stats: EngineStats | None
    """Its statistics in the last publication, however old that is. None if it has none."""


@dataclass(frozen=True)
class FrontendView:
    """A process that has joined."""

    slot: int
    """The number of its place among the table's places for frontends."""
    pid: int
    """The process as it sees itself; pid namespaces may differ."""
    alive: bool
    """Whether the process lives. One that does not is reaped soon."""
    joined_at: float
    """When it joined, in seconds since 1970."""
    in_flight: int
    """Requests that it has in flight."""
    tokens: int
    """Their tokens."""
    waiting: int
    """Requests of its that wait for a place."""


@dataclass(frozen=True)
class SnapshotView:
    """The last complete publication."""

    age: float
    """Its age in seconds."""
    words: tuple[int, int]
    """The publisher's own two words."""


@dataclass(frozen=True)
class Refusals:
    """How many calls of ``route`` and ``route_many`` the table has refused since it was created, by reason. Each
    only grows."""

    engine_requests: int
    """Refused by the caps of engines on requests."""
    engine_tokens: int
    """Refused by the caps of engines on tokens."""
    table_requests: int
    """Refused by the table's cap on requests."""
    table_tokens: int
    """Refused by the table's cap on tokens."""
    unavailable: int
    """Refused with ``UnavailableError``."""


@dataclass(frozen=True)
class ClassView:
    """A class of requests that wait for a place."""

    waiting: int
    """How many wait."""
    max_waiting: int | None
    """The most that wait. None: no bound of its own."""
    oldest: float | None
    """For how many seconds the oldest of those has waited that come first in their frontends, to the millisecond. None:
    none waits."""


@dataclass(frozen=True)
class WaitedView:
    """How long requests have waited that were served, since the table was created."""

    BOUNDS: ClassVar[tuple[float, ...]] = WAITED_BOUNDS
    """The upper bound of each range but the last, in seconds."""

    by_range: list[int]
    """How many were served, by the ranges of ``BOUNDS``, and those above the last of these. Each only grows."""
    sum: float
    """How many seconds they have waited, added up."""

    @property
    def count(self) -> int:
        """How many were served."""
        return sum(self.by_range)

    def quantile(self, share: float) -> float | None:
        """Returns the upper bound, in seconds, of the range that has the given share of them below or in it: 0.5 for the
        median. None: none was served, or it lies above the last bound."""
        wanted = max(math.ceil(self.count * share), 1)
        below = itertools.accumulate(self.by_range)
        return next((bound for bound, has in zip(self.BOUNDS, below) if has >= wanted), None)


@dataclass(frozen=True)
class QueueView:
    """The requests that wait for a place, and what has become of those that did."""

    max_waiting: int
    """The most requests that wait, of all classes together."""
    share_tokens: bool
    """Whether tenants share tokens, and not requests."""
    classes: list[ClassView]
    """Each class, from the one that is served first."""
    waited: WaitedView
    """How long the requests have waited that were served."""
    refused_total: int
    """How many were refused because the queue was full. Only grows, as the next two."""
    timed_out_total: int
    """How many gave up because their time was over."""
    cancelled_total: int
    """How many were given up by their callers, or found no engine any more."""


@dataclass(frozen=True)
class View:
    """The contents of a table, from ``Table.view``."""

    engines: list[EngineView]
    """Every engine, also one that was removed while requests were in flight."""
    frontends: list[FrontendView]
    """Every frontend, also one that died and is not reaped yet."""
    publisher: int | None
    """The pid of the publisher. None if no living process is it."""
    snapshot: SnapshotView | None
    """The last complete publication. None if nothing was ever published."""
    max_in_flight: int | None
    """The table's cap on requests. None: no cap."""
    max_tokens: int | None
    """The table's cap on tokens. None: no cap."""
    deployment: int | None
    """The pid of the table's deployment; see ``Table.deploy``. None if no living process is it."""
    refusals_total: Refusals
    """How many calls were refused since the table was created, by reason."""
    queue: QueueView | None
    """The queue, in which requests wait for a place. None: the table has none."""

    def engine(self, engine: int | EngineId) -> EngineView | None:
        """Returns the engine of a number or an id, or None if there is none. The numbers of a table's engines have
        gaps where engines were removed."""
        return next((view for view in self.engines if view.id == engine), None)


@dataclass(frozen=True)
class Dimensions:
    """The sizes and the mode that a table was created with. None of them ever changes."""

    format: int
    """The version of the file's format."""
    size: int
    """The bytes of the file."""
    max_engines: int
    """How many engines it has room for."""
    max_frontends: int
    """How many frontends can join."""
    threads: int
    """How many threads of each frontend have a lane of their own."""
    engines: int
    """How many engines it was created with."""
    mode: int
    """The permission bits that it was created with."""


@dataclass(frozen=True)
class Reaped:
    """How much a reap has taken off the counts."""

    frontends: int
    """Dead frontends."""
    requests: int
    """Their requests in flight."""
    tokens: int
    """The tokens of these requests."""
    waiting: int
    """Requests of theirs that waited for a place."""


@dataclass(frozen=True)
class Fault:
    """One inconsistency of a table."""

    kind: str
    """Its kind in one word: requests, tokens, ledger, header, path and the like."""
    at: str
    """Its place in the table, in words."""
    found: str
    """The value that the table has there."""
    expected: str
    """The value that it should have there."""


@dataclass(frozen=True)
class Verification:
    """The result of ``Table.verify``."""

    faults: list[Fault]
    """Every inconsistency that was found."""
    busy: list[str]
    """The parts that changed too often to be checked. Verify again when there is less traffic."""
    counts: int
    """How many counts were compared with the ledgers."""
    ledgers: int
    """How many ledgers were added up for each of them."""

    @property
    def is_consistent(self) -> bool:
        """Whether no fault was found. Parts that were busy were not checked."""
        return not self.faults


@dataclass(frozen=True)
class Difference:
    """One option in which a table differs, or differed, from those that were asked for."""

    engine: str | None
    """The name of the engine. None: the table itself."""
    option: str
    """The option that differs. "engine": the table has no engine of that name, or has one that was not asked
    for."""
    found: str
    """The table's value: a number, "none" for no cap, or "absent" or "present" for an engine."""
    asked: str
    """The value that was asked for, in the same form."""

    @property
    def can_be_changed(self) -> bool:
        """Whether ``Table.apply`` can change it. The sizes and the mode of a table stay."""
        return self.option not in ("max_engines", "max_frontends", "threads", "mode")


@dataclass(frozen=True)
class Changes:
    """The changes that ``Table.apply`` has made. It is false if there are none; ``str`` gives a line for each."""

    differences: list[Difference]
    """Each change, from the value that was found to the one that was asked for."""
    _text: str = field(repr=False, compare=False)

    @property
    def added(self) -> list[str]:
        """The names of the engines that were added."""
        return [it.engine for it in self.differences if it.engine and it.found == "absent"]

    @property
    def removed(self) -> list[str]:
        """The names of the engines that were removed."""
        return [it.engine for it in self.differences if it.engine and it.asked == "absent"]

    def __bool__(self) -> bool:
        return bool(self.differences)

    def __str__(self) -> str:
        return self._text
