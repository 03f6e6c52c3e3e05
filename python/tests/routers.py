"""Runs the example router under uvicorn, with engines and clients that read and write bytes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import headcount

EXAMPLES = Path(__file__).parents[1] / "examples"


async def until(condition: Callable[[], bool | Awaitable[bool]]) -> None:
    for _ in range(2000):
        met = condition()
        if met if isinstance(met, bool) else await met:
            return
        await asyncio.sleep(0.02)
    raise AssertionError("the condition was not met within 40 s")


@contextmanager
def running(
    path: Path,
    engines: list[str],
    workers: int = 4,
    app: Path = EXAMPLES / "router.py",
    listening: socket.socket | None = None,
    **settings: str,
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Gives the address and the process of a router, or of another application in a file.

    The settings go to the environment; ``http`` and ``grace`` are uvicorn's own. The router serves at the socket that
    is given, or at a new one.
    """
    server = ["--http", settings.pop("http", "h11"), "--no-server-header", "--no-date-header"]
    if "grace" in settings:
        server += ["--timeout-graceful-shutdown", settings.pop("grace")]
    environment = {"ROUTER_ENGINES": ",".join(engines), "ROUTER_TABLE": str(path), **settings}
    command = [
        sys.executable,
        "-m",
        "uvicorn",
        f"{app.stem}:app",
        "--workers",
        str(workers),
        *server,
    ]
    # The open socket itself is passed on, so no other process can take its port meanwhile.
    with listening or socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        process = subprocess.Popen(
            [*command, "--log-level", "warning", "--fd", str(listener.fileno())],
            cwd=app.parent,
            env=os.environ | environment,
            pass_fds=[listener.fileno()],
            start_new_session=True,
        )
        try:
            yield "http://127.0.0.1:%d" % listener.getsockname()[1], process
        finally:
            with suppress(ProcessLookupError):  # it has ended by itself
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@asynccontextmanager
async def router(
    path: Path, engines: list[str], most: int = 1024, workers: int = 4, **settings: str
) -> AsyncIterator[str]:
    """Gives the address of a router whose workers have all started."""
    settings["ROUTER_MOST_PER_ENGINE"] = str(most)
    with running(path, engines, workers, EXAMPLES / "router.py", None, **settings) as (url, _):
        await until(lambda: path.exists() and len(living(path)) == workers)
        yield url


def living(path: Path) -> list[headcount.FrontendView]:
    view = headcount.Table.open_read_only(path).view()
    return [frontend for frontend in view.frontends if frontend.alive]


def in_flight(path: Path) -> list[int]:
    view = headcount.Table.open_read_only(path).view()
    return [engine.in_flight for engine in view.engines]


def admitted(path: Path) -> int:
    """Returns how many requests were ever placed."""
    view = headcount.Table.open_read_only(path).view()
    return sum(engine.admitted_total for engine in view.engines)


async def message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """Returns the head and the body of a request or response, with its framing as it came.

    Raises IncompleteReadError if it ends too early.
    """
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    fields = dict(line.split(b": ", 1) for line in lines[1:] if b": " in line)
    if b"transfer-encoding" in fields:
        body = b""
        while not body.endswith(b"\r\n0\r\n\r\n") and body != b"0\r\n\r\n":
            body += await reader.readuntil(b"\r\n")
        return head, body
    if b"content-length" in fields:
        return head, await reader.readexactly(int(fields[b"content-length"]))
    return head, b""


class ByteEngine:
    """An engine that answers each request with given bytes, and keeps the requests.

    It closes a connection after an answer if ``closes``, and before it if there is no answer for it.
    """

    def __init__(self, *answers: bytes, closes: bool = False) -> None:
        self.answers = list(answers)
        self.closes = closes
        self.heads: list[bytes] = []
        self.bodies: list[bytes] = []
        self.connections = 0
        self.open = 0
        self.url = ""

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[ByteEngine]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = "http://127.0.0.1:%d" % server.sockets[0].getsockname()[1]
        yield self
        server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        try:
            while True:
                head, body = await message(reader)
                self.heads.append(head)
                self.bodies.append(body)
                if not self.answers:
                    break
                answer = self.answers.pop(0)
                writer.write(answer)
                await writer.drain()
                if not answer:  # stays silent until the other side leaves
                    await reader.read()
                if self.closes:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.open -= 1
            writer.close()


class Engine:
    """An HTTP server that begins each response at once, and ends it when the test says so."""

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
        length = next(
            (line for line in head.splitlines() if line.startswith("content-length")), ":0"
        )
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


OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
SILENT = b""


@asynccontextmanager
async def connection(
    url: str,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
    try:
        yield reader, writer
    finally:
        writer.close()


async def exchange(url: str, request: bytes) -> tuple[bytes, bytes]:
    """Returns the router's answer to these bytes. The answer to a HEAD has no body."""
    async with connection(url) as (reader, writer):
        writer.write(request)
        if request.startswith(b"HEAD"):
            return await reader.readuntil(b"\r\n\r\n"), b""
        return await message(reader)


def posted(body: bytes | dict[str, Any], target: str = "/v1/completions") -> bytes:
    if isinstance(body, dict):
        body = json.dumps(body).encode()
    return b"POST %b HTTP/1.1\r\nHost: router\r\nContent-Length: %d\r\n\r\n%b" % (
        target.encode(),
        len(body),
        body,
    )


def reason(answer: tuple[bytes, bytes]) -> tuple[int, str]:
    """Returns the status and the code of an error in OpenAI's form."""
    head, body = answer
    assert b"content-type: application/json" in head.lower()
    error = json.loads(body)["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return int(head.split()[1]), error["code"]
