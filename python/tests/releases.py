"""vLLM's own client classes, read from the wheels of its releases.

The module `vllm.v1.engine.core_client` of a release runs as it is in the wheel, and so do the modules that it needs
for its decisions. Everything else that it imports and that is not installed here (torch, the engines) is replaced
by modules that do nothing.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
import uuid
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

import zmq.asyncio

WHEELS = Path(__file__).parents[2] / "target" / "vllm-releases"
CORE_CLIENT = "vllm.v1.engine.core_client"
REAL = {CORE_CLIENT, "vllm.v1.pool.late_interaction"}
REPLACED = ("vllm", "torch", "ray", "psutil")


def wheels() -> dict[str, Path]:
    """Returns the wheels by their releases, oldest first."""
    found = {path.name.split("-")[1]: path for path in WHEELS.glob("vllm*.whl")}
    by_number = sorted(found, key=lambda v: [int(n) for n in v.split(".") if n.isdigit()])
    return {release: found[release] for release in by_number}


class _Replaced(ModuleType):
    """A module that has every name."""

    __path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = MagicMock(name=f"{self.__name__}.{name}")
        setattr(self, name, value)
        return value


class _Release(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, wheel: Path) -> None:
        self.wheel = wheel

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.split(".")[0] in REPLACED:
            return importlib.util.spec_from_loader(name, self)
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        if self._source(spec.name) is not None:
            return ModuleType(spec.name)
        module = _Replaced(spec.name)
        module.__dict__.update(OVERRIDES.get(spec.name, {}))
        return module

    def exec_module(self, module: ModuleType) -> None:
        source = self._source(module.__name__)
        if source is not None:
            exec(compile(source, f"{self.wheel.name}/{module.__name__}", "exec"), module.__dict__)
            # The releases import them from different modules.
            module.__dict__["make_zmq_socket"] = make_zmq_socket
            module.__dict__["get_open_zmq_inproc_path"] = lambda: f"inproc://{uuid.uuid4()}"

    def _source(self, name: str) -> bytes | None:
        if name not in REAL:
            return None
        with zipfile.ZipFile(self.wheel) as wheel:
            try:
                return wheel.read(name.replace(".", "/") + ".py")
            except KeyError:
                return None


def make_zmq_socket(
    ctx: zmq.asyncio.Context, path: str, socket_type: int, bind: bool | None = None, **_: Any
) -> zmq.asyncio.Socket:
    """Returns a real socket, as vLLM's own function does."""
    socket = ctx.socket(socket_type)
    if bind is None:
        bind = socket_type not in (zmq.PUSH, zmq.SUB, zmq.XSUB)
    (socket.bind if bind else socket.connect)(path)
    return socket


def _undecorated(**_: Any) -> Any:
    return lambda function: function


OVERRIDES: dict[str, dict[str, Any]] = {"vllm.tracing": {"instrument": _undecorated}}


@contextmanager
def core_client(release: str) -> Iterator[ModuleType]:
    """Gives the release's module, while the block runs."""
    finder = _Release(wheels()[release])
    sys.meta_path.insert(0, finder)
    try:
        yield importlib.import_module(CORE_CLIENT)
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name.split(".")[0] in REPLACED]:
            del sys.modules[name]
