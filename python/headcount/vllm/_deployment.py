"""Finds a deployment's table, the same for all of its API servers and for no other deployment.

All servers of a deployment know the address at which their coordinator publishes, and no other deployment has
it: it is a socket of a random name, or an address and port that stay taken while the deployment lives. In the
hybrid mode each node has ranks of its own, so the first rank is part of the name as well.

A table outlives servers that are killed, and does no harm. The deployment's first process removes it when it ends,
or else the next server that starts does. Servers open, join, leave and remove tables under one lock: so a table
that no server uses is told from one that its first server is about to join.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import headcount
from headcount.vllm._log import log
from headcount.vllm._settings import Settings

MAX_ENGINES = 128
MAX_FRONTENDS = 256

_NAMES = 100
_LOCK = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


@dataclass(frozen=True)
class Deployment:
    """The part of a deployment that runs on one node."""

    coordinator: str
    """The address at which the deployment's coordinator publishes."""
    first_rank: int
    """The first of the ranks among which this node's servers balance."""

    @property
    def key(self) -> str:
        """A name that no other deployment on this host has."""
        # The same address can be two sockets in two network namespaces that share /dev/shm.
        network = os.stat("/proc/self/ns/net").st_ino
        unique = f"{self.coordinator} {network} {self.first_rank}"
        return hashlib.sha256(unique.encode()).hexdigest()[:12]

    def engine_name(self, rank: int) -> str:
        """Returns the name that the engine of the rank has in the table."""
        return f"{rank}@{self.key}"

    def path(self) -> str:
        """Returns the path of the deployment's table, if the settings name no other."""
        return _prefix() + self.key


@dataclass(frozen=True)
class Membership:
    """A server's place in its deployment's table."""

    table: headcount.Table
    frontend: headcount.Frontend


class TakenError(Exception):
    """Another deployment uses the table."""


def join(deployment: Deployment, ranks: list[int], settings: Settings) -> Membership:
    """Joins the deployment's table, and creates it if there is none. Removes tables that no server uses."""
    with _alone():
        _sweep()
        if settings.path is not None:
            try:
                return _join(settings.path, deployment, ranks, settings)
            except TakenError:
                log.warning(
                    "headcount: another deployment uses %s; using %s instead. "
                    "Give each its own HEADCOUNT_VLLM_PATH, or none",
                    settings.path,
                    deployment.path(),
                )
        return _join(deployment.path(), deployment, ranks, settings)


def remove_if_empty(table: headcount.Table) -> None:
    """Removes the table if no living server has joined it."""
    with _alone():
        if not _is_in_use(table) and table.path_state() == "here":
            os.unlink(table.path)


def sweep_at_the_end(patience: float = 3.0) -> None:
    """Removes tables that no server uses. Waits for children of this process that are just being killed."""
    deadline = time.monotonic() + patience
    while _a_child_lives() and time.monotonic() < deadline:
        time.sleep(0.05)
    with suppress(OSError), _alone(patience=1.0):
        _sweep()


def _a_child_lives() -> bool:
    """Whether a living child of this process has joined a table."""
    for path in _tables():
        with suppress(headcount.Error, OSError):
            for frontend in headcount.Table.open_read_only(path).view().frontends:
                if frontend.alive and _parent(frontend.pid) == os.getpid():
                    return True
    return False


def _parent(pid: int) -> int | None:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return int(stat.read().rpartition(")")[2].split()[1])
    except OSError:
        return None


def _join(path: str, deployment: Deployment, ranks: list[int], settings: Settings) -> Membership:
    names = [deployment.engine_name(rank) for rank in ranks]
    table = _opened(path, deployment)
    if table is None:
        table = headcount.Table.create(
            path,
            engines=names,
            max_engines=max(MAX_ENGINES, 2 * len(names)),
            max_frontends=MAX_FRONTENDS,
            # One thread of a server routes and finishes. Another may end it, and shares the last lane.
            threads=1,
        )
    return Membership(table, table.join(policy=settings.policy))


def _opened(path: str, deployment: Deployment) -> headcount.Table | None:
    """Returns the table that the deployment's other servers use, or None if there are none."""
    try:
        table = headcount.Table.open(path)
    except headcount.NotFoundError:
        return None
    if not _is_in_use(table):
        # Its servers are all gone: a new table takes its place.
        os.unlink(path)
        return None
    suffix = deployment.engine_name(0).removeprefix("0")
    if not all(engine.name.endswith(suffix) for engine in table.view().engines):
        raise TakenError(path)
    return table


def _is_in_use(table: headcount.Table) -> bool:
    return any(frontend.alive for frontend in table.view().frontends)


def _sweep() -> None:
    """Removes this user's tables that no living server has joined."""
    for path in _tables():
        # A file that cannot be opened is left alone.
        with suppress(headcount.Error, FileNotFoundError):
            if not _is_in_use(headcount.Table.open_read_only(path)):
                os.unlink(path)


def _tables() -> list[str]:
    """Returns the paths of this user's tables that have the default kind of path."""
    directory, prefix = os.path.split(_prefix())
    of_a_deployment = re.compile(re.escape(prefix) + "[0-9a-f]{12}")
    names = filter(of_a_deployment.fullmatch, os.listdir(directory))
    return [os.path.join(directory, name) for name in names]


def _prefix() -> str:
    """Returns the beginning of the paths of this user's tables, and of the lock for them.

    Processes of another user may have the same number in a user namespace of theirs, or may have created a file of
    that name. So several names are tried, and the first is taken whose lock is this user's or can be created.
    """
    directory = _directory()
    for attempt in range(_NAMES):
        user = f"{os.geteuid()}.{attempt}" if attempt else f"{os.geteuid()}"
        prefix = os.path.join(directory, f"headcount-vllm-{user}-")
        if _is_ours(prefix + "lock"):
            return prefix
    raise PermissionError(
        f"{_NAMES} names like {prefix}lock belong to other users; remove those files, or give all API "
        "servers of this deployment one HEADCOUNT_VLLM_PATH"
    )


def _directory() -> str:
    return "/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir()


def _is_ours(lock: str) -> bool:
    """Whether the lock belongs to this user. Creates it if it is not there."""
    try:
        # With O_EXCL: the kernel may refuse to open another user's file in such a directory with O_CREAT alone,
        # whatever its mode (fs.protected_regular).
        os.close(os.open(lock, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        try:
            found = os.open(lock, _LOCK)
        except PermissionError:
            return False
        except OSError:
            if os.lstat(lock).st_uid == os.geteuid():
                raise  # a link, say, which this user should know of
            return False
        try:
            return os.fstat(found).st_uid == os.geteuid()
        finally:
            os.close(found)
    return True


@contextmanager
def _alone(patience: float = 5.0) -> Iterator[None]:
    """Runs the block while no other server of this user runs one. It usually waits some milliseconds at most."""
    lock = os.open(_prefix() + "lock", _LOCK)
    try:
        deadline = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
        try:
            yield
        finally:
            # To close it would not do: a child that was forked meanwhile has the descriptor, too.
            fcntl.flock(lock, fcntl.LOCK_UN)
    finally:
        os.close(lock)
