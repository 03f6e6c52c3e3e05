"""Reads the counts of a table."""

from __future__ import annotations

from headcount import Table


def in_flight(table: Table) -> list[int]:
    """Returns the requests in flight on each engine."""
    return [engine.in_flight for engine in table.view().engines]


def tokens(table: Table) -> list[int]:
    """Returns the tokens in flight on each engine."""
    return [engine.tokens for engine in table.view().engines]
