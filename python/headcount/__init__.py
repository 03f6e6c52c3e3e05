"""Exact in-flight counts in shared memory, for API-server processes that share LLM engines.

All processes of a host that open one table route by the same counts. No stale update can overwrite them, and
what a killed process had in flight is taken off again.

    import headcount

    # In every API-server process: the same path, the same table.
    table = headcount.Table.open_or_create("/dev/shm/llama", engines=4)
    frontend = table.join()  # this process's place, until frontend.close() or the end of a with block

    with frontend.route(tokens=812) as permit:  # the engine is chosen and the request counted in one step
        ...  # send the request to engine number permit.engine
    # the request is finished
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
    NoQueueError,
    NoSpaceError,
    NoSuchEngineError,
    NoThreadError,
    NotATableError,
    NotFoundError,
    OptionError,
    OwnerError,
    PolicyError,
    PublisherHeldError,
    QueueFullError,
    ReadOnlyError,
    RequestError,
    SaturatedError,
    SizeError,
    SymlinkError,
    TooManyStatsError,
    UnavailableError,
    VersionError,
    WaitedTooLongError,
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
    ClassView,
    Difference,
    Dimensions,
    EngineView,
    Fault,
    FrontendView,
    QueueView,
    Reaped,
    Refusals,
    SnapshotView,
    Verification,
    View,
    WaitedView,
)

__all__ = [
    "BusyError",
    "Changes",
    "ChecksumError",
    "ClassView",
    "DeployedError",
    "Deployment",
    "Difference",
    "DiffersError",
    "Dimensions",
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
    "NoQueueError",
    "NoSpaceError",
    "NoSuchEngineError",
    "NoThreadError",
    "NotATableError",
    "NotFoundError",
    "OptionError",
    "OwnerError",
    "Permit",
    "PolicyError",
    "PolicyName",
    "Publisher",
    "PublisherHeldError",
    "QueueFullError",
    "QueueView",
    "ReadOnlyError",
    "Reaped",
    "Reaper",
    "Refusals",
    "RequestError",
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
    "WaitedTooLongError",
    "WaitedView",
    "WeightError",
    "__version__",
]

for _name in __all__:
    # Tracebacks and pickles then name the module in which users find it.
    if isinstance(_value := globals()[_name], type):
        _value.__module__ = __name__
del _name, _value
