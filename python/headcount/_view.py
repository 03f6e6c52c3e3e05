"""A look at a whole table, for people and metrics: plain objects, which ``dataclasses.asdict`` takes.

Each count is exact at the moment at which it was read; different engines and frontends are read one
after the other, while others go on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from headcount._engine import EngineId, EngineStats


@dataclass(frozen=True)
class EngineView:
    """An engine of a table."""

    index: int
    """Its number, which is another engine's when this one is gone."""
    id: EngineId
    """Its id, which is never another's."""
    name: str
    state: Literal["active", "draining", "down", "leaving"]
    """Whether it takes requests. Leaving: removed while requests were in flight."""
    weight: float
    in_flight: int
    """Requests in flight."""
    tokens: int
    """Their tokens."""
    admitted_total: int
    """Requests that it was ever given, since it was added. Only grows."""
    finished_total: int
    """How many of these have finished, or were returned by a reap. Only grows."""
    max_in_flight: int | None
    """The most requests that it takes. None: no cap."""
    max_tokens: int | None
    """The most tokens that it takes. None: no cap."""
    stats: EngineStats | None
    """What was published of it last, however long ago."""


@dataclass(frozen=True)
class FrontendView:
    """A process that has joined."""

    slot: int
    """Which of the table's places for frontends it has."""
    pid: int
    """The process as it sees itself; pid namespaces may differ."""
    alive: bool
    """Whether it lives. One that does not is reaped soon."""
    joined_at: float
    """When it joined, in seconds since 1970."""
    in_flight: int
    """Requests that it has in flight."""
    tokens: int
    """Their tokens."""


@dataclass(frozen=True)
class SnapshotView:
    """The last complete publication."""

    age: float
    """How many seconds ago it was published."""
    words: tuple[int, int]
    """The publisher's own two words."""


@dataclass(frozen=True)
class Refusals:
    """Calls of ``route`` and ``route_many`` that were refused since the table was created, by all frontends.
    Each only grows."""

    engine_requests: int
    """By the caps of engines in requests."""
    engine_tokens: int
    """By the caps of engines in tokens."""
    table_requests: int
    """By the table's cap in requests."""
    table_tokens: int
    """By the table's cap in tokens."""
    unavailable: int
    """With ``UnavailableError``."""


@dataclass(frozen=True)
class View:
    """What a table holds."""

    engines: list[EngineView]
    """Every engine, also those that were removed while requests were in flight."""
    frontends: list[FrontendView]
    """Every frontend, also those that died and were not reaped yet."""
    publisher: int | None
    """The process that publishes. None if no living process does."""
    snapshot: SnapshotView | None
    """None if nothing was ever published."""
    max_in_flight: int | None
    """The cap of the whole table in requests."""
    max_tokens: int | None
    """The cap of the whole table in tokens."""
    deployment: int | None
    """The process that is the table's deployment; see ``Table.deploy``. None if no living process is."""
    refusals_total: Refusals
    """How many calls were refused since the table was created, by reason."""

    def engine(self, engine: int | EngineId) -> EngineView | None:
        """The engine of a number or an id, if there is one. Numbers may have gaps where engines were
        removed."""
        return next((view for view in self.engines if view.id == engine), None)


@dataclass(frozen=True)
class Reaped:
    """What a reap has returned to the engines."""

    frontends: int
    """Dead frontends."""
    requests: int
    """Requests that they had in flight."""
    tokens: int
    """The tokens of these requests."""


@dataclass(frozen=True)
class Fault:
    """One inconsistency of a table."""

    kind: str
    """A word for its sort: requests, tokens, ledger, header, path and the like."""
    at: str
    """Where, in words."""
    found: str
    """What is there."""
    expected: str
    """What should be there."""


@dataclass(frozen=True)
class Verification:
    """What ``Table.verify`` has found."""

    faults: list[Fault]
    """What is inconsistent."""
    busy: list[str]
    """What could not be checked because it never stood still. Look again when there is less traffic."""
    counts: int
    """How many counts were compared with the ledgers."""
    ledgers: int
    """How many ledgers were added up for each of them."""

    @property
    def is_consistent(self) -> bool:
        """Whether nothing is inconsistent. What was busy may be."""
        return not self.faults


@dataclass(frozen=True)
class Difference:
    """One thing in which a table differs, or differed, from the options that were asked for."""

    engine: str | None
    """The name of the engine. None: the table itself."""
    option: str
    """The option that differs; "engine" if the engine is there and was not asked for, or the other way
    round."""
    found: str
    """What the table has, or had: a number, "none" for no cap, or "absent" for an engine."""
    asked: str
    """What was asked for, in the same form."""

    @property
    def can_be_changed(self) -> bool:
        """Whether ``Table.apply`` can change it. What a table was created with stays."""
        return self.option not in ("max_engines", "max_frontends", "lanes", "mode")


@dataclass(frozen=True)
class Changes:
    """What ``Table.apply`` has changed: false if nothing. As a text, one line for each change."""

    differences: list[Difference]
    """Each thing that was changed, from what was found to what was asked for."""
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
