"""The plugin counts output, if it is asked to: on the client classes of several releases of vLLM."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from clients import SETTINGS, address, client, in_flight, request, table_of, tokens
from headcount.vllm import _output
from headcount.vllm._client import balance_of, install
from headcount.vllm._settings import Settings
from releases import core_client
from test_vllm_adapter import KNOWN


class Clock:
    """A clock that stands still until it is told to go on."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(_output, "time", clock)
    return clock


@pytest.fixture(params=KNOWN)
def module(request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    with core_client(request.param) as module:
        yield module


def serve(module: ModuleType, settings: Settings) -> Any:
    install(module, settings)
    return client(module, address())


def step(server: Any, rank: int, ended: tuple[str, ...] = (), **new: int) -> None:
    """An engine has put out so many tokens of these requests."""
    outputs = SimpleNamespace(
        engine_index=rank,
        finished_requests=set(ended) or None,
        outputs=[SimpleNamespace(request_id=name, new_token_ids=[5] * count) for name, count in new.items()],
    )
    asyncio.run(type(server).process_engine_outputs(server, outputs))


def test_output_is_counted_some_tokens_at_a_time(module: ModuleType, clock: Clock) -> None:
    server = serve(module, Settings(count_output=True))
    for name, rank in (("a", 1), ("b", 1), ("c", 2)):
        server.get_core_engine_for_request(request(name, rank=rank))
    assert tokens(server) == [0, 14, 7, 0]
    for _ in range(15):
        step(server, 1, a=1, b=0)
    assert tokens(server) == [0, 14, 7, 0], "fewer than 16 in no time"
    step(server, 1, a=1, b=1)
    assert tokens(server) == [0, 14 + 16, 7, 0]
    clock.now += 0.05
    step(server, 1, a=1, b=1)
    assert tokens(server) == [0, 14 + 16, 7, 0]
    clock.now += 0.06
    step(server, 1, b=1)
    assert tokens(server) == [0, 14 + 16 + 3, 7, 0], "all of b's, after 100 ms"
    step(server, 1, a=40)
    assert tokens(server) == [0, 14 + 57 + 3, 7, 0], "all of a's"
    step(server, 2, nobody=99)
    step(server, 1, ("a",), a=1)
    assert (in_flight(server), tokens(server)) == ([0, 1, 1, 0], [0, 7 + 3, 7, 0])
    step(server, 1, ("b",))
    step(server, 2, ("c",), c=20)
    assert (in_flight(server), tokens(server)) == ([0] * 4, [0] * 4)
    balance = balance_of(server)
    assert balance is not None and balance.output.uncounted == {}
    # An id that is used again starts anew.
    server.get_core_engine_for_request(request("a", rank=3))
    step(server, 3, a=16)
    assert tokens(server) == [0, 0, 0, 7 + 16]
    server.shutdown()


def test_output_that_a_cap_refuses_is_counted_when_there_is_room(
    module: ModuleType, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    server = serve(module, Settings(count_output=True))
    table = table_of(server)
    table.set_caps(0, max_tokens=30)
    for name in ("a", "b"):
        server.get_core_engine_for_request(request(name, rank=0))
    with caplog.at_level(logging.WARNING, logger="vllm.headcount"):
        step(server, 0, a=16)
        assert tokens(server)[0] == 30
        step(server, 0, b=16)
        assert tokens(server)[0] == 30, "no room"
        step(server, 0, ("a",))
        assert tokens(server)[0] == 7
        step(server, 0, b=1)
        assert tokens(server)[0] == 7, "tried again after 16 tokens or 100 ms"
        clock.now += 0.1
        step(server, 0, b=1)
        assert tokens(server)[0] == 7 + 18
    assert caplog.records == []
    server.shutdown()


def test_outputs_of_another_shape_are_no_error(
    module: ModuleType, caplog: pytest.LogCaptureFixture
) -> None:
    server = serve(module, Settings(count_output=True))
    server.get_core_engine_for_request(request("a", rank=0))
    with caplog.at_level(logging.WARNING, logger="vllm.headcount"):
        for _ in range(2):
            outputs = SimpleNamespace(finished_requests=None, outputs=[SimpleNamespace(request_id="a")])
            asyncio.run(type(server).process_engine_outputs(server, outputs))
    assert (in_flight(server), tokens(server)) == ([1, 0, 0, 0], [7, 0, 0, 0])
    assert len(caplog.records) == 1
    server.shutdown()


def test_output_is_not_counted_unless_it_is_asked_for(module: ModuleType) -> None:
    server = serve(module, SETTINGS)
    server.get_core_engine_for_request(request("a", rank=0))
    step(server, 0, a=100)
    assert tokens(server) == [7, 0, 0, 0]
    server.shutdown()
