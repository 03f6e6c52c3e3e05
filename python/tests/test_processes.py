"""Processes: forked, killed, started, and given a table."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import headcount
import pytest
from counts import in_flight, tokens
from headcount import EngineStats, Frontend, Table


def test_k3_a_forked_child_never_acts_as_its_parent(table: Table, frontend: Frontend) -> None:
    permit = frontend.route(pin=0)
    publisher = table.publisher()
    deployment = table.deploy()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with pytest.raises(headcount.ForkedError):
                permit.set_tokens(9)
            permit.release()
            with pytest.raises(headcount.ForkedError):
                frontend.route()
            with pytest.raises(headcount.ForkedError):
                publisher.publish([])
            with pytest.raises(headcount.ForkedError):
                deployment.apply(max_in_flight=7)
            # The place is the parent's, and stays.
            frontend.close()
            with pytest.raises(ValueError, match="closed"):
                frontend.route()
            own = table.join().route(pin=1)
            code = 0 if own.engine == 1 else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    table.reap()
    assert (in_flight(table), tokens(table)) == ([1, 0, 0, 0], [0] * 4)
    assert [seen.pid for seen in table.view().frontends] == [os.getpid()]
    frontend.route(pin=0).release()
    publisher.publish([EngineStats()])
    assert table.view().max_in_flight is None
    assert deployment.apply(max_in_flight=7)


def _route_in_another_process(path: str, count: int) -> None:
    permits = Table.open(path).join().route_many(count, tokens=3)
    os.kill(os.getpid(), signal.SIGKILL if len(permits) == count else signal.SIGTERM)


def test_k1_what_a_killed_process_held_is_returned(path: Path) -> None:
    table = Table.create(path, engines=2)
    spawn = multiprocessing.get_context("spawn")
    process = spawn.Process(target=_route_in_another_process, args=(str(path), 10))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert in_flight(table) == [5, 5]
    reaped = table.reap()
    assert (reaped.frontends, reaped.requests, reaped.tokens) == (1, 10, 30)
    assert in_flight(table) == [0, 0]
    assert [engine.finished_total for engine in table.view().engines] == [5, 5]


def test_a_reaper_returns_it_by_itself(path: Path) -> None:
    table = Table.create(path, engines=2)
    with table.reap_every(0.02) as reaper:
        spawn = multiprocessing.get_context("spawn")
        process = spawn.Process(target=_route_in_another_process, args=(str(path), 10))
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        deadline = time.monotonic() + 60
        while sum(in_flight(table)):
            assert time.monotonic() < deadline, reaper.last_error
            time.sleep(0.005)
        assert reaper.last_error is None
    assert [engine.finished_total for engine in table.view().engines] == [5, 5]
    reaper.stop()


def test_a_table_says_whether_it_lies_at_its_path(path: Path) -> None:
    def comes_to_say(reaper: headcount.Reaper, what: str) -> None:
        deadline = time.monotonic() + 60
        while what not in (reaper.last_error or "nothing"):
            assert time.monotonic() < deadline
            time.sleep(0.005)

    table = Table.create(path, engines=1)
    assert table.path_state() == "here"
    with table.reap_every(0.01) as reaper:
        assert reaper.last_error is None
        away = path.with_name(path.name + "-away")
        path.rename(away)
        assert table.path_state() == "gone"
        comes_to_say(reaper, "was removed or renamed")
        other = Table.create(path, engines=1)
        assert (table.path_state(), other.path_state()) == ("replaced", "here")
        comes_to_say(reaper, "was replaced by another file")
        away.rename(path)
        assert (table.path_state(), other.path_state()) == ("here", "replaced")
        comes_to_say(reaper, "nothing")
    assert Table.memfd(engines=1).path_state() == "none"


def test_a_started_program_gets_a_table_without_a_path() -> None:
    table = Table.memfd(engines=2)
    program = "import headcount, sys; print(headcount.Table.from_fd(int(sys.argv[1])).join().slot)"
    command = [sys.executable, "-c", program, str(table.fileno())]
    ran = subprocess.run(command, pass_fds=[table.fileno()], stdout=subprocess.PIPE, check=True)
    assert int(ran.stdout) == 0
    with pytest.raises(OSError):
        Table.from_fd(-1)
    with pytest.raises(headcount.NotATableError):
        Table.from_fd(os.open("/dev/null", os.O_RDWR))


def _held_in(table: Table, reading: bool) -> None:
    """Runs in another process, and tells by its exit code what it sees."""
    if reading:
        try:
            table.join()
        except headcount.ReadOnlyError:
            os._exit(7)
    os._exit(len(table.view().frontends) + sum(e.in_flight for e in table.view().engines))


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_table_can_be_given_to_a_process(path: Path, method: str) -> None:
    table = Table.create(path, engines=2)
    frontend = table.join()
    permits = frontend.route_many(4)
    context: Any = multiprocessing.get_context(method)
    for given, code in ((frontend.table, 5), (Table.open_read_only(path), 7)):
        process = context.Process(target=_held_in, args=(given, code == 7))
        process.start()
        process.join()
        assert process.exitcode == code
    assert copy.copy(table).path == path
    if os.geteuid() == 0:
        os.chown(path, 12345, -1)
        theirs = Table.open(path, any_owner=True)
        assert pickle.loads(pickle.dumps(theirs)).path == path
        assert pickle.loads(pickle.dumps(theirs.join().table)).path == path
    del permits


def test_what_belongs_to_its_process_says_so_when_it_is_pickled(path: Path) -> None:
    table = Table.create(path, engines=2)
    frontend = table.join()
    things = [
        (frontend, "Frontend", "pickle its table"),
        (frontend.route(), "Permit", "number of its engine"),
        (table.publisher(), "Publisher", "table.publisher()"),
        (table.reap_every(1), "Reaper", "table.reap_every"),
        (table.deploy(), "Deployment", "one process"),
        (Table.memfd(engines=1), "Table", "has no path.*fileno"),
    ]
    path.unlink()
    things.append((table, "Table", "does not lie at its path any more.*fileno"))
    for thing, name, message in things:
        with pytest.raises(
            TypeError, match=f"headcount.{name}.*cannot be pickled.*{message}|{message}"
        ):
            pickle.dumps(thing)
