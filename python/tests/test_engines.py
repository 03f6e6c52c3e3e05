"""Engines that come, change and go, and their identities."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable
from pathlib import Path

import headcount
import pytest
from headcount import Engine, EngineId, EngineStats, Frontend, Table


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
    table.drain(1)  # the engine that has the number now
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


def test_a_cap_of_the_whole_table_is_changed_without_the_other(table: Table) -> None:
    def caps() -> tuple[int | None, int | None]:
        view = table.view()
        return view.max_in_flight, view.max_tokens

    frontend = table.join()
    held = frontend.route_many(3, tokens=2)
    table.set_total_max_tokens(100)
    table.set_total_max_in_flight(2)
    assert caps() == (2, 100)
    with pytest.raises(headcount.SaturatedError) as saturated:
        frontend.route()
    assert (saturated.value.cap, saturated.value.passes) == ("table_requests", True)
    assert [engine.max_in_flight for engine in table.view().engines] == [None] * 4
    table.set_total_max_in_flight(4)
    assert caps() == (4, 100)
    with frontend.route():
        pass
    table.set_total_max_tokens(cap=6)
    with pytest.raises(headcount.SaturatedError) as saturated:
        frontend.route(tokens=1)
    assert saturated.value.cap == "table_tokens"
    table.set_total_max_tokens(None)
    assert caps() == (4, None)
    table.set_total_max_in_flight(cap=None)
    assert caps() == (None, None)
    for change in (table.set_total_max_in_flight, table.set_total_max_tokens):
        for bad in ("8", True, 1.0):
            with pytest.raises(TypeError, match=f"must be a whole number, not {bad!r}"):
                change(bad)  # type: ignore[arg-type]
        for bad in (-1, 1 << 32):
            with pytest.raises(ValueError, match=f"{bad} cannot be"):
                change(bad)
    assert caps() == (None, None)
    for permit in held:
        permit.release()


def test_only_who_may_write_changes_the_caps_of_a_table(path: Path) -> None:
    Table.create(path, engines=1, max_in_flight=3)
    reading = Table.open_read_only(path)
    for change in (reading.set_total_max_in_flight, reading.set_total_max_tokens):
        with pytest.raises(headcount.ReadOnlyError):
            change(9)
    assert reading.view().max_in_flight == 3


def test_a_health_check_does_not_undo_what_an_operator_does(table: Table) -> None:
    def states() -> list[str]:
        return [engine.state for engine in table.view().engines]

    table.drain(0)
    assert (table.down_if_active(0), table.up_if_down(0)) == (False, False)
    assert (table.up_if_down(1), table.down_if_active(1), table.down_if_active(1)) == (
        False,
        True,
        False,
    )
    assert states() == ["draining", "down", "active", "active"]
    assert (table.up_if_down(1), states()[1]) == (True, "active")
    with pytest.raises(headcount.NoSuchEngineError):
        table.up_if_down(9)


def test_a_cap_that_is_not_given_stays(table: Table) -> None:
    def caps() -> tuple[int | None, int | None]:
        engine = table.view().engines[0]
        return engine.max_in_flight, engine.max_tokens

    table.set_caps(0, 8, 900)
    table.set_caps(0, max_tokens=1000)
    assert caps() == (8, 1000)
    table.set_caps(0, 9)
    assert caps() == (9, 1000)
    table.set_caps(0, max_in_flight=None)
    assert caps() == (None, 1000)
    table.set_caps(0, None, None)
    assert caps() == (None, None)
    with pytest.raises(headcount.NoSuchEngineError):
        table.set_caps(9, 1)
