"""The package as it is installed: its names, version, stub and help."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import headcount
from headcount import _native as native


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


def test_the_stub_says_what_help_says() -> None:
    """Editors show the docstrings of the stub, and ``help()`` those of the module."""
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
