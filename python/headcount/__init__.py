"""Exact in-flight counts in shared memory, for API-server processes that share LLM engines.

All processes of a host that open one table route by the same count, no stale update can overwrite it,
and a process that is killed leaves nothing behind.

    import headcount

    # In every API-server process: the same path, the same table.
    table = headcount.Table.open_or_create("/dev/shm/llama", engines=4)
    frontend = table.join()

    with frontend.route(tokens=812) as permit:  # chosen and counted in one step
        ...  # send the request to engine number permit.engine
    # finished
"""

from headcount._engine import Engine, EngineId, EngineStats
from headcount._errors import (
    Busy,
    Checksum,
    Deployed,
    Differs,
    EngineName,
    EnginesFull,
    Error,
    Exists,
    Forked,
    FrontendsFull,
    Geometry,
    Io,
    KvUsage,
    Mode,
    NameTaken,
    NoSpace,
    NoSuchEngine,
    NotATable,
    NotFound,
    Option,
    Owner,
    PublisherHeld,
    ReadOnly,
    Saturated,
    Size,
    Symlink,
    TooManyStats,
    Unavailable,
    Version,
    Weight,
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
    "Busy",
    "Changes",
    "Checksum",
    "Deployed",
    "Deployment",
    "Difference",
    "Differs",
    "Engine",
    "EngineId",
    "EngineName",
    "EngineStats",
    "EngineView",
    "EnginesFull",
    "Error",
    "Exists",
    "Fault",
    "Forked",
    "Frontend",
    "FrontendView",
    "FrontendsFull",
    "Geometry",
    "Io",
    "KvUsage",
    "MAX_ENGINES",
    "MAX_FRONTENDS",
    "MAX_IN_FLIGHT",
    "MAX_NAME_LEN",
    "Mode",
    "NameTaken",
    "NoSpace",
    "NoSuchEngine",
    "NotATable",
    "NotFound",
    "Option",
    "Owner",
    "Permit",
    "PolicyName",
    "Publisher",
    "PublisherHeld",
    "ReadOnly",
    "Reaped",
    "Reaper",
    "Refusals",
    "Saturated",
    "Size",
    "SnapshotView",
    "Symlink",
    "Table",
    "TooManyStats",
    "Unavailable",
    "Verification",
    "Version",
    "View",
    "Weight",
    "__version__",
]

for _name in __all__:
    # Where users find them, and not where they are written: in tracebacks, and in what pickle keeps.
    if isinstance(_value := globals()[_name], type):
        _value.__module__ = __name__
del _name, _value
