"""Tables that are brought to a configuration, and the one deployment of each."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import headcount
import pytest
from headcount import Engine, Table


def test_a_table_serves_one_deployment(path: Path) -> None:
    table = Table.create(path, engines=2)
    with table.deploy() as deployment:
        assert deployment.table.path == path
        with pytest.raises(headcount.DeployedError, match="is served by process") as served:
            Table.open(path).deploy()
        assert (served.value.path, served.value.pid) == (path, os.getpid())
        assert table.view().deployment == os.getpid()
    deployment.close()
    table.deploy().close()


def test_a_living_table_is_brought_to_a_configuration(path: Path) -> None:
    options: dict[str, Any] = {"engines": [Engine("a", max_in_flight=8), "b"], "max_engines": 8}
    table = Table.create(path, **options)
    frontend = table.join()
    a, b = frontend.route(pin=0), frontend.route(pin=1)
    table.drain(0)
    options["engines"] = [Engine("a", max_in_flight=9), "c"]
    options["max_in_flight"] = 60
    with pytest.raises(headcount.DiffersError, match="`Table.apply`") as differs:
        Table.open_or_create(path, **options)
    first = differs.value.differences[0]
    told = (differs.value.engine, differs.value.option, differs.value.found, differs.value.asked)
    assert told == (first.engine, first.option, first.found, first.asked)
    assert headcount.Difference("a", "max_in_flight", "8", "9") in differs.value.differences
    changes = table.apply(**options)
    assert changes
    assert (changes.added, changes.removed) == (["c"], ["b"])
    assert sorted(str(changes).splitlines()) == [
        "engine a: max_in_flight 8, now 9",
        "engine b: removed",
        "engine c: added",
        "max_in_flight none, now 60",
    ]
    assert headcount.Difference(None, "max_in_flight", "none", "60") in changes.differences
    view = table.view()
    assert view.max_in_flight == 60
    assert [(e.name, e.state, e.in_flight) for e in view.engines] == [
        ("a", "draining", 1),
        ("b", "leaving", 1),
        ("c", "active", 0),
    ]
    # The same again changes nothing, and opens the table.
    assert not table.apply(**options)
    assert str(table.apply(**options)) == ""
    Table.open_or_create(path, **options)
    # The sizes of a table stay.
    with pytest.raises(headcount.DiffersError) as fixed:
        table.apply(**{**options, "engines": ["d"], "max_engines": 9})
    assert "max_engines" in [it.option for it in fixed.value.differences]
    assert table.find("d") is None
    # One deployment at a time.
    with table.deploy() as deployment:
        with pytest.raises(headcount.DeployedError):
            table.apply(**options)
        assert deployment.apply(engines=["a"]).removed == ["c"]
        assert deployment.apply(engines=[], max_in_flight=60).removed == ["a"]
        assert table.view().max_in_flight == 60
        # Without engines all engines stay, and without a cap the table has none.
        deployment.apply(engines=["e"])
        assert not deployment.apply()
        assert (table.find("e") is not None, table.view().max_in_flight) == (True, None)
    with pytest.raises(ValueError, match="closed"):
        deployment.apply(engines=["a"])
    with pytest.raises(TypeError, match="engines must be a number"):
        table.apply(engines="a")
    for permit in (a, b):
        permit.release()


def test_what_apply_would_change_is_told_and_not_changed(path: Path) -> None:
    options: dict[str, Any] = {
        "engines": [Engine("a", max_in_flight=8), "b"],
        "max_in_flight": 60,
    }
    table = Table.create(path, **options)
    assert table.differences(**options) == []
    # An operator's changes stay when a worker opens the table again.
    table.set_caps(0, 9)
    table.set_total_max_in_flight(50)
    table.remove(1)
    changed = [
        headcount.Difference(None, "max_in_flight", "50", "60"),
        headcount.Difference("a", "max_in_flight", "9", "8"),
        headcount.Difference("b", "engine", "absent", "present"),
    ]
    for opened in (Table.open_or_create(path, **options), Table.open_read_only(path)):
        assert opened.differences(**options) == changed
    view = table.view()
    assert ([e.name for e in view.engines], view.max_in_flight) == (["a"], 50)
    with pytest.raises(headcount.DiffersError) as differs:
        Table.open_or_create(path, engines=["a"], max_in_flight=60)
    assert differs.value.differences == table.differences(engines=["a"])[1:]
    # The sizes and the mode of the table stay.
    fixed = table.differences(max_in_flight=50, threads=1, mode=0o660)
    told = [(it.option, it.found, it.asked, it.can_be_changed) for it in fixed]
    assert told == [("threads", "3", "1", False), ("mode", "0600", "0660", False)]
    with pytest.raises(headcount.DiffersError) as refused:
        table.apply(max_in_flight=50, threads=1, mode=0o660)
    assert refused.value.differences == fixed
    with pytest.raises(TypeError, match="engines must be a number"):
        table.differences(engines="a")
    # ``apply`` does what ``differences`` has told.
    assert table.apply(**options).differences == changed
    assert all(it.can_be_changed for it in changed)
    assert table.differences(**options) == []
