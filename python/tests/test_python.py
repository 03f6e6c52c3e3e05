"""What people who write Python expect of a package: its errors, types, names and pickles."""

from __future__ import annotations

import ast
import asyncio
import copy
import errno
import inspect
import multiprocessing
import os
import pickle
import subprocess
import sys
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import headcount
import pytest
from headcount import Engine, EngineStats, Frontend, Table
from headcount import _errors as errors
from headcount import _native as native


@pytest.fixture
def table() -> Table:
    return Table.memfd(engines=4)


@pytest.fixture
def frontend(table: Table) -> Frontend:
    return table.join()


# -- Arguments ---------------------------------------------------------------------------------------

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
        (Table.open, {"path": path, "any_owner": 1}, "any_owner must be True or False, not 1"),
        (Table.from_fd, {"fd": "3"}, "a descriptor must be a whole number, not '3'"),
        (Table.from_fd, {"fd": True}, "a descriptor must be a whole number, not True"),
    ]
    for call, arguments, message in calls:
        with pytest.raises(TypeError) as raised:
            call(**arguments)
        told = str(raised.value)
        assert message in told, (arguments, told)
        # Nothing of how the package is made.
        for word in ("::", "extract", "failed", "enum", "Vec", "tuple struct", "Rust", "an instance of"):
            assert word not in told, told
        assert len(told.splitlines()) == 1
    for seconds in (float("nan"), -1.0, 1e300):
        with pytest.raises(ValueError, match="period is .*, but it must be a number of seconds, 0 or more"):
            table.reap_every(seconds)
    with pytest.raises(ValueError, match="use 0 to 18446744073709551615"):
        publisher.publish([], words=(-1, 0))
    assert not path.exists()


@pytest.mark.parametrize("mode, meant", [(660, "0o660"), (600, "0o600"), (664, "0o664")])
def test_a_mode_in_decimal_is_told_in_octal(path: Path, mode: int, meant: str) -> None:
    with pytest.raises(headcount.OptionError) as raised:
        Table.create(path, engines=1, mode=mode)
    assert str(raised.value).startswith(f"mode is {mode:#o}, but it must be ")
    assert str(raised.value).endswith(f"did you mean {meant}?")
    assert raised.value.found == mode
    # Also where there is a table with another mode: what is wrong is the number.
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


# -- Errors ------------------------------------------------------------------------------------------


def test_messages_use_pythons_names(table: Table, path: Path) -> None:
    frontend = table.join()
    told: list[str] = []

    def tell(call: Callable[[], object]) -> None:
        with pytest.raises(headcount.Error) as raised:
            call()
        told.append(str(raised.value))

    found = table.find("3")
    assert found is not None
    table.remove(found)
    tell(lambda: table.drain(found))
    tell(lambda: table.drain(99))
    tell(lambda: table.set_weight(0, 0))
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        try:
            frontend.route()
        except headcount.ForkedError as error:
            os.write(writing, str(error).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        told.append(pipe.read())
    os.waitpid(child, 0)
    if os.geteuid() == 0:
        Table.create(path, engines=1)
        os.chown(path, 12345, -1)
        tell(lambda: Table.open(path))
        assert "`any_owner=True`" in told[-1]
    tell(lambda: Table.memfd())
    assert told[-1].startswith("a new table needs its engines, as in engines=4 or engines=[")
    assert "engines=0 if they come later" in told[-1]
    assert [text for text in told if "::" in text or "(true)" in text or "(0)" in text] == []
    assert ["`Table." in text for text in told[:4]] == [True] * 4


def test_errors_of_the_system_have_what_an_oserror_has(path: Path) -> None:
    def raised(call: Callable[[], object]) -> OSError:
        with pytest.raises(OSError) as raised:
            call()
        error = raised.value
        assert isinstance(error, headcount.Error)
        assert error.filename == os.fspath(error.path)  # type: ignore[attr-defined]
        assert isinstance(error.path, Path)  # type: ignore[attr-defined]
        assert error.errno is not None
        assert error.strerror == os.strerror(error.errno)
        # What it is told by its text, it is told in another process, too.
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert (str(again), again.errno, again.filename) == (str(error), error.errno, error.filename)
        assert str(error).startswith(str(path)) or "/proc" in str(error)
        return error

    missing = raised(lambda: Table.open(path))
    assert (missing.errno, missing.filename) == (errno.ENOENT, str(path))
    Table.create(path, engines=1)
    assert raised(lambda: Table.create(path, engines=1)).errno == errno.EEXIST
    assert raised(lambda: Table.create("/proc/headcount", engines=1)).errno is not None
    path.chmod(0o666)
    wide = raised(lambda: Table.open(path))
    assert isinstance(wide, headcount.ModeError)
    assert wide.errno == errno.EACCES
    path.chmod(0o600)


@pytest.mark.parametrize(
    "number, own",
    [
        (errno.EACCES, PermissionError),
        (errno.EPERM, PermissionError),
        (errno.ENOTDIR, NotADirectoryError),
        (errno.EINVAL, OSError),
        (None, OSError),
    ],
)
def test_an_io_is_of_pythons_own_class_for_its_number(
    number: int | None, own: type[OSError]
) -> None:
    """As for an ``OSError`` of Python's, of which that number chooses the class."""
    kind = errors.io(number)
    assert issubclass(kind, headcount.IoError) and issubclass(kind, own)
    assert kind is errors.io(number)
    assert (kind.__module__, kind.__qualname__) == ("headcount", "IoError")
    assert not issubclass(errors.io(errno.EINVAL), PermissionError)


def test_what_the_kernel_denies_is_a_permission_error(path: Path) -> None:
    def raised(call: Callable[[], object]) -> headcount.IoError:
        with pytest.raises(headcount.IoError) as raised:
            call()
        error = raised.value
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), again.errno) == (type(error), str(error), error.errno)
        assert copy.copy(error).path == error.path
        return error

    path.write_bytes(b"a file")
    through_a_file = raised(lambda: Table.open(path / "table"))
    assert isinstance(through_a_file, NotADirectoryError)
    path.unlink()
    if os.geteuid() != 0:
        assert isinstance(raised(lambda: Table.create("/proc/1/table", engines=1)), PermissionError)
        return
    # As a user who may not read what is root's.
    program = """
import headcount, os, sys
os.setgid(65534)
os.setuid(65534)
try:
    headcount.Table.open(sys.argv[1], any_owner=True)
except PermissionError as error:
    print(isinstance(error, headcount.IoError), error.errno, error.filename)
"""
    Table.create(path, engines=1)
    command = [sys.executable, "-c", program, str(path)]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert said.stdout == f"True {errno.EACCES} {path}\n", said.stderr


def test_a_descriptor_that_is_not_open_is_ebadf() -> None:
    for bad in (-1, 1 << 40):
        with pytest.raises(OSError, match=f"{bad} is no open descriptor") as raised:
            Table.from_fd(bad)
        assert raised.value.errno == errno.EBADF


def test_no_room_is_enospc() -> None:
    """A file system of a few pages, in a mount namespace of one's own."""
    program = """
import errno, headcount, subprocess, sys, tempfile
subprocess.check_call(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", sys.argv[1]])
try:
    headcount.Table.create(sys.argv[1] + "/table", engines=4)
except headcount.NoSpaceError as error:
    assert error.errno == errno.ENOSPC, error.errno
    print(error.needed > 16384)
"""
    apart = ["unshare", "--mount", "--user", "--map-root-user"]
    if subprocess.run([*apart, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        pytest.skip("no mount namespace can be made here")
    command = [*apart, sys.executable, "-c", program, "/mnt"]
    assert subprocess.check_output(command, text=True) == "True\n"


def test_a_refusal_says_which_cap_and_whether_it_passes() -> None:
    def refused(call: Callable[[], object]) -> tuple[str, bool]:
        with pytest.raises(headcount.SaturatedError) as raised:
            call()
        return raised.value.cap, raised.value.passes

    table = Table.memfd(engines=[Engine("a", max_in_flight=2, max_tokens=10)])
    frontend = table.join()
    assert refused(lambda: frontend.route(tokens=11)) == ("engine_tokens", False)
    assert refused(lambda: frontend.route_many(3)) == ("engine_requests", False)
    with frontend.route(tokens=4):
        assert refused(lambda: frontend.route(tokens=7)) == ("engine_tokens", True)
        with frontend.route():
            assert refused(frontend.route) == ("engine_requests", True)
    table.down(0)
    with pytest.raises(headcount.UnavailableError) as unavailable:
        frontend.route()
    assert (unavailable.value.engines, unavailable.value.down) == (1, 1)
    assert table.view().refusals_total == headcount.Refusals(
        engine_requests=2, engine_tokens=2, table_requests=0, table_tokens=0, unavailable=1
    )

    table = Table.memfd(engines=2, max_in_flight=2, max_tokens=12)
    frontend = table.join()
    assert refused(lambda: frontend.route(tokens=13)) == ("table_tokens", False)
    assert refused(lambda: frontend.route_many(3)) == ("table_requests", False)
    with frontend.route(tokens=4):
        assert refused(lambda: frontend.route(tokens=9)) == ("table_tokens", True)
        with frontend.route():
            assert refused(frontend.route) == ("table_requests", True)
    assert table.view().refusals_total == headcount.Refusals(0, 0, 2, 2, 0)


# -- Names and types ---------------------------------------------------------------------------------


@pytest.mark.parametrize("whose", ["table", "engine"])
def test_a_cap_of_zero_takes_nothing_and_none_is_no_cap(whose: str) -> None:
    def capped(max_in_flight: int | None = None, max_tokens: int | None = None) -> Table:
        if whose == "table":
            return Table.memfd(engines=["a"], max_in_flight=max_in_flight, max_tokens=max_tokens)
        engine = Engine("a", max_in_flight=max_in_flight, max_tokens=max_tokens)
        return Table.memfd(engines=[engine])

    table = capped(max_in_flight=0)
    with table.join() as frontend:
        for _ in range(2):
            with pytest.raises(headcount.SaturatedError) as refused:
                frontend.route()
            assert not refused.value.passes
            # As it is when the cap is changed in place.
            table.set_total_max_in_flight(None)
            table.set_caps(0, max_in_flight=0)
        table.set_caps(0, max_in_flight=None)
        frontend.route().release()
        table.set_total_max_in_flight(0)
        with pytest.raises(headcount.SaturatedError) as refused:
            frontend.route()
        assert not refused.value.passes
    # Of tokens, only what has none is taken.
    with capped(max_tokens=0).join() as frontend:
        frontend.route().release()
        with pytest.raises(headcount.SaturatedError) as refused:
            frontend.route(tokens=1)
        assert not refused.value.passes
    with capped(max_in_flight=None, max_tokens=None).join() as frontend:
        assert len(frontend.route_many(1000, tokens=1000)) == 1000


def test_names_are_those_under_which_they_are_found() -> None:
    for name in headcount.__all__:
        value = getattr(headcount, name)
        if isinstance(value, type):
            assert (value.__module__, value.__qualname__) == ("headcount", name)
            assert value.__doc__
    program = "import headcount; headcount.Table.open('/dev/shm/headcount-not-there')"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ran.stderr.splitlines()[-1].startswith("headcount.NotFoundError: ")


def test_the_version_is_that_of_the_package() -> None:
    from importlib.metadata import version

    assert headcount.__version__ == version("headcount")


def test_policies_have_a_type(table: Table) -> None:
    names: tuple[headcount.PolicyName, ...] = typing.get_args(headcount.PolicyName)
    assert len(names) == 6
    for name in names:
        table.join(policy=name)
    with pytest.raises(ValueError) as unknown:
        table.join(policy="none")  # type: ignore[arg-type]
    assert all(name in str(unknown.value) for name in names)


def test_paths_are_paths(path: Path) -> None:
    table = Table.create(path, engines=1)
    assert (table.path.name, table.path) == (path.name, path)


def test_the_stub_says_what_help_says() -> None:
    """Editors show the stub, and Python what was compiled."""
    stub = ast.parse(Path(native.__file__).with_name("_native.pyi").read_text())
    looked = 0
    for node in stub.body:
        if not isinstance(node, ast.ClassDef):
            continue
        cls = getattr(native, node.name)
        members = [m for m in node.body if isinstance(m, (ast.FunctionDef, ast.AsyncFunctionDef))]
        pairs = [(node, cls)] + [(m, getattr(cls, m.name)) for m in members if m.name[0] != "_"]
        for written, compiled in pairs:
            assert compiled.__doc__, (node.name, written.name)
            assert ast.get_docstring(written) == inspect.cleandoc(compiled.__doc__), written.name
            looked += 1
    assert looked > 40


# -- asyncio -----------------------------------------------------------------------------------------


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


# -- Deployments, health and looking -----------------------------------------------------------------


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
    # The same again changes nothing, and is what opens the table now.
    assert not table.apply(**options)
    assert str(table.apply(**options)) == ""
    Table.open_or_create(path, **options)
    # What a table was created with stays.
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
        # Without engines all stay, and without a cap there is none.
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
    # An operator's changes, which stand when a worker opens the table again.
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
    # What it was created with stays.
    fixed = table.differences(max_in_flight=50, threads=1, mode=0o660)
    told = [(it.option, it.found, it.asked, it.can_be_changed) for it in fixed]
    assert told == [("threads", "3", "1", False), ("mode", "0600", "0660", False)]
    with pytest.raises(headcount.DiffersError) as refused:
        table.apply(max_in_flight=50, threads=1, mode=0o660)
    assert refused.value.differences == fixed
    with pytest.raises(TypeError, match="engines must be a number"):
        table.differences(engines="a")
    # What it tells is what is done.
    assert table.apply(**options).differences == changed
    assert all(it.can_be_changed for it in changed)
    assert table.differences(**options) == []


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


def test_a_table_is_verified_and_dumped(path: Path) -> None:
    table = Table.create(path, engines=2)
    with table.join().route(tokens=5):
        found = table.verify()
    assert (found.is_consistent, found.faults, found.busy) == (True, [], [])
    assert found.counts > 2 and found.ledgers > 0
    assert "1 requests finished" in table.dump()
    path.rename(path.with_name(path.name + "-away"))
    try:
        found = table.verify()
    finally:
        path.with_name(path.name + "-away").rename(path)
    assert not found.is_consistent
    assert [fault.kind for fault in found.faults] == ["path"]
    assert str(path) in f"{found.faults[0].at} {found.faults[0].found}"


def test_a_request_may_exclude_or_prefer_an_engine_that_is_gone(
    table: Table, frontend: Frontend
) -> None:
    gone = table.find("3")
    assert gone is not None
    table.remove(gone)
    for engine in (gone, 3, 9, 1 << 31):
        assert frontend.route(exclude=[engine]).engine in (0, 1, 2)
        assert frontend.route(prefer=(engine, 100)).engine in (0, 1, 2)
        assert len(frontend.route_many(2, exclude=[engine])) == 2
        with pytest.raises(headcount.NoSuchEngineError):
            frontend.route(pin=engine)


def test_a_number_means_the_engine_that_has_it_now_and_an_id_that_very_engine(
    table: Table, frontend: Frontend
) -> None:
    gone = table.find("3")
    assert gone is not None
    table.remove(gone)
    new = table.add("new")
    assert new.index == gone.index == 3
    others = [0, 1, 2]
    for engine in (3, new):
        with pytest.raises(headcount.UnavailableError) as unavailable:
            frontend.route(exclude=[*others, engine])
        assert unavailable.value.excluded == 4
        with pytest.raises(headcount.UnavailableError):
            frontend.route_many(2, exclude=[*others, engine])
    # To exclude the one that is gone does not exclude the one that has its number now.
    with frontend.route(exclude=[*others, gone]) as permit:
        assert (permit.engine, permit.engine_id, permit.engine_name) == (3, new, "new")
        assert permit.engine_id != gone
        # Nor is it preferred, with a request more than the others.
        for engine, preferred in ((3, True), (new, True), (gone, False)):
            with frontend.route(prefer=(engine, 100)) as another:
                assert (another.engine_id == new) == preferred
    assert permit.engine_id == new, "the identity outlives the request"
    # What an id of a permit stands for is gone with its engine.
    table.remove(new)
    with pytest.raises(headcount.NoSuchEngineError):
        table.drain(permit.engine_id)


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


# -- Pickling ----------------------------------------------------------------------------------------


def _held_in(table: Table, reading: bool) -> None:
    """In another process."""
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
