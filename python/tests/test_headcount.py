"""The package's own face: what the library promises, as Python sees it."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import multiprocessing
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import headcount
import pytest
from headcount import Engine, EngineId, EngineStats, Frontend, Permit, Table


@pytest.fixture
def table() -> Table:
    return Table.memfd(engines=4)


@pytest.fixture
def frontend(table: Table) -> Frontend:
    return table.join()


def in_flight(table: Table) -> list[int]:
    return [engine.in_flight for engine in table.view().engines]


def tokens(table: Table) -> list[int]:
    return [engine.tokens for engine in table.view().engines]


# -- Routing -----------------------------------------------------------------------------------------


def test_c2_weights_decide_single_requests_a_few_and_bursts() -> None:
    table = Table.memfd(engines=[Engine("small"), Engine("large", weight=4.0)])
    frontend = table.join()

    def engine_of_one() -> int:
        with frontend.route() as permit:
            return permit.engine

    assert {engine_of_one() for _ in range(100)} == {1}
    with frontend.route(), frontend.route(), frontend.route():
        assert in_flight(table) == [0, 3]
    permits = frontend.route_many(50)
    assert in_flight(table) == [10, 40]
    del permits


def test_c2_a_burst_splits_exactly(table: Table, frontend: Frontend) -> None:
    permits = [frontend.route() for _ in range(256)]
    assert in_flight(table) == [64, 64, 64, 64]
    for permit in permits:
        permit.release()
    assert in_flight(table) == [0, 0, 0, 0]


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
    # By another policy it is the same place.
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
        ended: list[str] = []

        def route() -> None:
            begun.wait()
            try:
                while True:
                    frontend.route().release()
            except ValueError as error:
                ended.append(str(error))

        threads = [threading.Thread(target=route) for _ in range(4)]
        for thread in threads:
            thread.start()
        begun.wait()
        frontend.close()
        for thread in threads:
            thread.join()
        assert len(ended) == 4
        assert (in_flight(table), table.view().frontends) == ([0, 0, 0, 0], [])


def test_c5_tokens_are_counted(table: Table, frontend: Frontend) -> None:
    with frontend.route(tokens=812) as permit:
        assert permit.tokens == 812
        assert sum(tokens(table)) == 812
    assert sum(tokens(table)) == 0


def test_where_a_request_may_go(table: Table, frontend: Frontend) -> None:
    pinned = frontend.route(pin=3)
    assert (pinned.engine, pinned.engine_id) == (3, table.find("3"))
    assert isinstance(pinned.engine, int) and isinstance(pinned.engine_id, EngineId)
    assert pinned.engine_name == "3"
    for excluded in ([0, 1], {0, 1}, (0, 1), iter([0, 1])):
        assert frontend.route(exclude=excluded).engine == 2
    assert frontend.route(exclude=None).engine != 3
    assert frontend.route(prefer=(3, 1)).engine == 3
    assert frontend.route(prefer=(3, 0.5)).engine != 3


def test_c6_many_are_placed_or_none() -> None:
    table = Table.memfd(engines=[Engine("a", max_in_flight=3), "b"])
    frontend = table.join()
    permits = frontend.route_many(6)
    assert in_flight(table) == [3, 3]
    permits += frontend.route_many(2, tokens=4)
    assert in_flight(table) == [3, 5]
    with pytest.raises(headcount.SaturatedError):
        frontend.route_many(2, pin=0)
    assert in_flight(table) == [3, 5]
    assert frontend.route_many(0) == []
    assert len(permits) == 8


def test_policies_have_names(table: Table) -> None:
    for policy in ("in_flight", "open", "floor", "tokens", "round_robin", "power_of_two"):
        assert table.join(policy=policy, stale_after=0.5).route().engine in range(4)
    frontend = table.join().with_policy("tokens")
    big = frontend.route(tokens=100, pin=0)
    small = [frontend.route(tokens=1, exclude=[2, 3]).engine for _ in range(3)]
    assert small.count(0) == 0
    assert big.engine == 0
    with pytest.raises(ValueError, match='no policy "fastest".*in_flight'):
        table.join(policy="fastest")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="stale_after is -1"):
        table.join(stale_after=-1)


# -- Errors ------------------------------------------------------------------------------------------


def test_errors_have_kinds(table: Table, frontend: Frontend, path: Path) -> None:
    with pytest.raises(headcount.NoSuchEngineError) as raised:
        frontend.route(pin=9)
    assert raised.value.engine == 9
    with pytest.raises(headcount.UnavailableError) as unavailable:
        table.down(0)
        frontend.route(exclude=[1, 2, 3])
    assert (unavailable.value.down, unavailable.value.excluded) == (1, 3)
    with pytest.raises(headcount.NotFoundError) as missing:
        Table.open(path)
    assert isinstance(missing.value, FileNotFoundError)
    assert os.fspath(missing.value.path) == str(path)
    assert str(path) in str(missing.value)
    Table.create(path, engines=2, max_in_flight=1)
    with pytest.raises(headcount.ExistsError):
        Table.create(path, engines=1)
    with pytest.raises(headcount.DiffersError) as differs:
        Table.open_or_create(path, engines=3)
    assert (differs.value.engine, differs.value.option) == ("2", "engine")
    with pytest.raises(headcount.ReadOnlyError):
        Table.open_read_only(path).join()
    with pytest.raises(headcount.SaturatedError):
        assert Table.open(path).join().route_many(2)
    path.unlink()
    path.write_bytes(b"no table")
    with pytest.raises(headcount.NotATableError):
        Table.open(path)
    with pytest.raises(headcount.WeightError):
        table.set_weight(0, -1)
    with pytest.raises(headcount.EngineNameError):
        table.add("")
    with pytest.raises(headcount.NameTakenError) as taken:
        table.add("2")
    assert taken.value.engine == 2
    with pytest.raises(headcount.OptionError):
        Table.memfd(engines=1, max_engines=0)
    with pytest.raises(headcount.IoError):
        Table.create("/proc/headcount", engines=1)


def test_every_kind_is_an_error() -> None:
    kinds = [value for name, value in vars(headcount).items() if name in headcount.__all__]
    errors = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Exception)]
    assert all(issubclass(kind, headcount.Error) for kind in errors)
    assert all(kind.__doc__ for kind in kinds if isinstance(kind, type))


def test_the_class_for_each_error_of_the_library_is_named_by_one_rule() -> None:
    source = (Path(__file__).parents[2] / "src/error/mod.rs").read_text()
    variants = source.split("pub enum Error {\n")[1].split("\n}\n")[0]
    # What a program was not passed: Python opens a table by its path or its descriptor.
    expected = {f"{name}Error" for name in re.findall(r"(?m)^    ([A-Z]\w*)(?: \{|\(\w+\),|,)$", variants)}
    expected.remove("NotPassedError")
    found = {name for name in headcount.__all__ if name.endswith("Error")}
    assert found == {"Error", *expected}
    assert len(found) == 31

    def under(kind: type[Exception]) -> list[type[Exception]]:
        return [kind, *(found for below in kind.__subclasses__() for found in under(below))]

    assert all(kind.__name__.endswith("Error") for kind in under(headcount.Error))


@pytest.mark.parametrize(
    "bad", [{"tokens": -1}, {"tokens": 1 << 32}, {"pin": -1}, {"exclude": [-1]}, {"prefer": (-1, 1)}]
)
def test_arguments_out_of_range_are_told_what_would_be_in_it(
    frontend: Frontend, bad: dict[str, object]
) -> None:
    with pytest.raises(ValueError, match="use 0 to"):
        frontend.route(**bad)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        frontend.route(**dict.fromkeys(bad, "many"))  # type: ignore[arg-type]


# -- Publishing and looking --------------------------------------------------------------------------


def test_publications_are_seen(table: Table) -> None:
    stats = [EngineStats(waiting=3, running=20, kv_usage=0.5)] * 4
    with table.publisher() as publisher:
        publisher.publish(stats, words=(7, 1))
        with pytest.raises(headcount.PublisherHeldError) as held:
            table.publisher()
        assert held.value.pid == os.getpid()
        with pytest.raises(headcount.KvUsageError):
            publisher.publish([EngineStats(kv_usage=1.5)])
        with pytest.raises(headcount.TooManyStatsError):
            publisher.publish(stats * 2)
    with pytest.raises(ValueError, match="closed"):
        publisher.publish(stats)
    table.publisher().close()
    view = table.view()
    assert view.publication is not None
    assert view.publication.words == (7, 1)
    assert 0 <= view.publication.age < 60
    assert view.publisher is None
    assert view.engines[2].stats == EngineStats(3, 20, 0.5, in_flight=0)


@pytest.mark.parametrize(
    "kind",
    [
        headcount.View,
        headcount.EngineView,
        headcount.FrontendView,
        headcount.PublicationView,
        headcount.Dimensions,
    ],
)
def test_a_figure_has_the_name_that_it_has_in_the_library(kind: Any) -> None:
    room = "table/dimensions" if kind is headcount.Dimensions else "inspect/view"
    source = (Path(__file__).parents[2] / f"src/{room}.rs").read_text()
    struct = source.split(f"pub struct {kind.__name__} {{\n")[1].split("\n}\n")[0]
    names = re.findall(r"(?m)^    pub (\w+):", struct)
    assert {field.name for field in dataclasses.fields(kind)} == set(names)


def test_a_view_is_of_plain_objects(path: Path) -> None:
    table = Table.open_or_create(path, engines=[Engine("a", weight=2.0, max_tokens=10), "b"])
    frontend = table.join()
    with frontend.route(tokens=4, pin=0) as permit:
        view = table.view()
        assert view.engine(permit.engine) == view.engines[0]
        assert view.engine(5) is None
    (seen,) = view.frontends
    assert (seen.pid, seen.alive, seen.in_flight, seen.tokens) == (os.getpid(), True, 1, 4)
    engine = dataclasses.asdict(view)["engines"][0]
    assert engine["name"] == "a"
    assert engine["state"] == "active"
    assert (engine["weight"], engine["max_tokens"], engine["max_in_flight"]) == (2.0, 10, None)
    assert pickle.loads(pickle.dumps(view)) == view


def test_totals_are_those_since_an_engine_was_added(table: Table, frontend: Frontend) -> None:
    def totals(number: int) -> tuple[int, int]:
        view = table.view().engine(number)
        assert view is not None
        assert view.admitted_total - view.finished_total == view.in_flight
        return view.admitted_total, view.finished_total

    held = frontend.route_many(3, pin=1)
    for _ in range(4):
        frontend.route(tokens=5, pin=1).release()
    assert totals(1) == (7, 4)
    assert totals(0) == (0, 0)
    for permit in held:
        permit.release()
        permit.release()
    assert totals(1) == (7, 7)
    table.remove(1)
    assert table.add("another") == 1
    assert totals(1) == (0, 0)


def test_engines_come_and_go(table: Table, frontend: Frontend) -> None:
    number = table.add(Engine("new", weight=0.5))
    assert number == 4
    assert (table.find("new"), table.find("old")) == (number, None)
    permit = frontend.route(pin=4)
    assert table.remove(4) == 1
    view = table.view().engine(4)
    assert view is not None
    assert view.state == "leaving"
    permit.release()
    assert table.view().engine(4) is None
    table.drain(0)
    table.down(1)
    assert [engine.state for engine in table.view().engines][:2] == ["draining", "down"]
    table.up(0)
    table.set_caps(0, 1, None)
    frontend.route_many(1, pin=0)
    assert table.view().engines[0].max_in_flight == 1


def test_an_id_is_equal_to_its_number_and_to_no_other_engine() -> None:
    table = Table.memfd(engines=["a", "b"], max_engines=2)
    found = table.find("b")
    assert found is not None
    assert (found.index, int(found), str(found)) == (1, 1, "@1")
    assert found == 1 and 1 == found and found != 0 and found != "1"
    assert ["a", "b"][found] == "b"
    by_number: dict[int | EngineId, str] = {1: "one"}
    assert by_number[found] == "one"
    with table.join().route(pin=found) as permit:
        assert permit.engine == found
    view = table.view()
    assert view.engines[1].id == found == table.find("b")
    assert view.engine(found) == view.engine(1) == view.engines[1]
    table.remove(found)
    new = table.add("new")
    assert new == found.index and new != found
    assert len({new, found}) == 2
    assert table.view().engine(found) is None
    assert pickle.loads(pickle.dumps(found)) == found
    assert EngineId(found.index, found.generation) == found
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.index = 0  # type: ignore[misc]


def test_a_change_by_id_leaves_a_newcomer_with_the_same_number_alone() -> None:
    table = Table.memfd(engines=["a", "b"], max_engines=2)
    frontend = table.join()
    found = table.find("b")
    assert found is not None
    table.drain(found)
    table.down(found)
    table.up(found)
    table.set_weight(found, 2)
    table.set_caps(found, 5, 50)
    view = table.view().engines[1]
    assert (view.weight, view.max_in_flight, view.max_tokens) == (2, 5, 50)
    assert table.remove(found) == 0
    new = table.add("new")
    before = table.view().engines[1]
    changes: list[Callable[[], object]] = [
        lambda: table.drain(found),
        lambda: table.down(found),
        lambda: table.up(found),
        lambda: table.remove(found),
        lambda: table.set_weight(found, 3),
        lambda: table.set_caps(found, 1, None),
        lambda: frontend.route(pin=found),
        lambda: frontend.route_many(2, pin=found),
    ]
    for change in changes:
        with pytest.raises(headcount.NoSuchEngineError, match="was removed") as gone:
            change()
        assert (gone.value.engine, gone.value.removed) == (1, True)
        assert table.view().engines[1] == before
    with pytest.raises(headcount.NoSuchEngineError) as never:
        table.drain(2)
    assert (never.value.engine, never.value.removed) == (2, False)
    table.drain(1)  # by its number: whichever has it
    assert table.view().engines[1].state == "draining"
    table.up(new)


def test_names_may_have_as_many_bytes_as_the_constant_says() -> None:
    longest = "é" * (headcount.MAX_NAME_LEN // 2)
    table = Table.memfd(engines=[longest])
    assert table.view().engines[0].name == longest
    for name in (longest + "x", "x" * (headcount.MAX_NAME_LEN + 1)):
        with pytest.raises(headcount.EngineNameError, match=f"1 to {headcount.MAX_NAME_LEN} bytes"):
            table.add(name)
    for name in ("x" * headcount.MAX_NAME_LEN, "x"):
        assert table.find(name) is None
        assert table.add(Engine(name)) == table.find(name)


def test_the_largest_table_is_as_large_as_the_constants_say(path: Path) -> None:
    limits: list[tuple[str, int]] = [
        ("max_engines", headcount.MAX_ENGINES),
        ("max_frontends", headcount.MAX_FRONTENDS),
    ]
    for option, most in limits:
        Table.create(path, engines=1, threads=0, **{option: most})
        path.unlink()
        with pytest.raises(headcount.OptionError):
            Table.create(path, engines=1, threads=0, **{option: most + 1})
    table = Table.memfd(engines=1)
    table.set_caps(0, headcount.MAX_IN_FLIGHT - 1, None)
    assert table.view().engines[0].max_in_flight == headcount.MAX_IN_FLIGHT - 1
    table.set_caps(0, headcount.MAX_IN_FLIGHT, None)
    assert table.view().engines[0].max_in_flight is None, "no count gets further"


def test_what_is_changed_and_asked_for_is_there(table: Table) -> None:
    table.set_weight(1, 2.5)
    table.set_caps(2, None, 7)
    table.set_caps(3, 6, None)
    engines = table.view().engines
    assert [engine.weight for engine in engines] == [1.0, 2.5, 1.0, 1.0]
    caps = [(engine.max_in_flight, engine.max_tokens) for engine in engines]
    assert caps == [(None, None), (None, None), (None, 7), (6, None)]
    view = Table.memfd(engines=1, max_in_flight=5, max_tokens=60).view()
    assert (view.max_in_flight, view.max_tokens) == (5, 60)
    with table.publisher() as publisher:
        publisher.publish([EngineStats(1, 2, 0.5, in_flight=9)])
    stats = table.view().engines[0].stats
    assert stats == EngineStats(1, 2, 0.5, in_flight=9)


def test_a_policy_has_a_limit_to_what_is_new(table: Table) -> None:
    with table.publisher() as publisher:
        publisher.publish([EngineStats(running=100)] + [EngineStats()] * 3)
    frontend = table.join()
    wins = {}
    for limit in (0.0, 3600.0):
        floor = frontend.with_policy("floor", stale_after=limit)
        wins[limit] = [floor.route().engine for _ in range(8)].count(0)
    assert wins == {0.0: 2, 3600.0: 0}


# -- Processes and threads ---------------------------------------------------------------------------


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
                time.sleep(1e-6)  # lets another one go on amid this

    threads = [threading.Thread(target=route, args=[thread]) for thread in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # One after the other would be seven changes.
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


def test_k3_a_forked_child_never_acts_as_its_parent(table: Table, frontend: Frontend) -> None:
    permit = frontend.route(pin=0)
    publisher = table.publisher()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            permit.release()
            with pytest.raises(headcount.ForkedError):
                frontend.route()
            with pytest.raises(headcount.ForkedError):
                publisher.publish([])
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
    assert in_flight(table) == [1, 0, 0, 0]
    assert [seen.pid for seen in table.view().frontends] == [os.getpid()]
    frontend.route(pin=0).release()
    publisher.publish([EngineStats()])


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


def test_a_reaper_returns_it_by_itself(path: Path) -> None:
    table = Table.create(path, engines=2)
    with table.reap_every(0.02) as reaper:
        spawn = multiprocessing.get_context("spawn")
        process = spawn.Process(target=_route_in_another_process, args=(str(path), 10))
        process.start()
        process.join()
        while sum(in_flight(table)):
            pass
        assert reaper.last_error is None
    reaper.stop()


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
