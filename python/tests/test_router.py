"""The example router under `uvicorn --workers 4`: real workers, engines, clients and signals."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import headcount
import httpx

PROMPT = b"a prompt of some length"
EXAMPLES = Path(__file__).parents[1] / "examples"


class Engine:
    """An HTTP server that begins each response at once and ends it when it is told to."""

    def __init__(self, status: str = "200 OK") -> None:
        self.status = status
        self.open = 0
        self.answered = 0
        self.end = asyncio.Event()
        self.url = ""

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Engine]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = "http://127.0.0.1:%d" % server.sockets[0].getsockname()[1]
        yield self
        self.end.set()
        server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = next((line for line in head.splitlines() if line.startswith("content-length")), ":0")
        await reader.readexactly(int(length.split(":")[1]))
        self.open += 1
        writer.write(f"HTTP/1.1 {self.status}\r\ntransfer-encoding: chunked\r\n".encode())
        writer.write(b"connection: close\r\n\r\n")
        writer.write(b"5\r\nbegin\r\n")
        await writer.drain()
        left = asyncio.create_task(reader.read())
        ended = asyncio.create_task(self.end.wait())
        await asyncio.wait([left, ended], return_when=asyncio.FIRST_COMPLETED)
        left.cancel()
        ended.cancel()
        writer.write(b"3\r\nend\r\n0\r\n\r\n")
        writer.close()
        self.open -= 1
        self.answered += 1


@asynccontextmanager
async def unreachable() -> AsyncIterator[str]:
    """The address of an engine that is not there. It is bound, so that no other process listens at it."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield "http://127.0.0.1:%d" % taken.getsockname()[1]


async def until(condition: Callable[[], bool | Awaitable[bool]]) -> None:
    for _ in range(2000):
        met = condition()
        if met if isinstance(met, bool) else await met:
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it did not come to be")


@asynccontextmanager
async def router(path: Path, engines: list[str], most: int = 1024) -> AsyncIterator[str]:
    environment = {
        "ROUTER_ENGINES": ",".join(engines),
        "ROUTER_TABLE": str(path),
        "ROUTER_MOST_PER_ENGINE": str(most),
    }
    command = [sys.executable, "-m", "uvicorn", "router:app", "--workers", "4"]
    # The socket is handed over as it is: no other process can take its port meanwhile.
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        process = subprocess.Popen(
            [*command, "--log-level", "warning", "--fd", str(listener.fileno())],
            cwd=EXAMPLES,
            env=os.environ | environment,
            pass_fds=[listener.fileno()],
            start_new_session=True,
        )
        try:
            await until(lambda: path.exists() and len(workers(path)) == 4)
            yield "http://127.0.0.1:%d" % listener.getsockname()[1]
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def workers(path: Path) -> list[headcount.FrontendView]:
    view = headcount.Table.open_read_only(path).snapshot()
    return [frontend for frontend in view.frontends if frontend.alive]


def in_flight(path: Path) -> list[int]:
    view = headcount.Table.open_read_only(path).snapshot()
    return [engine.in_flight for engine in view.engines]


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
            # All streams are open: each engine has exactly a third of them.
            await until(lambda: [engine.open for engine in engines] == [16, 16, 16])
            assert in_flight(path) == [16, 16, 16]
            # Clients that hang up are counted down, and their requests end at the engines.
            for task in asked[:18]:
                task.cancel()
            await until(lambda: sum(in_flight(path)) == 30)
            await until(lambda: sum(engine.open for engine in engines) == 30)
            # So is what a killed worker held.
            victim = max(workers(path), key=lambda worker: worker.in_flight)
            os.kill(victim.pid, signal.SIGKILL)
            await until(lambda: sum(in_flight(path)) == 30 - victim.in_flight)
            # And streams that end.
            for engine in engines:
                engine.end.set()
            answers = await asyncio.gather(*asked[18:], return_exceptions=True)
            assert answers.count("200 beginend") == 30 - victim.in_flight
            await until(lambda: in_flight(path) == [0, 0, 0])

    asyncio.run(scene())


def test_an_engine_that_does_not_answer_is_passed_over(path: Path) -> None:
    async def scene() -> None:
        async with (
            unreachable() as nobody,
            Engine("203 Fine").serving() as engine,
            router(path, [nobody, engine.url], most=4) as url,
            httpx.AsyncClient(timeout=60) as client,
        ):
            asked = [asyncio.create_task(ask(client, url)) for _ in range(4)]
            await until(lambda: engine.open == 4 and in_flight(path) == [0, 4])
            # A token for every four bytes.
            view = headcount.Table.open_read_only(path).snapshot()
            assert view.engines[1].tokens == 4 * (len(PROMPT) // 4)
            # The one that answers is full.
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
            # A worker closes a connection on which it has failed.
            httpx.AsyncClient(timeout=60, limits=httpx.Limits(max_keepalive_connections=0)) as client,
        ):
            for _ in range(20):
                answer = await ask(client, url)
                assert answer.startswith("5"), answer
                # At once, and not when the garbage is collected.
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
            old = {worker.pid for worker in workers(path)}
            # One of them may have accepted all eight connections: that one lives.
            victim = min(workers(path), key=lambda worker: worker.in_flight)
            path.unlink()
            # A worker dies, whose successor makes another table; it is the first to know, and not the last.
            os.kill(victim.pid, signal.SIGKILL)
            engine.end.set()
            answers = await asyncio.gather(*asked, return_exceptions=True)
            assert answers.count("200 beginend") == 8 - victim.in_flight, "what the others had was finished"
            await until(lambda: path.exists() and len(workers(path)) == 4)
            assert not old & {worker.pid for worker in workers(path)}
            await until(lambda: not any(worker.alive for worker in removed.snapshot().frontends))
            assert await ask(client, url) == "200 beginend"

    asyncio.run(scene())
