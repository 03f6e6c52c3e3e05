"""The compiled half of ``headcount``; the docstrings are in it."""

from collections.abc import Iterable, Sequence
from os import PathLike
from types import TracebackType
from typing import Final, Literal, final

from headcount._engine import Engine, EngineId, EngineStats
from headcount._view import Reaped, View

__all__ = [
    "MAX_ENGINES",
    "MAX_FRONTENDS",
    "MAX_IN_FLIGHT",
    "MAX_NAME_LEN",
    "Frontend",
    "Permit",
    "Publisher",
    "Reaper",
    "Table",
]

MAX_ENGINES: Final[int]
MAX_FRONTENDS: Final[int]
MAX_IN_FLIGHT: Final[int]
MAX_NAME_LEN: Final[int]

_Policy = Literal["in_flight", "open", "floor", "tokens", "round_robin", "power_of_two"]
_Engines = int | Sequence[Engine | str]
_Which = int | EngineId

@final
class Table:
    @staticmethod
    def open_or_create(
        path: str | PathLike[str],
        engines: _Engines | None = None,
        *,
        max_engines: int | None = None,
        max_frontends: int | None = None,
        lanes: int | None = None,
        max_in_flight: int | None = None,
        max_tokens: int | None = None,
        mode: int | None = None,
        any_owner: bool = False,
    ) -> Table: ...
    @staticmethod
    def create(
        path: str | PathLike[str],
        engines: _Engines | None = None,
        *,
        max_engines: int | None = None,
        max_frontends: int | None = None,
        lanes: int | None = None,
        max_in_flight: int | None = None,
        max_tokens: int | None = None,
        mode: int | None = None,
    ) -> Table: ...
    @staticmethod
    def open(path: str | PathLike[str], *, any_owner: bool = False) -> Table: ...
    @staticmethod
    def open_read_only(path: str | PathLike[str], *, any_owner: bool = False) -> Table: ...
    @staticmethod
    def memfd(
        engines: _Engines | None = None,
        *,
        max_engines: int | None = None,
        max_frontends: int | None = None,
        lanes: int | None = None,
        max_in_flight: int | None = None,
        max_tokens: int | None = None,
    ) -> Table: ...
    @staticmethod
    def from_fd(fd: int, *, any_owner: bool = False) -> Table: ...
    def join(self, policy: _Policy = "in_flight", stale_after: float | None = None) -> Frontend: ...
    def publisher(self) -> Publisher: ...
    def snapshot(self) -> View: ...
    def reap(self) -> Reaped: ...
    def reap_every(self, period: float) -> Reaper: ...
    def add(self, engine: Engine | str) -> EngineId: ...
    def remove(self, engine: _Which) -> int: ...
    def drain(self, engine: _Which) -> None: ...
    def down(self, engine: _Which) -> None: ...
    def up(self, engine: _Which) -> None: ...
    def set_weight(self, engine: _Which, weight: float) -> None: ...
    def set_caps(
        self, engine: _Which, max_in_flight: int | None, max_tokens: int | None
    ) -> None: ...
    def find(self, name: str) -> EngineId | None: ...
    def path_state(self) -> Literal["here", "gone", "replaced", "none"]: ...
    @property
    def path(self) -> PathLike[str]: ...
    def fileno(self) -> int: ...

@final
class Frontend:
    def route(
        self,
        tokens: int = 0,
        pin: _Which | None = None,
        exclude: Iterable[_Which] | None = (),
        prefer: tuple[_Which, float] | None = None,
    ) -> Permit: ...
    def route_many(
        self,
        count: int,
        tokens: int = 0,
        pin: _Which | None = None,
        exclude: Iterable[_Which] | None = (),
        prefer: tuple[_Which, float] | None = None,
    ) -> list[Permit]: ...
    def with_policy(self, policy: _Policy, stale_after: float | None = None) -> Frontend: ...
    @property
    def table(self) -> Table: ...
    @property
    def slot(self) -> int: ...

@final
class Permit:
    @property
    def engine(self) -> int: ...
    @property
    def engine_name(self) -> str: ...
    @property
    def tokens(self) -> int: ...
    @property
    def released(self) -> bool: ...
    def release(self) -> None: ...
    def __enter__(self) -> Permit: ...
    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        value: BaseException | None = None,
        traceback: TracebackType | None = None,
        /,
    ) -> None: ...

@final
class Publisher:
    def publish(self, stats: Sequence[EngineStats], words: tuple[int, int] = (0, 0)) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Publisher: ...
    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        value: BaseException | None = None,
        traceback: TracebackType | None = None,
        /,
    ) -> None: ...

@final
class Reaper:
    @property
    def last_error(self) -> str | None: ...
    def stop(self) -> None: ...
    def __enter__(self) -> Reaper: ...
    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        value: BaseException | None = None,
        traceback: TracebackType | None = None,
        /,
    ) -> None: ...
