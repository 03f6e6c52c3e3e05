"""What tests of waiting share: a table with one place, and what is seen of its queue."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from headcount import Engine, QueueView, Table


def table_of(places: int = 1, waiting: int = 10_000, **options: object) -> Table:
    """Returns a table without a path, with one engine that has so many places."""
    engine = Engine("a", max_in_flight=places)
    return Table.memfd(engines=[engine], max_waiting=waiting, **options)  # type: ignore[arg-type]


def queue(table: Table) -> QueueView:
    found = table.view().queue
    assert found is not None
    return found


def waiting(table: Table) -> int:
    """Returns how many requests wait."""
    return sum(of_class.waiting for of_class in queue(table).classes)


def is_empty(table: Table) -> bool:
    """Whether nothing is counted: no request in flight, and none that waits."""
    view = table.view()
    held = sum(engine.in_flight for engine in view.engines)
    held += sum(frontend.waiting + frontend.in_flight for frontend in view.frontends)
    return held + waiting(table) == 0 and table.verify().is_consistent


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def compute() -> float:
    """Keeps the interpreter's lock for the seconds that it returns: some tens of milliseconds."""
    begun = time.monotonic()
    sum(range(5_000_000))  # one call, between two of whose steps no other thread runs
    return time.monotonic() - begun


class Holder:
    """Another process, which takes all places, gives them back one after the other when it is told to, and measures how
    long the last of them is idle."""

    def __init__(self, lines: TextIO, place: int) -> None:
        self._lines, self._place = lines, place

    def has_all(self) -> None:
        """Waits until it has all places."""
        assert self._lines.readline() == "held\n"

    def give_back(self) -> None:
        """Has it begin to give them back, in 5 ms."""
        os.write(self._place, b"x")

    def idle(self) -> float:
        """Returns for how many seconds the last place was idle; 1 if it was for longer."""
        return float(self._lines.readline())


@contextmanager
def holder(table: Table, places: int, rounds: int) -> Iterator[Holder]:
    reading, told = os.pipe()
    place, go = os.pipe()
    if (child := os.fork()) == 0:
        try:
            os.close(go)
            _hold(table, places, rounds, place, told)
        finally:
            os._exit(0)
    os.close(told)
    os.close(place)
    with os.fdopen(reading) as lines:
        yield Holder(lines, go)
    os.close(go)
    os.waitpid(child, 0)
    table.reap()


def _hold(table: Table, places: int, rounds: int, place: int, told: int) -> None:
    frontend = table.join()
    for _ in range(rounds):
        permits = [frontend.acquire(timeout=60) for _ in range(places)]
        os.write(told, b"held\n")
        os.read(place, 1)
        time.sleep(0.005)
        for permit in permits:
            permit.release()
            begun = time.monotonic()
            while table.view().engines[0].in_flight < places and time.monotonic() < begun + 1:
                pass
        os.write(told, b"%f\n" % (time.monotonic() - begun))
