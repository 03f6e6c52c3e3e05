"""Publications and views: what is seen of a table."""

from __future__ import annotations

import dataclasses
import os
import pickle
import re
from pathlib import Path
from typing import Any

import headcount
import pytest
from headcount import Engine, EngineStats, Table


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
    assert view.snapshot is not None
    assert view.snapshot.words == (7, 1)
    assert 0 <= view.snapshot.age < 60
    assert view.publisher is None
    assert view.engines[2].stats == EngineStats(3, 20, 0.5, in_flight=0)


@pytest.mark.parametrize(
    "kind",
    [
        headcount.View,
        headcount.EngineView,
        headcount.FrontendView,
        headcount.SnapshotView,
        headcount.Dimensions,
        headcount.QueueView,
        headcount.ClassView,
        headcount.WaitedView,
        headcount.Reaped,
    ],
)
def test_a_figure_has_the_name_that_it_has_in_the_library(kind: Any) -> None:
    rooms = {"Dimensions": "table/dimensions", "Reaped": "table/mod"}
    rooms |= dict.fromkeys(["QueueView", "ClassView", "WaitedView"], "inspect/queue")
    room = rooms.get(kind.__name__, "inspect/view")
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


def test_a_table_is_verified_and_dumped(path: Path) -> None:
    table = Table.create(path, engines=2)
    with table.join().route(tokens=5):
        found = table.verify()
    assert (found.is_consistent, found.faults, found.busy) == (True, [], [])
    assert found.counts > 2 and found.ledgers > 0
    assert "finished: row " in table.dump()
    path.rename(path.with_name(path.name + "-away"))
    try:
        found = table.verify()
    finally:
        path.with_name(path.name + "-away").rename(path)
    assert not found.is_consistent
    assert [fault.kind for fault in found.faults] == ["path"]
    assert str(path) in f"{found.faults[0].at} {found.faults[0].found}"
