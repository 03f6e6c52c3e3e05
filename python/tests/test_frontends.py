"""Frontends and permits: when they end, and what ends with them."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from counts import in_flight, tokens
from headcount import EngineStats, Frontend, Permit, Table


def test_c3_releasing_twice_is_harmless(table: Table, frontend: Frontend) -> None:
    permit, other = frontend.route(pin=1), frontend.route(pin=1)
    assert not permit.released
    permit.release()
    permit.release()
    assert permit.released
    assert in_flight(table) == [0, 1, 0, 0]
    assert other.engine == 1


def test_c3_a_block_ends_its_request_also_by_an_error(table: Table, frontend: Frontend) -> None:
    with pytest.raises(ZeroDivisionError), frontend.route(tokens=5) as permit:
        assert tokens(table)[permit.engine] == 5
        1 / 0  # noqa: B018
    assert sum(in_flight(table)) == 0


def test_c3_the_garbage_collector_ends_a_request_at_the_latest(
    table: Table, frontend: Frontend
) -> None:
    frontend.route()
    assert sum(in_flight(table)) == 0
    cycle: list[object] = [frontend.route()]
    cycle.append(cycle)
    assert sum(in_flight(table)) == 1
    del cycle
    gc.collect()
    assert sum(in_flight(table)) == 0


def test_a_permit_outlives_its_frontend() -> None:
    table = Table.memfd(engines=1)
    permit = table.join().route()
    assert in_flight(table) == [1]
    assert len(table.view().frontends) == 1
    permit.release()
    assert table.view().frontends == []


def test_a_frontend_leaves_when_it_is_closed(table: Table) -> None:
    def frontends() -> int:
        return len(table.view().frontends)

    frontend = table.join()
    assert frontends() == 1
    frontend.close()
    frontend.close()
    assert frontends() == 0
    calls: list[Callable[[], object]] = [
        frontend.route,
        lambda: frontend.route_many(2),
        lambda: frontend.with_policy("tokens"),
        lambda: frontend.table,
        lambda: frontend.slot,
    ]
    for call in calls:
        with pytest.raises(ValueError, match="this frontend was closed; join its table anew"):
            call()
    assert (in_flight(table), frontends()) == ([0, 0, 0, 0], 0)
    with table.join() as frontend:
        assert (frontend.slot, frontends()) == (0, 1)
    assert frontends() == 0
    with pytest.raises(ZeroDivisionError), table.join() as frontend:
        1 / 0  # noqa: B018
    assert frontends() == 0
    # A frontend with another policy has the same place.
    with table.join() as frontend:
        other = frontend.with_policy("tokens")
    assert frontends() == 1
    other.route().release()
    other.close()
    assert frontends() == 0


def test_what_is_in_flight_when_a_frontend_is_closed_stays_counted(table: Table) -> None:
    with table.join() as frontend:
        permits = frontend.route_many(4)
    assert in_flight(table) == [1, 1, 1, 1]
    (left,) = table.view().frontends
    assert (left.alive, left.in_flight) == (True, 4)
    assert {permit.engine_name for permit in permits} == {"0", "1", "2", "3"}
    for permit in permits[1:]:
        permit.release()
    assert (sum(in_flight(table)), len(table.view().frontends)) == (1, 1)
    permits[0].release()
    assert (in_flight(table), table.view().frontends) == ([0, 0, 0, 0], [])


def test_threads_may_route_while_a_frontend_is_closed(table: Table) -> None:
    for _ in range(20):
        frontend = table.join()
        begun = threading.Barrier(5)
        routed = threading.Event()
        ended: list[str] = []

        def route() -> None:
            begun.wait()
            try:
                while True:
                    frontend.route().release()
                    routed.set()
            except ValueError as error:
                ended.append(str(error))

        threads = [threading.Thread(target=route) for _ in range(4)]
        for thread in threads:
            thread.start()
        begun.wait()
        assert routed.wait(60)
        frontend.close()
        for thread in threads:
            thread.join()
        assert len(ended) == 4
        assert (in_flight(table), table.view().frontends) == ([0, 0, 0, 0], [])


def test_what_with_ends_async_with_ends_too(table: Table, frontend: Frontend) -> None:
    def in_flight() -> int:
        return sum(engine.in_flight for engine in table.view().engines)

    async def scene() -> None:
        async with frontend.route() as permit:
            assert (in_flight(), permit.released) == (1, False)
            await asyncio.sleep(0)
        assert (in_flight(), permit.released) == (0, True)
        with pytest.raises(ZeroDivisionError):
            async with frontend.route():
                1 / 0  # noqa: B018
        assert in_flight() == 0

        async def held() -> None:
            async with frontend.route():
                await asyncio.sleep(600)

        task = asyncio.create_task(held())
        await asyncio.sleep(0)
        assert in_flight() == 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert in_flight() == 0
        async with table.publisher() as publisher, table.reap_every(1.0) as reaper:
            publisher.publish([EngineStats()])
            assert reaper.last_error is None
        with pytest.raises(ValueError, match="closed"):
            publisher.publish([])
        async with table.deploy() as deployment:
            assert table.view().deployment == os.getpid()
        assert table.view().deployment is None
        with pytest.raises(ValueError, match="closed"):
            deployment.table  # noqa: B018
        async with table.join() as another:
            assert len(table.view().frontends) == 2
        assert len(table.view().frontends) == 1
        with pytest.raises(ValueError, match="closed"):
            another.route()

    asyncio.run(scene())


def test_threads_share_a_frontend(table: Table, frontend: Frontend) -> None:
    held: list[Permit] = []
    by: list[int] = []
    start = threading.Barrier(8)

    def route(thread: int) -> None:
        start.wait()
        for number in range(500):
            frontend.route().release()
            held.append(frontend.route(tokens=1))
            by.append(thread)
            if number % 10 == 0:
                time.sleep(1e-6)  # lets another thread run in between

    threads = [threading.Thread(target=route, args=[thread]) for thread in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Seven changes are as many as threads that run one after the other have.
    assert sum(one != another for one, another in zip(by, by[1:])) > 7
    counts = in_flight(table)
    assert sum(counts) == sum(tokens(table)) == 4000
    for permit in held:
        permit.release()
    assert in_flight(table) == [0, 0, 0, 0]


def test_asyncio_tasks_share_a_frontend(table: Table, frontend: Frontend) -> None:
    async def serve() -> None:
        with frontend.route():
            await asyncio.sleep(10)

    async def scene() -> None:
        tasks = [asyncio.create_task(serve()) for _ in range(40)]
        await asyncio.sleep(0)
        assert in_flight(table) == [10, 10, 10, 10]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert in_flight(table) == [0, 0, 0, 0]

    asyncio.run(scene())


def test_what_is_held_says_of_which_table(path: Path) -> None:
    table = Table.create(path, engines=1)
    publisher, reaper, deployment = table.publisher(), table.reap_every(60), table.deploy()
    frontend = table.join()
    assert repr(frontend) == f"<headcount.Frontend 0 of {path}>"
    frontend.close()
    assert repr(frontend) == "<headcount.Frontend closed>"
    for thing, name in (
        (publisher, "Publisher"),
        (reaper, "Reaper"),
        (deployment, "Deployment"),
    ):
        assert repr(thing) == f"<headcount.{name} of {path}>"
    publisher.close()
    reaper.stop()
    deployment.close()
    assert repr(publisher) == "<headcount.Publisher closed>"
    assert repr(reaper) == "<headcount.Reaper stopped>"
    assert repr(deployment) == "<headcount.Deployment closed>"
