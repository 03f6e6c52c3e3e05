"""Engines to be put into a table, and what they say of themselves."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Engine:
    """An engine to be put into a table."""

    name: str
    """1 to 112 bytes of printable text, the only one of its kind in the table; an address, say."""
    weight: float = 1.0
    """How much it can do, compared with the others. A finite number above 0."""
    max_in_flight: int | None = None
    """The most requests in flight, from all frontends together. None for no cap."""
    max_tokens: int | None = None
    """The most tokens in flight, from all frontends together. None for no cap."""


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
