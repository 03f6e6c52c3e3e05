"""Errors: their classes, attributes and messages."""

from __future__ import annotations

import copy
import errno
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import headcount
import pytest
from headcount import Frontend, Table
from headcount import _errors as errors


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
    def classes(file: str, enum: str) -> set[str]:
        source = (Path(__file__).parents[2] / f"src/error/{file}.rs").read_text()
        variants = source.split(f"pub enum {enum} {{\n")[1].split("\n}\n")[0]
        names = re.findall(r"(?m)^    ([A-Z]\w*)(?: \{|\((?:#\[from\] )?\w+\),|,)$", variants)
        return {f"{name}Error" for name in names}

    # Not the library's own way to pass a table to a program, which Python does by path or descriptor. An error of a
    # wait has its own class.
    expected = classes("mod", "Error") - {"NotPassedError", "AcquireError"}
    # An error of a route has its own class, and a wait that is cancelled ends with the exception that cancels it.
    waiting = classes("acquire", "AcquireError")
    assert {"RouteError", "CancelledError"} < waiting
    expected |= waiting - {"RouteError", "CancelledError"}
    found = {name for name in headcount.__all__ if name.endswith("Error")}
    assert found == {"Error", *expected}
    assert len(found) == 36

    def under(kind: type[Exception]) -> list[type[Exception]]:
        return [kind, *(found for below in kind.__subclasses__() for found in under(below))]

    assert all(kind.__name__.endswith("Error") for kind in under(headcount.Error))


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
        # A pickled error keeps its text and its attributes.
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
    """Python chooses the class of an ``OSError`` by its number, too."""
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
    # As a user who may not read root's table.
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
    """On a file system of a few pages, in a mount namespace of its own."""
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
