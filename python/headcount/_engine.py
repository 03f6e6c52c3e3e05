"""Engines to be put into a table, and what they say of themselves."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Engine:
    """An engine to be put into a table."""

    name: str
    """1 to ``MAX_NAME_LEN`` (232) bytes of printable text, the only one of its kind in the table; an address,
    say."""
    weight: float = 1.0
    """How much it can do, compared with the others. A finite number above 0."""
    max_in_flight: int | None = None
    """The most requests in flight, from all frontends together. None for no cap; 0 takes nothing, and each request
    for this engine alone raises ``SaturatedError``, whose ``passes`` is False."""
    max_tokens: int | None = None
    """The most tokens in flight, from all frontends together. None for no cap; 0 takes requests without tokens
    only."""


@dataclass(frozen=True, eq=False)
class EngineId:
    """The identity of one engine of a table: from ``Table.add``, ``Table.find`` or an ``EngineView``.

    It can be used wherever an engine's number can, and is equal to its number:
    ``permit.engine == table.find("a")``. But a number stands for the engine that has it now, and is given
    to another when that one is gone. A call that changes an engine, or a ``pin``, that is given an id acts on
    that very engine, or raises ``NoSuchEngineError``. Two ids are equal if they are of the same engine.
    """

    index: int
    """The engine's number."""
    generation: int
    """A number that differs for all engines that ever have that ``index``."""

    def __index__(self) -> int:
        return self.index

    def __eq__(self, other: object) -> bool:
        if isinstance(other, EngineId):
            return (self.index, self.generation) == (other.index, other.generation)
        if isinstance(other, int):
            return self.index == other
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.index)  # as of the number that it is equal to

    def __str__(self) -> str:
        return f"@{self.index}"


@dataclass(frozen=True)
class EngineStats:
    """What an engine says of itself."""

    waiting: int = 0
    """Requests in its queue."""
    running: int = 0
    """Requests in its batch."""
    kv_usage: float = 0.0
    """The share of its KV cache that is in use, from 0 to 1."""
    in_flight: int | None = None
    """What the table counted on it when it was sampled, for the policy ``open``. None: as counted when
    this is published."""
