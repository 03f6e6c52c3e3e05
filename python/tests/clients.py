"""Makes clients of vLLM's own classes. All of them is real, but the engines at the other end."""

from __future__ import annotations

import atexit
import inspect
import tempfile
import uuid
import weakref
from collections.abc import Iterable
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import headcount
import zmq.asyncio
from headcount.vllm._client import balance_of
from headcount.vllm._settings import Settings


# One context for all tests: a context that is collected waits for its sockets.
CONTEXT = zmq.asyncio.Context()
atexit.register(CONTEXT.destroy, linger=0)


def address() -> str:
    """Returns an address at which a coordinator can publish, another one for each deployment."""
    return f"ipc://{tempfile.gettempdir()}/{uuid.uuid4()}"


def client(
    module: ModuleType, coordinator: str, engines: int = 4, index: int = 0, count: int = 1
) -> Any:
    """Returns an API server's client, with the attributes that `MPClient` sets when it connects to the engines."""

    def connected(self: Any, *_: Any, **__: Any) -> None:
        self.vllm_config = config
        self.ctx = CONTEXT
        self.resources = module.BackgroundResources(ctx=self.ctx)
        self._finalizer = weakref.finalize(self, lambda: None)
        self.engines_running = False
        self.stats_update_address = coordinator
        self.engine_ranks_managed = list(range(engines))
        self.core_engines = [rank.to_bytes(2, "little") for rank in range(engines)]
        self.core_engine = self.core_engines[0]
        self.utility_results = {}
        self.encoder = self.decoder = MagicMock()
        self.input_socket = MagicMock()
        self.resources.output_socket = CONTEXT.socket(zmq.PULL)

    parallel = SimpleNamespace(
        enable_elastic_ep=False, data_parallel_external_lb=False, enable_fault_tolerance=False
    )
    config = SimpleNamespace(parallel_config=parallel)
    original = module.MPClient.__init__
    module.MPClient.__init__ = connected
    try:
        cls = module.DPLBAsyncMPClient
        arguments = {
            "vllm_config": config,
            "executor_class": None,
            "log_stats": False,
            "client_index": index,
        }
        if "client_count" in inspect.signature(cls).parameters:
            arguments["client_count"] = count
        made = cls(**arguments)
    finally:
        module.MPClient.__init__ = original
    counts = [0, 0, 0.0] if "kv_cache_usage" in names(cls) else [0, 0]
    made.lb_engines = [list(counts) for _ in range(engines)]
    return made


def names(cls: Any) -> set[str]:
    """Returns the local names of the release's own method of choice."""
    return set(inspect.unwrap(cls.get_core_engine_for_request).__code__.co_varnames)


def request(name: str, rank: int | None = None, prompt: int = 7, **more: Any) -> Any:
    fields = {
        "request_id": name,
        "data_parallel_rank": rank,
        "prompt_token_ids": [1] * prompt,
        "pooling_params": None,
        "resumable": False,
    }
    return SimpleNamespace(**{**fields, **more})


def finished(names: Iterable[str], engine_index: int | None = None) -> Any:
    """Returns an engine's outputs that end these requests, with its rank as in all known releases."""
    outputs = SimpleNamespace(finished_requests=set(names))
    if engine_index is not None:
        outputs.engine_index = engine_index
    return outputs


def table_of(client: Any) -> headcount.Table:
    balance = balance_of(client)
    assert balance is not None
    return balance.table


def in_flight(client: Any) -> list[int]:
    return [engine.in_flight for engine in table_of(client).view().engines]


def tokens(client: Any) -> list[int]:
    return [engine.tokens for engine in table_of(client).view().engines]


SETTINGS = Settings()
