"""Engines, their identities and their statistics."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Engine:
    """An engine to be put into a table."""

    name: str
    """1 to ``MAX_NAME_LEN`` (232) bytes of printable text, which no other engine of the table has; an address,
    say."""
    weight: float = 1.0
    """Its capacity, compared with the others. A finite number above 0."""
    max_in_flight: int | None = None
    """The most requests in flight, from all frontends together. None: no cap. With 0 it takes no request: one that
    only this engine could take raises ``SaturatedError``, whose ``passes`` is False."""
    max_tokens: int | None = None
    """The most tokens in flight, from all frontends together. None: no cap. With 0 it takes only requests without
    tokens."""


@dataclass(frozen=True, eq=False)
class EngineId:
    """The identity of one engine of a table: from ``Table.add``, ``Table.find``, ``Permit.engine_id`` or an
    ``EngineView``.

    Each engine has a number, its index into lists of your own. When it is gone, the table gives the number to another
    engine. Its id is never another's. So a call that is given a number acts on the engine that has it now; one
    that is given an id acts on that very engine, or raises ``NoSuchEngineError``.

    An id can be used wherever a number can, and is equal to its number: ``permit.engine == table.find("a")``. Two ids
    are equal if they are of the same engine.
    """

    index: int
    """The engine's number."""
    generation: int
    """A number that differs among all engines that ever have that ``index``."""

    def __index__(self) -> int:
        return self.index

    def __eq__(self, other: object) -> bool:
        if isinstance(other, EngineId):
            return (self.index, self.generation) == (other.index, other.generation)
        if isinstance(other, int):
            return self.index == other
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.index)  # that of the number, to which it is equal

    def __str__(self) -> str:
        return f"@{self.index}"


@dataclass(frozen=True)
class EngineStats:
    """The statistics of an engine, as it reports them."""

    waiting: int = 0
    """Requests in its queue."""
    running: int = 0
    """Requests in its batch."""
    kv_usage: float = 0.0
    """The share of its KV cache that is in use, from 0 to 1."""
    in_flight: int | None = None
    """The table's count of requests in flight on it when it was sampled, for the policy ``open``. None: the count
    at the time of the publication."""
