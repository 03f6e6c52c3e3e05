"""Calls a function with a module once that is imported, which may be never.

vLLM loads its plugins in engines and workers as well. These do not need the engine client, and to import it there
would slow them down.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from headcount.vllm._log import log

Act = Callable[[ModuleType], None]


def then(name: str, act: Act) -> None:
    """Calls ``act`` with the module of that name: now if it is imported already, else when it is."""
    module = sys.modules.get(name)
    if module is not None:
        _do(act, module)
    elif not any(isinstance(finder, _Waiting) and finder.name == name for finder in sys.meta_path):
        sys.meta_path.insert(0, _Waiting(name, act))


def _do(act: Act, module: ModuleType) -> None:
    try:
        act(module)
    except Exception:
        log.warning("headcount: leaving vLLM as it is", exc_info=True)


class _Waiting(MetaPathFinder):
    def __init__(self, name: str, act: Act) -> None:
        self.name = name
        self.act = act

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Then(spec.loader, self.act)
        return spec


class _Then(Loader):
    """Loads a module by its own loader, and then calls the act."""

    def __init__(self, loader: Loader, act: Act) -> None:
        self._loader = loader
        self._act = act

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        _do(self._act, module)
