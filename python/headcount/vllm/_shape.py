"""Whether vLLM's client class is of the shape that this plugin was made for.

The plugin makes the choice, and lets vLLM's own method do everything else: it sets the chosen rank in the request
while the method runs. That is right if the method obeys a request's rank, and decides by nothing that the plugin
does not know. So the plugin leaves a method alone that uses a name which is unknown here.
"""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

_NEEDED = {"core_engines", "data_parallel_rank", "lb_engines", "reqs_in_flight", "request_id"}

# The names that the method has used in some release from 0.9.2 on.
_KNOWN = _NEEDED | {
    # a streaming session stays where it is
    "add",
    "discard",
    "get",
    "resumable",
    "streaming_reqs",
    # late interaction
    "get_late_interaction_engine_index",
    "pooling_params",
    # the balancing that is replaced
    "client_count",
    "client_index",
    "core_engine",
    "engine_inflight",
    "eng_start_index",
    "len",
    "max",
    "maxsize",
    "range",
    "sys",
}


def problem(module: ModuleType) -> str | None:
    """Returns what is unknown about the module's client class, or None if it is of the known shape."""
    client = getattr(module, "DPLBAsyncMPClient", None)
    if not inspect.isclass(client):
        return "there is no class DPLBAsyncMPClient"
    choose = inspect.getattr_static(client, "get_core_engine_for_request", None)
    if not inspect.isfunction(choose):
        return "get_core_engine_for_request is no plain method"
    if list(inspect.signature(choose).parameters) != ["self", "request"]:
        return "get_core_engine_for_request takes other arguments"
    names = set(choose.__code__.co_names)
    if missing := _NEEDED - names:
        return f"get_core_engine_for_request does not use {', '.join(sorted(missing))}"
    if unknown := names - _KNOWN:
        return f"get_core_engine_for_request decides by something new: {', '.join(sorted(unknown))}"
    finish = inspect.getattr_static(client, "process_engine_outputs", None)
    if not isinstance(finish, staticmethod) or not inspect.iscoroutinefunction(finish.__func__):
        return "process_engine_outputs is no static coroutine"
    if not {"finished_requests", "reqs_in_flight"} <= set(finish.__func__.__code__.co_names):
        return "process_engine_outputs does not tell which requests have finished"
    for name in ("add_request_async", "get_output_async"):
        if not inspect.iscoroutinefunction(getattr(client, name, None)):
            return f"{name} is no coroutine"
    if not callable(getattr(client, "shutdown", None)):
        return "there is no shutdown"
    if hasattr(client, "lb_engines"):
        return "lb_engines is an attribute of the class"
    return None


def has_sessions(client: Any) -> bool:
    """Whether a request whose id is in flight already continues a session, which stays at its engine.

    In releases without sessions (0.9.2 to 0.15) it is another request: its client has given up the old one, and the
    engine has not dropped that yet.
    """
    return "get" in client.get_core_engine_for_request.__code__.co_names
