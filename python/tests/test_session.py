"""What the end-to-end run relies on so that no deployment outlives it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

SESSION = Path(__file__).parents[1] / "e2e" / "session.py"

# A process that holds a session of two by a leash, as `server.py` does.
HOLDER = """
import subprocess, sys, time
held = subprocess.Popen(["sh", "-c", "sleep 600 & sleep 600"], start_new_session=True)
command = [sys.executable, sys.argv[1], str(held.pid)]
leash = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
print(held.pid, flush=True)
time.sleep(600)
"""


def alive(session: int) -> int:
    """How many processes of a session have not ended."""
    sys.path.insert(0, str(SESSION.parent))
    try:
        from session import pids
    finally:
        sys.path.pop(0)
    return len(pids(session))


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_deployment_ends_when_who_started_it_is_killed() -> None:
    command = [sys.executable, "-c", HOLDER, SESSION]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        session = int(holder.stdout.readline())
        until(lambda: alive(session) >= 2)
        holder.kill()
        until(lambda: alive(session) == 0)
