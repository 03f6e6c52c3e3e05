"""Finds and ends all processes of a session, also those whose parents have ended.

Run as `session.py PID`, it ends that session when its own standard input ends. So a deployment does not outlive the
process at the other end of the pipe, however that dies.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path


def pids(session: int) -> list[int]:
    """Returns the processes of the session, without those that have ended and were not waited for."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                after_name = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(after_name[3]) == session and after_name[0] != "Z":
                    found.append(int(entry.name))
    return found


def kill(session: int, before: Callable[[int], None] = lambda pid: None) -> None:
    """Kills all processes of the session, until none is left. Calls `before` with each."""
    while left := pids(session):
        for pid in left:
            before(pid)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.1)


if __name__ == "__main__":
    sys.stdin.read()
    kill(int(sys.argv[1]))
