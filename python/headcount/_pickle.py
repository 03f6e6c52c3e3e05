"""How a table that was pickled is opened in another process."""

from __future__ import annotations

from pathlib import Path

from headcount._native import Table


def opened(path: Path, any_owner: bool, read_only: bool) -> Table:
    """The table that lies at that path, opened as it was."""
    opening = Table.open_read_only if read_only else Table.open
    return opening(path, any_owner=any_owner)
