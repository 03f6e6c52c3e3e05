"""Fixtures of all tests."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from headcount import Frontend, Table


@pytest.fixture
def path() -> Iterator[Path]:
    """Gives a path in shared memory, and removes its file afterwards."""
    path = Path(f"/dev/shm/headcount-test-{uuid.uuid4().hex[:12]}")
    yield path
    path.unlink(missing_ok=True)


@pytest.fixture
def table() -> Table:
    """Returns a table of four engines without a path."""
    return Table.memfd(engines=4)


@pytest.fixture
def frontend(table: Table) -> Frontend:
    return table.join()
