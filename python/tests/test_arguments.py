"""Arguments, and the errors for bad ones."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import headcount
import pytest
from headcount import Deployment, Dimensions, Engine, EngineId, EngineStats, Frontend, Table

ENGINES = "engines must be a number, or a list of headcount.Engine or of names"


@pytest.mark.parametrize(
    "engines, message",
    [
        ([1, 2], "engines[0]: an engine must be a headcount.Engine or a name, not 1"),
        (["a", None], "engines[1]: an engine must be a headcount.Engine or a name, not None"),
        ("gpu-0", f"{ENGINES}, as in ['gpu-0'], not 'gpu-0'"),
        (b"gpu-0", f"{ENGINES}, not b'gpu-0'"),
        (True, f"{ENGINES}, not True"),
        (4.0, f"{ENGINES}, not 4.0"),
        ({"a": 2.0}, f"{ENGINES}, not {{'a': 2.0}}"),
        (object, f"{ENGINES}, not <class 'object'>"),
        ([Engine(3)], "engines[0]: an engine's name must be a str, not 3"),  # type: ignore[arg-type]
        ([Engine("a", weight="2")], "an engine's weight must be a number, not '2'"),  # type: ignore[arg-type]
        ([Engine("a", max_in_flight="8")], "max_in_flight must be a whole number, not '8'"),  # type: ignore[arg-type]
        ([Engine("a", max_tokens=True)], "max_tokens must be a whole number, not True"),
    ],
)
def test_engines_that_cannot_be_are_told_in_pythons_words(engines: Any, message: str) -> None:
    with pytest.raises(TypeError) as raised:
        Table.memfd(engines=engines)
    assert message in str(raised.value)


def test_numbers_of_engines_are_what_python_takes_for_numbers() -> None:
    class Three:
        def __index__(self) -> int:
            return 3

    assert len(Table.memfd(engines=Three()).view().engines) == 3  # type: ignore[arg-type]
    assert len(Table.memfd(engines=("a", "b")).view().engines) == 2
    assert Table.memfd(engines=[]).view().engines == []
    for bad in (-1, 1 << 70):
        with pytest.raises(ValueError, match=f"{bad} cannot be a count; use 0 to"):
            Table.memfd(engines=bad)


AN_ENGINE = "an engine of a table is its number or its headcount.EngineId, not "


def test_arguments_of_a_wrong_type_are_told_in_pythons_words(
    table: Table, frontend: Frontend, path: Path
) -> None:
    publisher = table.publisher()
    calls: list[tuple[Callable[..., object], dict[str, Any], str]] = [
        (frontend.route, {"pin": "gpu-0"}, AN_ENGINE + "'gpu-0'; Table.find gives the id of a name"),
        (frontend.route, {"pin": 1.5}, AN_ENGINE + "1.5"),
        (frontend.route, {"pin": True}, AN_ENGINE + "True"),
        (frontend.route, {"tokens": True}, "must be a whole number, not True"),
        (frontend.route, {"tokens": "8"}, "must be a whole number, not '8'"),
        (frontend.route().set_tokens, {"tokens": 8.0}, "must be a whole number, not 8.0"),
        (
            frontend.route,
            {"exclude": 3},
            "exclude must be engines by their numbers or ids, as in [0, 2], not 3",
        ),
        (frontend.route, {"exclude": "01"}, "exclude must be engines by their numbers or ids"),
        (frontend.route, {"exclude": [0, None]}, AN_ENGINE + "None"),
        (frontend.route, {"prefer": 3}, "prefer must be an engine and a slack, as in (0, 8.0), not 3"),
        (frontend.route, {"prefer": (1, 2, 3)}, "prefer must be an engine and a slack"),
        (frontend.route, {"prefer": "12"}, "prefer must be an engine and a slack"),
        (frontend.route, {"prefer": ("a", 2)}, AN_ENGINE + "'a'"),
        (frontend.route, {"prefer": (1, "8")}, "the slack must be a number, not '8'"),
        (frontend.route_many, {"count": True}, "must be a whole number, not True"),
        (frontend.route_many, {"count": 2.0}, "a count must be a whole number, not 2.0"),
        (table.drain, {"engine": "gpu-0"}, AN_ENGINE + "'gpu-0'"),
        (table.remove, {"engine": None}, AN_ENGINE + "None"),
        (
            table.drain,
            {"engine": EngineId(0, "1")},  # type: ignore[arg-type]
            "the generation of an engine's id must be a whole number, not '1'",
        ),
        (table.set_caps, {"engine": 0, "max_in_flight": "8"}, "must be a whole number, not '"),
        (table.set_caps, {"engine": 0, "max_tokens": True}, "must be a whole number, not True"),
        (table.set_weight, {"engine": 0, "weight": "2"}, "an engine's weight must be a number, not '2'"),
        (table.set_weight, {"engine": 0, "weight": True}, "an engine's weight must be a number, not True"),
        (table.find, {"name": 5}, "an engine's name must be a str, not 5"),
        (table.find, {"name": b"0"}, "an engine's name must be a str, not b'0'"),
        (table.add, {"engine": 3}, "an engine must be a headcount.Engine or a name, not 3"),
        (publisher.publish, {"stats": 3}, "stats must be a list of headcount.EngineStats, not 3"),
        (
            publisher.publish,
            {"stats": [3]},
            "stats[0]: the statistics of an engine must be a headcount.EngineStats",
        ),
        (publisher.publish, {"stats": EngineStats()}, "stats must be a list of headcount.EngineStats"),
        (publisher.publish, {"stats": [EngineStats(running="3")]}, "running must be a whole number"),  # type: ignore[arg-type]
        (publisher.publish, {"stats": [EngineStats(kv_usage="3")]}, "kv_usage must be a number"),  # type: ignore[arg-type]
        (
            publisher.publish,
            {"stats": [], "words": 7},
            "words must be two whole numbers, as in (7, 1), not 7",
        ),
        (table.join, {"policy": 5}, "policy must be the name of a policy (in_flight, open, floor, "),
        (table.join, {"policy": None}, "power_of_two), not None"),
        (frontend.with_policy, {"policy": 5}, "policy must be the name of a policy"),
        (table.join, {"stale_after": "1"}, "a time in seconds must be a number, not '1'"),
        (table.join, {"stale_after": True}, "a time in seconds must be a number, not True"),
        (table.reap_every, {"period": None}, "a time in seconds must be a number, not None"),
        (Table.create, {"path": 3}, "expected str, bytes or os.PathLike object, not int"),
        (Table.create, {"path": path, "mode": "0660"}, "must be a whole number, not '"),
        (Table.create, {"path": path, "threads": False}, "a count must be a whole number, not False"),
        (Table.create, {"path": path, "max_waiting": "9"}, "a number of requests must be a whole number"),
        (Table.create, {"path": path, "share_tokens": 1}, "share_tokens must be True or False, not 1"),
        (Table.create, {"path": path, "max_waiting_of_class": 3}, "as in {3: 100}, not 3"),
        (Table.create, {"path": path, "max_waiting_of_class": {"a": 3}}, "a class must be a whole number"),
        (Table.create, {"path": path, "max_waiting_of_class": {1: None}}, "must be a whole number, not None"),
        (frontend.acquire, {"timeout": "1"}, "a time in seconds must be a number, not '1'"),
        (frontend.acquire, {"tokens": "8"}, "must be a whole number, not '8'"),
        (frontend.acquire, {"class_": 1.0}, "a class must be a whole number, not 1.0"),
        (frontend.acquire, {"class_": True}, "a class must be a whole number, not True"),
        (frontend.acquire, {"tenant": 7}, "a tenant's name must be a str, not 7"),
        (frontend.acquire, {"share": None}, "a tenant's share must be a whole number, not None"),
        (frontend.acquire, {"pin": "gpu-0"}, AN_ENGINE + "'gpu-0'"),
        (frontend.acquire_async, {"exclude": 3}, "exclude must be engines by their numbers or ids"),
        (Table.open, {"path": path, "any_owner": 1}, "any_owner must be True or False, not 1"),
        (Table.from_fd, {"fd": "3"}, "a descriptor must be a whole number, not '3'"),
        (Table.from_fd, {"fd": True}, "a descriptor must be a whole number, not True"),
    ]
    for call, arguments, message in calls:
        with pytest.raises(TypeError) as raised:
            call(**arguments)
        told = str(raised.value)
        assert message in told, (arguments, told)
        # No words of the Rust side.
        for word in ("::", "extract", "failed", "enum", "Vec", "tuple struct", "Rust", "an instance of"):
            assert word not in told, told
        assert len(told.splitlines()) == 1
    for seconds in (float("nan"), -1.0, 1e300):
        with pytest.raises(ValueError, match="period is .*, but it must be a number of seconds, 0 or more"):
            table.reap_every(seconds)
    with pytest.raises(ValueError, match="use 0 to 18446744073709551615"):
        publisher.publish([], words=(-1, 0))
    for bad in (-1, 1 << 64):
        told = f"{bad} cannot be the generation of an engine's id; use 0 to 18446744073709551615"
        with pytest.raises(ValueError, match=told):
            table.drain(EngineId(0, bad))
    assert not path.exists()


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


@pytest.mark.parametrize("bad", [-1, 1 << 32])
def test_a_permit_is_told_how_many_tokens_it_may_have(frontend: Frontend, bad: int) -> None:
    with frontend.route(tokens=3) as permit:
        with pytest.raises(ValueError, match="use 0 to"):
            permit.set_tokens(bad)
        assert permit.tokens == 3


@pytest.mark.parametrize("mode, meant", [(660, "0o660"), (600, "0o600"), (664, "0o664")])
def test_a_mode_in_decimal_is_told_in_octal(path: Path, mode: int, meant: str) -> None:
    with pytest.raises(headcount.OptionError) as raised:
        Table.create(path, engines=1, mode=mode)
    assert str(raised.value).startswith(f"mode is {mode:#o}, but it must be ")
    assert str(raised.value).endswith(f"did you mean {meant}?")
    assert raised.value.found == mode
    # Also where a table has another mode: the number itself is wrong.
    table = Table.create(path, engines=1)
    calls: list[Callable[[], object]] = [
        lambda: Table.open_or_create(path, engines=1, mode=mode),
        lambda: table.apply(mode=mode),
        lambda: table.deploy().apply(mode=mode),
    ]
    for call in calls:
        with pytest.raises(headcount.OptionError, match=f"did you mean {meant}"):
            call()
    with pytest.raises(headcount.DiffersError, match="mode is 0600, not 0640"):
        Table.open_or_create(path, engines=1, mode=0o640)


def test_a_mode_that_is_none_is_told_how_one_is_written(path: Path) -> None:
    for bad in (0o400, 0o1777, 999):
        with pytest.raises(headcount.OptionError, match="in octal, as in 0o660"):
            Table.create(path, engines=1, mode=bad)
    for bad in (-1, 1 << 40):
        with pytest.raises(ValueError, match=f"{bad} cannot be permission bits"):
            Table.create(path, engines=1, mode=bad)
    Table.create(path, engines=1, mode=0o660)
    assert path.stat().st_mode & 0o777 == 0o660


def test_the_largest_table_is_as_large_as_the_constants_say(path: Path) -> None:
    limits: list[tuple[str, Any]] = [
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


def test_paths_are_paths(path: Path) -> None:
    table = Table.create(path, engines=1)
    assert (table.path.name, table.path) == (path.name, path)


# The options of a table, by keyword; each function takes some or all of them.
QUEUE = ["max_waiting", "max_waiting_of_class", "share_tokens"]
OPTIONS = ["max_engines", "max_frontends", "threads", "max_in_flight", "max_tokens", *QUEUE, "mode"]


def functions(path: Path) -> dict[str, Callable[..., object]]:
    """Returns the functions that take options, by their names, for a table at the path."""
    table = Table.create(path, engines=1)
    with table.deploy() as deployment:
        pass
    return {
        "Table.open_or_create": partial(Table.open_or_create, path),
        "Table.create": partial(Table.create, path),
        "Table.memfd": Table.memfd,
        "Table.apply": table.apply,
        "Table.differences": table.differences,
        "Deployment.apply": deployment.apply,
    }


def signature(function: str) -> inspect.Signature:
    kind, name = function.split(".")
    return inspect.signature(getattr({"Table": Table, "Deployment": Deployment}[kind], name))


def test_help_shows_the_options_that_are_taken(path: Path) -> None:
    for name, function in functions(path).items():
        shown = signature(name).parameters
        options = [it.name for it in shown.values() if it.kind is inspect.Parameter.KEYWORD_ONLY]
        expected = {
            "Table.open_or_create": [*OPTIONS, "any_owner"],
            "Table.memfd": OPTIONS[:-1],
        }
        assert options == expected.get(name, OPTIONS)
        assert shown["engines"].default is None
        for option in OPTIONS:
            # A wrong value is refused by an option that is taken, and the option by a function that has none.
            refused = "must be (a whole|a bound for|True or)" if option in options else "unexpected keyword"
            with pytest.raises(TypeError, match=refused):
                function(engines=1, **{option: "many"})


def test_an_option_that_there_is_not_is_told_those_that_there_are(path: Path) -> None:
    for name, function in functions(path).items():
        for unknown in ("lanes", "Threads", ""):
            with pytest.raises(TypeError) as raised:
                function(engines=1, **{unknown: 4})
            parameters = str(signature(name)).replace("self, ", "").replace("/, ", "")
            assert str(raised.value) == (
                f"{name}() got an unexpected keyword argument '{unknown}'; its arguments are {parameters}"
            )


def test_each_option_is_of_the_table_that_is_made(path: Path) -> None:
    values = (7, 5, 2, 11, 13, 17, {1: 3}, True, 0o640)
    options: dict[str, Any] = dict(zip(OPTIONS, values, strict=True))
    table = Table.create(path, engines=["a", "b"], **options)
    size = path.stat().st_size
    made = table.dimensions()
    assert made == Dimensions(made.format, size, 7, 5, threads=2, engines=2, mode=0o640)
    view = table.view()
    assert (view.max_in_flight, view.max_tokens) == (11, 13)
    assert view.queue is not None
    bounds = [it.max_waiting for it in view.queue.classes]
    assert (view.queue.max_waiting, view.queue.share_tokens, bounds) == (17, True, [None, 3, None, None])
    assert table.differences(engines=["a", "b"], **options) == []
    other = {"max_waiting_of_class": {3: 4}, "share_tokens": False}
    changed = table.differences(engines=["a", "b"], **{**options, **other})
    assert [(it.option, it.found, it.asked) for it in changed] == [
        ("share_tokens", "true", "false"),
        ("max_waiting_of_class(1)", "3", "none"),
        ("max_waiting_of_class(3)", "none", "4"),
    ]
    # None leaves the default.
    plain = Table.memfd(engines=1).dimensions()
    assert Table.memfd(engines=1, **dict.fromkeys(OPTIONS[:-1])).dimensions() == plain
    assert (plain.max_engines, plain.max_frontends, plain.threads, plain.mode) == (64, 64, 3, 0o600)
    # With no lane for any thread, all threads share one.
    shared = Table.memfd(engines=1, threads=0)
    assert shared.dimensions().threads == 0
    shared.join().route().release()
    with pytest.raises(headcount.OptionError, match="threads is 5000, but it must be 0 to"):
        Table.memfd(engines=1, threads=5000)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exceptions have notes from Python 3.11 on")
def test_a_wrong_value_is_told_with_the_option_that_has_it() -> None:
    with pytest.raises(TypeError) as raised:
        Table.memfd(engines=1, max_tokens="8")  # type: ignore[arg-type]
    assert raised.value.__notes__ == ["while processing 'max_tokens'"]
