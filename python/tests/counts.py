"""What a table counts."""

from __future__ import annotations

from headcount import Table


def in_flight(table: Table) -> list[int]:
    """The requests in flight on each engine."""
    return [engine.in_flight for engine in table.view().engines]


def tokens(table: Table) -> list[int]:
    """The tokens in flight on each engine."""
    return [engine.tokens for engine in table.view().engines]
