"""The means by which no deployment outlives the end-to-end run."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import session

# A process that starts a session of two, and a leash that ends it, as `server.py` does.
HOLDER = """
import subprocess, sys, time
held = subprocess.Popen(["sh", "-c", "sleep 600 & sleep 600"], start_new_session=True)
command = [sys.executable, sys.argv[1], str(held.pid)]
leash = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
print(held.pid, flush=True)
time.sleep(600)
"""


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_deployment_ends_when_who_started_it_is_killed() -> None:
    command = [sys.executable, "-c", HOLDER, str(Path(session.__file__))]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        held = int(holder.stdout.readline())
        until(lambda: len(session.pids(held)) >= 2)
        holder.kill()
        until(lambda: not session.pids(held))
