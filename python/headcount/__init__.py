"""Exact in-flight counts in shared memory, for API-server processes that share LLM engines.

All processes of a host that open one table route by the same count, no stale update can overwrite it,
and a process that is killed leaves nothing behind.

    import headcount

    # In every API-server process: the same path, the same table.
    table = headcount.Table.open_or_create("/dev/shm/llama", engines=4)
    frontend = table.join()  # until frontend.close(), or the end of a with block

    with frontend.route(tokens=812) as permit:  # chosen and counted in one step
        ...  # send the request to engine number permit.engine
    # finished
"""

from headcount._engine import Engine, EngineId, EngineStats
from headcount._errors import (
    BusyError,
    ChecksumError,
    DeployedError,
    DiffersError,
    EngineNameError,
    EnginesFullError,
    Error,
    ExistsError,
    ForkedError,
    FrontendsFullError,
    GeometryError,
    IoError,
    KvUsageError,
    ModeError,
    NameTakenError,
    NoSpaceError,
    NoSuchEngineError,
    NotATableError,
    NotFoundError,
    OptionError,
    OwnerError,
    PublisherHeldError,
    ReadOnlyError,
    SaturatedError,
    SizeError,
    SymlinkError,
    TooManyStatsError,
    UnavailableError,
    VersionError,
    WeightError,
)
from headcount._native import (
    MAX_ENGINES,
    MAX_FRONTENDS,
    MAX_IN_FLIGHT,
    MAX_NAME_LEN,
    Deployment,
    Frontend,
    Permit,
    Publisher,
    Reaper,
    Table,
    __version__,
)
from headcount._policy import PolicyName
from headcount._view import (
    Changes,
    Difference,
    EngineView,
    Fault,
    FrontendView,
    Reaped,
    Refusals,
    SnapshotView,
    Verification,
    View,
)

__all__ = [
    "BusyError",
    "Changes",
    "ChecksumError",
    "DeployedError",
    "Deployment",
    "Difference",
    "DiffersError",
    "Engine",
    "EngineId",
    "EngineNameError",
    "EngineStats",
    "EngineView",
    "EnginesFullError",
    "Error",
    "ExistsError",
    "Fault",
    "ForkedError",
    "Frontend",
    "FrontendView",
    "FrontendsFullError",
    "GeometryError",
    "IoError",
    "KvUsageError",
    "MAX_ENGINES",
    "MAX_FRONTENDS",
    "MAX_IN_FLIGHT",
    "MAX_NAME_LEN",
    "ModeError",
    "NameTakenError",
    "NoSpaceError",
    "NoSuchEngineError",
    "NotATableError",
    "NotFoundError",
    "OptionError",
    "OwnerError",
    "Permit",
    "PolicyName",
    "Publisher",
    "PublisherHeldError",
    "ReadOnlyError",
    "Reaped",
    "Reaper",
    "Refusals",
    "SaturatedError",
    "SizeError",
    "SnapshotView",
    "SymlinkError",
    "Table",
    "TooManyStatsError",
    "UnavailableError",
    "Verification",
    "VersionError",
    "View",
    "WeightError",
    "__version__",
]

for _name in __all__:
    # Where users find them, and not where they are written: in tracebacks, and in what pickle keeps.
    if isinstance(_value := globals()[_name], type):
        _value.__module__ = __name__
del _name, _value
