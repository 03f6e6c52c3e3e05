"""The example router under `uvicorn --workers 4`: real workers, engines, clients and signals."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import headcount
import httpx
import pytest
from routers import (
    EXAMPLES,
    OK,
    SILENT,
    ByteEngine,
    Engine,
    admitted,
    connection,
    exchange,
    in_flight,
    living,
    posted,
    reason,
    router,
    running,
    until,
)

PROMPT = b"a prompt of some length"
SERVERS = ["h11", "httptools"]


@asynccontextmanager
async def unreachable() -> AsyncIterator[str]:
    """Gives an address at which no engine listens. It is bound, so that no other process listens there."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield "http://127.0.0.1:%d" % taken.getsockname()[1]


async def ask(client: httpx.AsyncClient, url: str) -> str:
    response = await client.post(f"{url}/v1/completions", content=PROMPT)
    return f"{response.status_code} {response.text}"


def test_workers_share_one_table(path: Path) -> None:
    async def scene() -> None:
        async with (
            Engine().serving() as a,
            Engine().serving() as b,
            Engine().serving() as c,
            router(path, [a.url, b.url, c.url]) as url,
            httpx.AsyncClient(timeout=60, limits=httpx.Limits(max_connections=None)) as client,
        ):
            engines = [a, b, c]
            asked = [asyncio.create_task(ask(client, url)) for _ in range(48)]
            # All streams are open, and each engine has exactly a third of them.
            await until(lambda: [engine.open for engine in engines] == [16, 16, 16])
            assert in_flight(path) == [16, 16, 16]
            # Requests of clients that hang up are counted no more, and end at the engines.
            for task in asked[:18]:
                task.cancel()
            await until(lambda: sum(in_flight(path)) == 30)
            await until(lambda: sum(engine.open for engine in engines) == 30)
            # So are those of a killed worker.
            victim = max(living(path), key=lambda worker: worker.in_flight)
            os.kill(victim.pid, signal.SIGKILL)
            await until(lambda: sum(in_flight(path)) == 30 - victim.in_flight)
            # And so are streams that end.
            for engine in engines:
                engine.end.set()
            answers = await asyncio.gather(*asked[18:], return_exceptions=True)
            assert answers.count("200 beginend") == 30 - victim.in_flight
            await until(lambda: in_flight(path) == [0, 0, 0])

    asyncio.run(scene())


def test_an_engine_that_does_not_answer_is_passed_over(path: Path) -> None:
    async def scene() -> None:
        async with (
            unreachable() as gone,
            Engine("203 Fine").serving() as engine,
            router(path, [gone, engine.url], most=4) as url,
            httpx.AsyncClient(timeout=60) as client,
        ):
            asked = [asyncio.create_task(ask(client, url)) for _ in range(4)]
            await until(lambda: engine.open == 4 and in_flight(path) == [0, 4])
            # A token for every four bytes.
            view = headcount.Table.open_read_only(path).view()
            assert view.engines[1].tokens == 4 * -(-len(PROMPT) // 4)
            # The engine that answers is at its cap.
            full = await client.post(url, content=PROMPT)
            assert (full.status_code, full.headers["retry-after"]) == (503, "1")
            engine.end.set()
            assert await asyncio.gather(*asked) == ["203 beginend"] * 4

    asyncio.run(scene())


def test_a_request_that_its_engine_breaks_off_is_not_counted(path: Path) -> None:
    async def scene() -> None:
        asked = 0

        async def break_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal asked
            await reader.readuntil(b"\r\n\r\n")
            asked += 1
            writer.close()

        server = await asyncio.start_server(break_off, "127.0.0.1", 0)
        engine = "http://127.0.0.1:%d" % server.sockets[0].getsockname()[1]
        async with (
            server,
            router(path, [engine]) as url,
            # The worker closes a client's connection after an error.
            httpx.AsyncClient(
                timeout=60, limits=httpx.Limits(max_keepalive_connections=0)
            ) as client,
        ):
            for _ in range(20):
                answer = await ask(client, url)
                assert answer.startswith("5"), answer
                # At once, and not when the garbage collector runs.
                assert in_flight(path) == [0]
            assert asked >= 20

    asyncio.run(scene())


def test_workers_meet_again_in_one_table_when_theirs_is_removed(path: Path) -> None:
    async def scene() -> None:
        async with (
            Engine().serving() as engine,
            router(path, [engine.url]) as url,
            httpx.AsyncClient(timeout=60, limits=httpx.Limits(max_connections=None)) as client,
        ):
            asked = [asyncio.create_task(ask(client, url)) for _ in range(8)]
            await until(lambda: in_flight(path) == [8])
            removed = headcount.Table.open_read_only(path)
            old = {worker.pid for worker in living(path)}
            # One worker may have accepted all eight connections: that one stays alive.
            victim = min(living(path), key=lambda worker: worker.in_flight)
            path.unlink()
            # A worker is killed. Its successor creates another table, and the other workers notice that later.
            os.kill(victim.pid, signal.SIGKILL)
            engine.end.set()
            answers = await asyncio.gather(*asked, return_exceptions=True)
            assert answers.count("200 beginend") == 8 - victim.in_flight, (
                "what the others had was finished"
            )
            await until(lambda: path.exists() and len(living(path)) == 4)
            assert not old & {worker.pid for worker in living(path)}
            await until(lambda: not any(worker.alive for worker in removed.view().frontends))
            assert await ask(client, url) == "200 beginend"

    asyncio.run(scene())


def test_a_router_takes_over_a_table_that_is_not_used_and_no_other(path: Path) -> None:
    async def scene() -> None:
        async with ByteEngine(OK).serving() as a, ByteEngine(OK).serving() as b:
            headcount.Table.create(path, engines=[a.url, "http://gone"])
            async with router(path, [a.url], workers=1):
                # A second router, with other engines, must not replace those of the first.
                with running(path, [b.url], workers=1) as (_, second):
                    await until(lambda: second.poll() is not None)
                    assert second.returncode != 0
                table = headcount.Table.open(path)
                (engine,) = table.view().engines
                assert (engine.name, engine.max_in_flight) == (a.url, 1024)
                # A new worker starts though an operator has changed a cap.
                table.set_caps(0, 7)
                with running(path, [a.url], workers=1) as (url, _):
                    await until(lambda: len(living(path)) == 2)
                    assert (await exchange(url, posted(b"{}")))[1] == b"ok"
                assert table.view().engines[0].max_in_flight == 7
            # All workers start anew, and leave the operator's cap as it is.
            async with router(path, [a.url], workers=2):
                assert table.view().engines[0].max_in_flight == 7
            # All workers start anew with another configuration, and apply it.
            with running(path, [a.url, b.url], ROUTER_MOST_PER_ENGINE="9") as (url, process):
                await until(lambda: len(living(path)) == 4)
                assert process.poll() is None
                caps = [engine.max_in_flight for engine in table.view().engines]
                assert caps == [9, 9]
            # A table of a deployment is left to that.
            with table.deploy(), running(path, [a.url], workers=1) as (_, process):
                await until(lambda: process.poll() is not None)
                assert process.returncode != 0
                assert len(table.view().engines) == 2

    asyncio.run(scene())


# -- Routers that are stopped ------------------------------------------------------------------------


def frontends(path: Path) -> list[headcount.FrontendView]:
    """Returns all frontends, also dead ones."""
    return headcount.Table.open_read_only(path).view().frontends


async def ended(process: subprocess.Popen[bytes]) -> None:
    await until(lambda: process.poll() is not None)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_router_that_is_stopped_leaves_no_dead_frontend(path: Path, workers: int) -> None:
    async def scene() -> None:
        async with ByteEngine(OK).serving() as engine:
            with running(path, [engine.url], workers) as (url, process):
                await until(lambda: path.exists() and len(living(path)) == workers)
                assert (await exchange(url, posted(b"{}")))[1] == b"ok"
                process.terminate()
                await ended(process)
                assert frontends(path) == []

    asyncio.run(scene())


@pytest.mark.parametrize("workers", [1, 2])
def test_a_router_that_is_stopped_amid_answers_leaves_no_dead_frontend(
    path: Path, workers: int
) -> None:
    async def scene() -> None:
        async with (
            Engine().serving() as engine,
            httpx.AsyncClient(timeout=60, limits=httpx.Limits(max_connections=None)) as client,
        ):
            # The router waits until its streams have ended.
            with running(path, [engine.url], workers) as (url, process):
                await until(lambda: path.exists() and len(living(path)) == workers)
                asked = [asyncio.create_task(ask(client, url)) for _ in range(8)]
                await until(lambda: engine.open == 8 and in_flight(path) == [8])
                process.terminate()
                await asyncio.sleep(0.5)
                assert (process.poll(), in_flight(path)) == (None, [8])
                engine.end.set()
                assert await asyncio.gather(*asked) == ["200 beginend"] * 8
                await ended(process)
                assert (frontends(path), in_flight(path)) == ([], [0])
            # It waits for them no longer than it was told.
            engine.end.clear()
            with running(path, [engine.url], workers, grace="1") as (url, process):
                await until(lambda: len(living(path)) == workers)
                asked = [asyncio.create_task(ask(client, url)) for _ in range(32)]
                await until(lambda: engine.open == 32 and in_flight(path) == [32])
                process.terminate()
                await ended(process)
                assert (frontends(path), in_flight(path)) == ([], [0])
                await asyncio.gather(*asked, return_exceptions=True)

    asyncio.run(scene())


# -- Clients that leave, or are slow -----------------------------------------------------------------


@pytest.mark.parametrize("http", SERVERS)
def test_a_client_that_leaves_is_noticed_while_its_engine_is_silent(path: Path, http: str) -> None:
    next_one = b"GET /next HTTP/1.1\r\nHost: router\r\n\r\n"

    async def scene() -> None:
        begun = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nbegin\r\n"
        async with (
            ByteEngine().serving() as engine,
            router(path, [engine.url], http=http) as url,
        ):
            # Clients leave before the head, amid the answer, and with requests that were not read yet.
            for answer in (SILENT, begun):
                # httptools notices only the last of several.
                for unread in (b"", b"\r\n", b"nonsense", next_one if http == "h11" else b""):
                    engine.answers = [answer]
                    async with connection(url) as (reader, writer):
                        writer.write(posted(b"{}"))
                        await until(lambda: engine.open == 1 and in_flight(path) == [1])
                        if answer:
                            await reader.readuntil(b"begin\r\n")
                        writer.write(unread)
                        # So that the worker reads it before the client leaves.
                        await asyncio.sleep(0.05)
                    await until(lambda: in_flight(path) == [0] and engine.open == 0)
            assert len(engine.heads) == 8

    asyncio.run(scene())


def test_a_place_is_taken_when_the_body_is_there(path: Path) -> None:
    async def scene() -> None:
        async with (
            ByteEngine(OK, OK).serving() as engine,
            router(path, [engine.url], most=1, workers=1, ROUTER_PATIENCE="1") as url,
            connection(url) as (reader, writer),
            connection(url) as (_, leaving),
        ):
            for slow in (writer, leaving):
                slow.write(posted(b"x" * 100)[:-1])
            # The engine has no place for two of them.
            assert (await exchange(url, posted(b"{}")))[1] == b"ok"
            leaving.close()
            head = await reader.readuntil(b"\r\n\r\n")
            assert reason((head, await reader.readuntil(b"}}"))) == (408, "body_timeout")
            assert (await exchange(url, posted(b"{}")))[1] == b"ok"
            assert (admitted(path), len(engine.heads)) == (2, 2)

    asyncio.run(scene())


def test_a_client_that_takes_nothing_does_not_hold_its_place_for_ever(path: Path) -> None:
    async def scene() -> None:
        endless = b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n" + bytes(100_000_000)
        async with (
            ByteEngine(endless).serving() as engine,
            router(path, [engine.url], workers=1, ROUTER_PATIENCE="0.5") as url,
            connection(url) as (reader, writer),
        ):
            writer.write(posted(b"{}"))
            await until(lambda: in_flight(path) == [1])
            await until(lambda: in_flight(path) == [0] and engine.open == 0)

    asyncio.run(scene())


# -- Requests that are several -----------------------------------------------------------------------


COSTS = [
    line.split(" ", 2)
    for line in (Path(__file__).parent / "costs.txt").read_text().splitlines()
    if line and not line.startswith("#")
]


async def counted(engine: ByteEngine, url: str, path: Path, body: bytes) -> tuple[int, int]:
    """Returns the places and the tokens that a request takes at the engine, which is silent."""
    engine.answers = [SILENT]
    async with connection(url) as (_, writer):
        writer.write(posted(body))
        await until(lambda: engine.open == 1)
        view = headcount.Table.open_read_only(path).view().engines[0]
    await until(lambda: engine.open == 0 and in_flight(path) == [0])
    return view.in_flight, view.tokens


def test_a_request_counts_as_many_as_its_engine_runs(path: Path) -> None:
    async def scene() -> None:
        async with (
            ByteEngine().serving() as engine,
            router(path, [engine.url], workers=1) as url,
        ):
            for places, tokens, body in COSTS:
                found = await counted(engine, url, path, body.encode())
                assert found == (int(places), int(places) * int(tokens)), body
            # More digits than Python makes an int of.
            digits = b'{"prompt": "1234", "n": 10, "seed": %b}' % (b"1" * 10_000)
            assert await counted(engine, url, path, digits) == (10, 10)

    assert len(COSTS) > 30
    asyncio.run(scene())


def test_the_tokens_of_all_requests_fit_into_what_counts_them(path: Path) -> None:
    async def scene() -> None:
        async with (
            ByteEngine().serving() as engine,
            router(path, [engine.url], workers=1) as url,
        ):
            # Estimated at more than 2**32 tokens.
            for many in (
                {"prompt": [{"file": ""}] * 5_000, "n": 1024},
                {"prompt": ["", [[{"file": ""}] * 9_000]], "n": 512},
            ):
                most = (2**32 - 1) // 1024
                found = await counted(engine, url, path, json.dumps(many).encode())
                assert found == (1024, 1024 * most)

    asyncio.run(scene())


def test_what_cannot_be_counted_is_refused(path: Path) -> None:
    def nested(depth: int) -> bytes:
        return b"[" * depth + b"]" * depth

    async def scene() -> None:
        async with (
            ByteEngine().serving() as engine,
            router(path, [engine.url], workers=1) as url,
        ):
            for depth in (1_000_000, 100_000):
                deep = b'{"prompt": "1234", "n": 10, "x": %b}' % nested(depth)
                assert reason(await exchange(url, posted(deep))) == (400, "bad_request")
            # JSON that can just be parsed may be nested too deeply to be counted. It gets one answer or the other.
            for depth in (100, *range(400, 1100, 20), 2_000, 5_000, 20_000):
                engine.answers = [OK]
                head, body = await exchange(url, posted(b'{"prompt": %b}' % nested(depth)))
                if body != b"ok":
                    assert depth > 100
                    assert reason((head, body)) == (400, "bad_request"), depth
            # More answers than a float can hold.
            endless = b"1" * 400
            for many in (b"1e999", b'"+1e999"', endless, b'"%b"' % endless):
                engine.answers = [OK]
                asked = posted(b'{"prompt": "p", "n": %b}' % many)
                assert reason(await exchange(url, asked)) == (400, "too_large"), many
            # A body that is no JSON counts as one request.
            engine.answers = [OK]
            assert (await exchange(url, posted(b"[" * 10)))[1] == b"ok"
            await until(lambda: in_flight(path) == [0])

    asyncio.run(scene())


def test_a_large_body_does_not_stop_other_requests(path: Path) -> None:
    many = b'{"prompt": [%b1]}' % (b"1," * 2_000_000)
    reading = """if True:
        import asyncio, sys, cost
        async def main():
            ticks = 0
            async def tick():
                nonlocal ticks
                while True:
                    await asyncio.sleep(0.001)
                    ticks += 1
            ticking = asyncio.create_task(tick())
            counted = await cost.cost(sys.stdin.buffer.read())
            print(*counted, ticks)
        asyncio.run(main())
    """
    # How late the event loop is while a large body is parsed.
    environment = os.environ | {"ROUTER_ENGINES": "http://127.0.0.1:9"}
    command = [sys.executable, "-c", reading]
    done = subprocess.run(
        command, input=many, cwd=EXAMPLES, env=environment, check=True, stdout=subprocess.PIPE
    )
    places, tokens, ticks = map(int, done.stdout.split())
    assert (places, tokens) == (1, 2_000_001)
    assert ticks > 5

    async def scene() -> None:
        async with ByteEngine().serving() as engine, router(path, [engine.url], workers=1) as url:
            # Far below the largest body, but it would take gigabytes when parsed.
            lists = b'{"prompt": [%b[]]}' % (b"[]," * 2_100_000)
            assert reason(await exchange(url, posted(lists))) == (413, "too_many_parts")
            assert not engine.heads

    asyncio.run(scene())


def test_what_is_no_text_counts_a_fixed_number(path: Path) -> None:
    def image(size: int) -> bytes:
        url = {"url": "data:image/png;base64," + "A" * size}
        message = {"content": [{"type": "image_url", "image_url": url}]}
        return json.dumps({"messages": [message]}).encode()

    async def scene() -> None:
        async with (
            ByteEngine().serving() as engine,
            router(path, [engine.url], workers=1) as url,
        ):
            for body in (image(10), image(1_500_000), b"\0" * 1_500_000):
                assert await counted(engine, url, path, body) == (1, 1000)

    asyncio.run(scene())


def test_several_go_to_one_engine_all_or_none(path: Path) -> None:
    async def scene() -> None:
        async with (
            ByteEngine(*[SILENT] * 9).serving() as a,
            ByteEngine(*[SILENT] * 9).serving() as b,
            router(path, [a.url, b.url], most=10) as url,
            connection(url) as (_, one),
            connection(url) as (_, two),
        ):

            def several(count: int) -> bytes:
                return posted({"prompt": ["p"] * count})

            one.write(several(6))
            await until(lambda: sorted(in_flight(path)) == [0, 6])
            # It goes to the other engine, though half of it would fit beside the first request.
            two.write(several(9))
            await until(lambda: sorted(in_flight(path)) == [6, 9])
            # Five places are free, but not at one engine.
            head, body = await exchange(url, several(5))
            assert reason((head, body)) == (503, "engines_saturated")
            assert b"retry-after: 1" in head.lower()
            assert b"cap" not in body, "words for the client"
            # It can never be taken, so the client is not asked to come back.
            head, body = await exchange(url, several(11))
            assert reason((head, body)) == (400, "too_large")
            assert b"retry-after" not in head.lower()
            for many in (b"11.0", b"1e99", b'"1e99"'):
                asked = posted(b'{"prompt": "p", "n": %b}' % many)
                found = reason(await exchange(url, asked))
                assert found == (400, "too_large"), many
            assert sorted(in_flight(path)) == [6, 9]
            # It goes to the engine at which it fits, also if that is not the least loaded.
            async with connection(url) as (_, three):
                three.write(several(4))
                await until(lambda: sorted(in_flight(path)) == [9, 10])
            await until(lambda: sorted(in_flight(path)) == [6, 9])
            assert sorted([a.open, b.open]) == [1, 1]
            # Nor can it be taken below a smaller cap of an operator.
            table = headcount.Table.open(path)
            table.set_caps(0, max_tokens=5)
            table.set_caps(1, max_tokens=5)
            assert reason(await exchange(url, posted({"prompt": "x" * 24}))) == (400, "too_large")
            assert reason(await exchange(url, posted({"prompt": "x"}))) == (
                503,
                "engines_saturated",
            )

    asyncio.run(scene())
