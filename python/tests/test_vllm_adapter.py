"""The plugin on the real client classes of several releases of vLLM."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import msgspec
import pytest
import zmq
from clients import (
    CONTEXT,
    SETTINGS,
    address,
    client,
    finished,
    in_flight,
    names,
    request,
    table_of,
    tokens,
)
from headcount.vllm._client import balance_of, install
from headcount.vllm._settings import Settings
from releases import core_client, wheels

UNKNOWN = {"0.8.5.post2", "0.9.0.post2", "0.9.1.post2"}
RELEASES = list(wheels())
KNOWN = [release for release in RELEASES if release not in UNKNOWN]


def test_there_are_releases_to_test_on() -> None:
    assert len(KNOWN) >= 3
    assert UNKNOWN & set(RELEASES)


@pytest.fixture(params=KNOWN)
def module(request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    with core_client(request.param) as module:
        install(module, SETTINGS)
        yield module


@pytest.fixture
def servers(module: ModuleType) -> Iterator[list[Any]]:
    """Two API servers of one deployment."""
    coordinator = address()
    servers = [client(module, coordinator, index=index, count=2) for index in range(2)]
    yield servers
    for server in servers:
        server.shutdown()


def finish(server: Any, *requests: str) -> None:
    asyncio.run(type(server).process_engine_outputs(server, finished(requests)))


def broadcast(server: Any, waiting: int) -> None:
    """Sends the same statistics of all engines, as the coordinator does."""
    server.lb_engines = [[waiting, 0] + [0.0] * (len(row) - 2) for row in server.lb_engines]


def test_a_burst_through_two_servers_splits_exactly(servers: list[Any]) -> None:
    for number in range(256):
        server = servers[number % 3 % 2]  # unevenly
        server.get_core_engine_for_request(request(f"r{number}"))
        if number % 50 == 0:
            broadcast(server, waiting=number % 7)
    assert in_flight(servers[0]) == [64, 64, 64, 64]
    assert tokens(servers[0]) == [64 * 7] * 4
    for server in servers:
        finish(server, *list(server.reqs_in_flight))
        assert not server.reqs_in_flight
    assert in_flight(servers[1]) == [0, 0, 0, 0]


def test_a_prompt_of_embeddings_counts_as_long_as_it_is(servers: list[Any]) -> None:
    embedded = request("a", prompt_token_ids=None, prompt_embeds=[0.5] * 9)
    servers[0].get_core_engine_for_request(embedded)
    assert sum(tokens(servers[0])) == 9
    neither = request("b", prompt_token_ids=None)
    servers[0].get_core_engine_for_request(neither)
    assert (sum(tokens(servers[0])), sum(in_flight(servers[0]))) == (9, 2)


def test_vllm_keeps_its_own_books(servers: list[Any]) -> None:
    server = servers[0]
    asked = request("a")
    engine = server.get_core_engine_for_request(asked)
    assert server.reqs_in_flight == {"a": engine}
    assert asked.data_parallel_rank is None
    if hasattr(server, "engine_inflight"):
        assert server.engine_inflight[engine] == 1
    finish(server, "a")
    assert server.reqs_in_flight == {}


def test_a_rank_of_the_requests_own_is_kept_and_counted(servers: list[Any]) -> None:
    asked = [request(f"r{n}", rank=2) for n in range(3)]
    engines = {servers[0].get_core_engine_for_request(one) for one in asked}
    assert engines == {servers[0].core_engines[2]}
    assert [one.data_parallel_rank for one in asked] == [2, 2, 2]
    assert in_flight(servers[1]) == [0, 0, 3, 0]


def test_a_late_interaction_rank_is_kept_and_counted(module: ModuleType, servers: list[Any]) -> None:
    if not hasattr(module, "get_late_interaction_engine_index"):
        pytest.skip("this release has none")
    late = SimpleNamespace(mode="cache_query", query_key="some query")
    params = SimpleNamespace(late_interaction_params=late)
    expected = module.get_late_interaction_engine_index(params, 4)
    assert expected is not None
    for number in range(3):
        engine = servers[0].get_core_engine_for_request(request(f"r{number}", pooling_params=params))
        assert engine == servers[0].core_engines[expected]
    assert in_flight(servers[1])[expected] == 3
    assert sum(in_flight(servers[1])) == 3


def test_a_streaming_session_stays_where_it_is_and_counts_once(servers: list[Any]) -> None:
    server = servers[0]
    if not has_sessions(server):
        pytest.skip("this release has no such sessions")
    engine = server.get_core_engine_for_request(request("session", resumable=True))
    rank = server.core_engines.index(engine)
    for number in range(5):
        servers[1].get_core_engine_for_request(request(f"r{number}", rank=rank))
        again = server.get_core_engine_for_request(request("session", resumable=True))
        assert again == engine
    assert in_flight(server)[rank] == sum(in_flight(server)) == 6
    finish(server, "session")
    assert in_flight(server)[rank] == sum(in_flight(server)) == 5


def sends(server: Any, error: Exception | None = None) -> list[Any]:
    """Makes the server keep what it sends, or fail to send it. Returns the list of what was sent."""
    sent: list[Any] = []

    async def sending(kind: Any, what: Any, engine: bytes) -> None:
        sent.append((what, engine))

    def send_input(kind: Any, what: Any, engine: bytes | None = None) -> Any:
        if error is not None:
            raise error
        return sending(kind, what, engine or server.core_engine)

    server._send_input = send_input
    server._ensure_stats_update_task = server._ensure_output_queue_task = lambda: None
    return sent


def test_a_request_goes_where_it_is_counted(servers: list[Any]) -> None:
    async def scene() -> None:
        server = servers[0]
        server.engines_running = True
        sent = sends(server)
        for number in range(8):
            await server.add_request_async(request(f"r{number}"))
        by_engine = [sum(engine == e for _, e in sent) for engine in server.core_engines]
        assert by_engine == in_flight(server) == [2, 2, 2, 2]
        assert all(what.data_parallel_rank is None for what, _ in sent)

    asyncio.run(scene())


def test_a_request_that_cannot_be_sent_is_not_counted(servers: list[Any]) -> None:
    async def scene() -> None:
        server = servers[0]
        sends(server, error=RuntimeError("no engine"))
        with pytest.raises(RuntimeError, match="no engine"):
            await server.add_request_async(request("a"))
        assert in_flight(server) == [0, 0, 0, 0]

    asyncio.run(scene())


class Refusing(dict[str, bytes]):
    """A dict that refuses every entry."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __setitem__(self, *_: object) -> None:
        raise self.error


@pytest.mark.parametrize("kind", [RuntimeError, KeyboardInterrupt])
def test_a_request_that_fails_in_vllms_own_method_is_not_counted(
    servers: list[Any], kind: type[BaseException]
) -> None:
    server = servers[0]
    books, server.reqs_in_flight = server.reqs_in_flight, Refusing(kind("the books are full"))
    asked = request("a")
    with pytest.raises(kind, match="the books are full"):
        server.get_core_engine_for_request(asked)
    server.reqs_in_flight = books
    assert in_flight(server) == [0, 0, 0, 0]
    assert asked.data_parallel_rank is None


def test_a_session_whose_next_part_cannot_be_sent_stays_counted(servers: list[Any]) -> None:
    async def scene() -> None:
        server = servers[0]
        if not has_sessions(server):
            pytest.skip("this release has no such sessions")
        sends(server)
        server.engines_running = True
        await server.add_request_async(request("session", resumable=True))
        sends(server, error=RuntimeError("no engine"))
        with pytest.raises(RuntimeError, match="no engine"):
            await server.add_request_async(request("session", resumable=True))
        # Its engine still has what was sent before.
        assert sum(in_flight(server)) == 1
        await type(server).process_engine_outputs(server, finished(["session"]))
        assert in_flight(server) == [0, 0, 0, 0]

    asyncio.run(scene())


def test_outputs_that_end_no_request_change_nothing(servers: list[Any]) -> None:
    async def scene() -> None:
        server = servers[0]
        server.get_core_engine_for_request(request("a"))
        # An engine sends such outputs after most of its steps.
        for nothing in (None, set[str]()):
            outputs = SimpleNamespace(finished_requests=nothing)
            await type(server).process_engine_outputs(server, outputs)
            assert sum(in_flight(server)) == 1
            assert list(server.reqs_in_flight) == ["a"]

    asyncio.run(scene())


def test_an_aborted_request_counts_until_its_engine_has_dropped_it(servers: list[Any]) -> None:
    async def scene() -> None:
        server = servers[0]
        sent = sends(server)
        engine = server.get_core_engine_for_request(request("a"))
        await server.abort_requests_async(["a"])
        assert sent == [(["a"], engine)]
        assert sum(in_flight(server)) == 1
        await type(server).process_engine_outputs(server, finished(["a"]))
        assert sum(in_flight(server)) == 0

    asyncio.run(scene())


def has_sessions(server: Any) -> bool:
    """Whether the release takes a request whose id is in flight for the next part of a session."""
    return "engine" in names(type(server))


@pytest.mark.parametrize("old_ends_first", [True, False])
@pytest.mark.parametrize("ranks", [(None, None), (2, 2), (2, 1)])
def test_an_id_used_again_while_the_old_request_is_aborted_counts_twice(
    servers: list[Any], ranks: tuple[int | None, int | None], old_ends_first: bool
) -> None:
    async def scene() -> None:
        server = servers[0]
        if has_sessions(server):
            pytest.skip("this release takes it for a session")
        sends(server)
        server.engines_running = True
        at: list[int] = []
        for rank in ranks:
            before = in_flight(servers[1])
            await server.add_request_async(request("a", rank=rank))
            at.append([now - then for now, then in zip(in_flight(servers[1]), before)].index(1))
            await server.abort_requests_async(["a"])
        assert sum(in_flight(servers[1])) == 2
        assert tokens(servers[1]) == [7 * count for count in in_flight(servers[1])]
        first, second = at if old_ends_first else reversed(at)
        await type(server).process_engine_outputs(server, finished(["a"], first))
        assert [rank for rank, count in enumerate(in_flight(servers[1])) if count] == [second]
        assert sum(in_flight(servers[1])) == 1
        # A report of an engine that never had it, or has ended it already, ends no other request.
        other = ({0, 1, 2, 3} - {second}).pop()
        await type(server).process_engine_outputs(server, finished(["a"], other))
        assert sum(in_flight(servers[1])) == 1
        await type(server).process_engine_outputs(server, finished(["a"], second))
        assert in_flight(servers[1]) == [0, 0, 0, 0]
        balance = balance_of(server)
        assert balance is not None
        assert balance.permits == {}

    asyncio.run(scene())


def test_an_id_used_again_that_cannot_be_sent_leaves_the_old_request_counted(
    servers: list[Any],
) -> None:
    async def scene() -> None:
        server = servers[0]
        if has_sessions(server):
            pytest.skip("this release takes it for a session")
        sends(server)
        server.engines_running = True
        await server.add_request_async(request("a", rank=3))
        sends(server, error=RuntimeError("no engine"))
        with pytest.raises(RuntimeError, match="no engine"):
            await server.add_request_async(request("a", rank=1))
        assert in_flight(servers[1]) == [0, 0, 0, 1]
        # The end of the server ends each of several requests of an id.
        sends(server)
        await server.add_request_async(request("a", rank=1))
        assert in_flight(servers[1]) == [0, 1, 0, 1]
        server.shutdown()
        assert in_flight(servers[1]) == [0, 0, 0, 0]

    asyncio.run(scene())


def test_the_death_of_an_engine_ends_all_requests(servers: list[Any]) -> None:
    async def scene() -> None:
        server = servers[0]
        for number in range(5):
            server.get_core_engine_for_request(request(f"r{number}"))
        server._ensure_output_queue_task = lambda: None
        server.outputs_queue.put_nowait(RuntimeError("an engine died"))
        with pytest.raises(RuntimeError):
            await server.get_output_async()
        assert in_flight(server) == [0, 0, 0, 0]

    asyncio.run(scene())


def test_engines_come_and_go(servers: list[Any]) -> None:
    for server in servers:
        for number in range(4):
            server.get_core_engine_for_request(request(f"before{number}"))
    assert in_flight(servers[0]) == [2, 2, 2, 2]
    for server in servers:  # up to 6, as vLLM does it
        server.core_engines.extend(rank.to_bytes(2, "little") for rank in (4, 5))
        server.lb_engines = server.lb_engines + [list(server.lb_engines[0]) for _ in range(2)]
    for number in range(4):
        servers[number % 2].get_core_engine_for_request(request(f"after{number}"))
    assert in_flight(servers[0]) == [2, 2, 2, 2, 2, 2]
    for server in servers:  # down to 2
        server.core_engines = server.core_engines[:2]
        server.lb_engines = server.lb_engines[:2]
    for number in range(4):
        engine = servers[number % 2].get_core_engine_for_request(request(f"last{number}"))
        assert engine in servers[0].core_engines
    assert in_flight(servers[0]) == [4, 4]
    for server in servers:  # and up again, from zero
        server.core_engines = server.core_engines + [(2).to_bytes(2, "little")]
        server.lb_engines = server.lb_engines + [list(server.lb_engines[0])]
    engine = servers[0].get_core_engine_for_request(request("new"))
    assert engine == (2).to_bytes(2, "little")
    assert in_flight(servers[0])[:3] == [4, 4, 1]


def test_a_server_that_knows_fewer_engines_uses_only_these(servers: list[Any]) -> None:
    ahead, behind = servers
    ahead.core_engines.append((4).to_bytes(2, "little"))
    ahead.lb_engines = ahead.lb_engines + [list(ahead.lb_engines[0])]
    for number in range(8):
        assert behind.get_core_engine_for_request(request(f"r{number}")) in behind.core_engines
    assert in_flight(ahead) == [2, 2, 2, 2, 0]


def test_the_coordinators_statistics_reach_the_table(module: ModuleType) -> None:
    """By vLLM's own task, over a real socket. When the first server ends, the other one publishes."""

    async def scene() -> None:
        coordinator = address()
        publish = CONTEXT.socket(zmq.XPUB)
        publish.bind(coordinator)
        servers = [client(module, coordinator, index=index, count=2) for index in range(2)]
        rows = [len(row) for row in servers[0].lb_engines]
        try:
            for server in servers:
                server._ensure_stats_update_task()

            async def seen(waiting: int) -> bool:
                counts = [[waiting, rank] + [0.25] * (row - 2) for rank, row in enumerate(rows)]
                await publish.send(msgspec.msgpack.encode((counts, 9, True)))
                await asyncio.sleep(0.05)
                view = table_of(servers[-1]).view()
                stats = [engine.stats for engine in view.engines]
                if view.snapshot is None or view.snapshot.words != (9, 1) or None in stats:
                    return False
                return [(s.waiting, s.running) for s in stats if s] == [
                    (waiting, rank) for rank in range(4)
                ]

            assert await eventually(lambda: seen(3))
            servers.pop(0).shutdown()
            assert await eventually(lambda: seen(4))
        finally:
            for server in servers:
                server.shutdown()
            publish.close(linger=0)

    asyncio.run(scene())


def test_a_broadcast_of_all_engines_is_published_and_no_other(servers: list[Any]) -> None:
    server = servers[0]
    rows = [len(row) for row in server.lb_engines]
    counts = [[7, 1] + [1.5] * (row - 2) for row in rows]

    def published() -> list[tuple[int, int, float]]:
        stats = [engine.stats for engine in table_of(server).view().engines]
        return [(s.waiting, s.running, s.kv_usage) for s in stats if s]

    # A broadcast of fewer engines, as while their number changes, is not published.
    server.lb_engines = counts[:3]
    assert published() == [(0, 0, 0.0)] * 4
    server.lb_engines = counts
    # A share of more than 1 is published as 1.
    share = 1.0 if rows[0] > 2 else 0.0
    assert published() == [(7, 1, share)] * 4


async def eventually(condition: Any, patience: float = 20.0) -> bool:
    deadline = asyncio.get_running_loop().time() + patience
    while not await condition():
        if asyncio.get_running_loop().time() > deadline:
            return False
    return True


def test_what_the_table_refuses_vllm_routes_itself(
    servers: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    server = servers[0]
    table = table_of(server)
    for engine in range(4):
        table.drain(engine)
    with caplog.at_level(logging.WARNING, logger="vllm.headcount"):
        for number in range(3):
            asked = request(f"r{number}")
            assert server.get_core_engine_for_request(asked) in server.core_engines
            assert asked.data_parallel_rank is None
    assert len(caplog.records) == 1
    finish(server, "r0", "r1", "r2")
    for engine in range(4):
        table.up(engine)
    server.get_core_engine_for_request(request("counted"))
    assert sum(in_flight(server)) == 1


@pytest.mark.parametrize("release", KNOWN)
def test_a_server_that_cannot_join_is_as_vllm_made_it(
    release: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene(server: Any) -> None:
        sends(server)
        server.engines_running = True
        await server.add_request_async(request("a"))
        broadcast(server, waiting=3)
        await type(server).process_engine_outputs(server, finished(["a"]))
        assert server.reqs_in_flight == {}
        sends(server, error=RuntimeError("no engine"))
        with pytest.raises(RuntimeError, match="no engine"):
            await server.add_request_async(request("b"))
        server.outputs_queue.put_nowait(RuntimeError("an engine died"))
        with pytest.raises(RuntimeError, match="an engine died"):
            await server.get_output_async()

    with core_client(release) as module:
        install(module, Settings(path="/proc/no/such/table"))
        with caplog.at_level(logging.WARNING, logger="vllm.headcount"):
            server = client(module, address())
        assert balance_of(server) is None
        asyncio.run(scene(server))
        server.shutdown()
    assert len(caplog.records) == 1
    assert "balances as vLLM does" in caplog.text


def test_two_deployments_do_not_share_a_table(module: ModuleType) -> None:
    first, second = client(module, address()), client(module, address())
    try:
        first.get_core_engine_for_request(request("a"))
        assert table_of(first).path != table_of(second).path
        assert sum(in_flight(second)) == 0
    finally:
        first.shutdown()
        second.shutdown()


def test_the_last_server_removes_the_table(servers: list[Any]) -> None:
    path = Path(table_of(servers[0]).path)
    servers[0].shutdown()
    assert path.exists()
    servers[1].shutdown()
    assert not path.exists()
    assert balance_of(servers[1]) is None
    tasks = Path("/proc/self/task").iterdir()
    names = [(task / "comm").read_text().strip() for task in tasks]
    assert "headcount-reap" not in names
    # vLLM itself routes a request that still comes.
    assert servers[1].get_core_engine_for_request(request("late")) in servers[1].core_engines


def test_a_server_leaves_the_table_though_vllms_own_end_fails(servers: list[Any]) -> None:
    class Failing:
        def __call__(self) -> None:
            raise RuntimeError("cannot end")

        detach = __call__

    server = servers[0]
    server.get_core_engine_for_request(request("a"))
    server._finalizer, finalizer = Failing(), server._finalizer
    with pytest.raises(RuntimeError, match="cannot end"):
        server.shutdown()
    server._finalizer = finalizer
    assert balance_of(server) is None
    assert sum(in_flight(servers[1])) == 0


def test_a_server_that_nobody_ends_leaves_with_its_client(module: ModuleType) -> None:
    server = client(module, address())
    path = Path(table_of(server).path)
    server.get_core_engine_for_request(request("a"))
    assert path.exists()
    del server
    gc.collect()
    assert not path.exists()


def test_k3_a_forked_child_closes_nothing_that_is_its_parents(servers: list[Any]) -> None:
    server = servers[0]
    server.get_core_engine_for_request(request("a"))
    balance = balance_of(server)
    assert balance is not None
    child = os.fork()
    if child == 0:
        code = 1
        try:
            # A forked child of a server calls this when it exits.
            balance.close()
            code = 0 if list(balance.permits) == ["a"] else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert sum(in_flight(server)) == 1
    finish(server, "a")
    assert sum(in_flight(server)) == 0


def test_installing_twice_is_as_good_as_once(module: ModuleType) -> None:
    before = module.DPLBAsyncMPClient.get_core_engine_for_request
    install(module, SETTINGS)
    assert module.DPLBAsyncMPClient.get_core_engine_for_request is before


@pytest.mark.parametrize("release", sorted(UNKNOWN & set(RELEASES)))
def test_a_release_of_another_shape_is_left_alone(
    release: str, caplog: pytest.LogCaptureFixture
) -> None:
    with core_client(release) as module:
        before = {name: dict(vars(value)) for name, value in classes(module).items()}
        with caplog.at_level(logging.WARNING, logger="vllm.headcount"):
            install(module, SETTINGS)
        assert {name: dict(vars(value)) for name, value in classes(module).items()} == before
    assert len(caplog.records) == 1
    assert "leaving vLLM as it is" in caplog.text


@pytest.mark.parametrize("release", KNOWN[-1:])
def test_a_method_that_decides_by_something_new_is_left_alone(
    release: str, caplog: pytest.LogCaptureFixture
) -> None:
    with core_client(release) as module:

        def get_core_engine_for_request(self: Any, request: Any) -> Any:
            if request.favourite_engine is not None:
                return request.favourite_engine
            self.reqs_in_flight[request.request_id] = self.lb_engines
            return self.core_engines[request.data_parallel_rank]

        module.DPLBAsyncMPClient.get_core_engine_for_request = get_core_engine_for_request
        with caplog.at_level(logging.WARNING, logger="vllm.headcount"):
            install(module, SETTINGS)
        chosen = module.DPLBAsyncMPClient.get_core_engine_for_request
        assert chosen is get_core_engine_for_request
    assert "favourite_engine" in caplog.text


async def _outputs(self: Any, outputs: Any) -> None:
    """A plain method in the place of a static one."""


@pytest.mark.parametrize(
    "name, value, problem",
    [
        ("lb_engines", None, "lb_engines is an attribute of the class"),
        ("process_engine_outputs", _outputs, "process_engine_outputs is no static coroutine"),
        ("add_request_async", len, "add_request_async is no coroutine"),
        ("shutdown", None, "there is no shutdown"),
        ("get_core_engine_for_request", None, "get_core_engine_for_request is no plain method"),
        ("get_core_engine_for_request", lambda self, request, more: None, "takes other arguments"),
    ],
)
def test_a_class_of_another_shape_is_left_alone(
    name: str, value: object, problem: str, caplog: pytest.LogCaptureFixture
) -> None:
    with core_client(KNOWN[-1]) as module:
        setattr(module.DPLBAsyncMPClient, name, value)
        before = dict(vars(module.DPLBAsyncMPClient))
        with caplog.at_level(logging.WARNING, logger="vllm.headcount"):
            install(module, SETTINGS)
        assert dict(vars(module.DPLBAsyncMPClient)) == before
    assert problem in caplog.text


def classes(module: ModuleType) -> dict[str, type]:
    return {name: value for name, value in vars(module).items() if isinstance(value, type)}


