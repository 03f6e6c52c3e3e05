"""Opens a pickled table in another process."""

from __future__ import annotations

from pathlib import Path

from headcount._native import Table


def opened(path: Path, any_owner: bool, read_only: bool) -> Table:
    """Returns the table at the path, opened as the pickled one was."""
    opening = Table.open_read_only if read_only else Table.open
    return opening(path, any_owner=any_owner)
