"""The methods of vLLM's client class from which the plugin is called."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any

from headcount.vllm import _shape
from headcount.vllm._balance import Balance, Client, Request
from headcount.vllm._log import log
from headcount.vllm._settings import Settings

_ATTRIBUTE = "_headcount"

Make = Callable[[Client], Balance]


def install(module: ModuleType, settings: Settings) -> None:
    """Makes the module's clients balance by a table, if their class is of the known shape."""
    if hasattr(getattr(module, "DPLBAsyncMPClient", None), "__headcount__"):
        return
    problem = _shape.problem(module)
    if problem is not None:
        log.warning(
            "headcount: leaving vLLM as it is, because its client is of an unknown shape: %s", problem
        )
        return
    late_rank = getattr(module, "get_late_interaction_engine_index", None)
    make = functools.partial(
        Balance,
        settings=settings,
        late_rank=late_rank,
        has_sessions=_shape.has_sessions(module.DPLBAsyncMPClient),
    )
    _hook(module.DPLBAsyncMPClient, settings, make)


def balance_of(client: Client) -> Balance | None:
    """Returns the client's balance, or None if it has none."""
    balance: Balance | None = client.__dict__.get(_ATTRIBUTE)
    return balance


def _hook(cls: Any, settings: Settings, make: Make) -> None:
    init = cls.__init__
    choose = cls.get_core_engine_for_request
    process_outputs = cls.process_engine_outputs
    add_request = cls.add_request_async
    get_output = cls.get_output_async
    shutdown = cls.shutdown

    @functools.wraps(init)
    def __init__(self: Client, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        _join(self, settings, make)

    @functools.wraps(choose)
    def get_core_engine_for_request(self: Client, request: Request) -> bytes:
        balance = self.__dict__.get(_ATTRIBUTE)
        if balance is None:
            return choose(self, request)  # type: ignore[no-any-return]
        return balance.choose(self, request, choose)  # type: ignore[no-any-return]

    @functools.wraps(process_outputs)
    async def process_engine_outputs(self: Client, outputs: Any) -> None:
        await process_outputs(self, outputs)
        if outputs.finished_requests and (balance := balance_of(self)) is not None:
            balance.finish(outputs.finished_requests, getattr(outputs, "engine_index", None))
        if settings.count_output and (balance := balance_of(self)) is not None:
            balance.count_output(outputs)

    @functools.wraps(add_request)
    async def add_request_async(self: Client, request: Request) -> None:
        if (balance := balance_of(self)) is None:
            return await add_request(self, request)  # type: ignore[no-any-return]
        with balance.sending(request):
            await add_request(self, request)

    @functools.wraps(get_output)
    async def get_output_async(self: Client) -> Any:
        try:
            return await get_output(self)
        except Exception:
            # An engine is dead. vLLM then ends all requests of this client.
            if (balance := balance_of(self)) is not None:
                balance.finish_all()
            raise

    @functools.wraps(shutdown)
    def shut_down(self: Client, *args: Any, **kwargs: Any) -> Any:
        try:
            return shutdown(self, *args, **kwargs)
        finally:
            if (balance := self.__dict__.pop(_ATTRIBUTE, None)) is not None:
                balance.close()

    # vLLM replaces this list with each broadcast of its coordinator.
    def lb_engines(self: Client) -> Any:
        return self.__dict__["lb_engines"]

    def set_lb_engines(self: Client, counts: Any) -> None:
        self.__dict__["lb_engines"] = counts
        if (balance := balance_of(self)) is not None:
            balance.publish(self, counts)

    cls.__init__ = __init__
    cls.get_core_engine_for_request = get_core_engine_for_request
    cls.process_engine_outputs = staticmethod(process_engine_outputs)
    cls.add_request_async = add_request_async
    cls.get_output_async = get_output_async
    cls.shutdown = shut_down
    cls.lb_engines = property(lb_engines, set_lb_engines)
    cls.__headcount__ = True


def _join(client: Client, settings: Settings, make: Make) -> None:
    try:
        balance = make(client)
    except Exception as error:
        log.warning(
            "headcount: this API server balances as vLLM does, since it could not join a table: "
            "%s: %s",
            type(error).__name__,
            error,
        )
        return
    client.__dict__[_ATTRIBUTE] = balance
    # For a client that is not shut down: when it is collected, or at the latest when the process exits.
    weakref.finalize(client, balance.close)
    log.info(
        "headcount: this deployment's API servers balance %d engines by exact counts "
        "(policy %s); see them with `headcount top %s`, turn it off with HEADCOUNT_VLLM=0",
        len(client.core_engines),
        settings.policy,
        balance.table.path,
    )
