"""What all tests need: a path in shared memory that is removed afterwards."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def path() -> Iterator[Path]:
    path = Path(f"/dev/shm/headcount-test-{uuid.uuid4().hex[:12]}")
    yield path
    path.unlink(missing_ok=True)
