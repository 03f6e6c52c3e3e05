"""Measures how long a request takes through the example router, and through another version of it, in one run.

`through_router.py [EXAMPLES]` measures the router of this checkout and that in EXAMPLES, the python/examples of
another one, by turns and with one worker each. The engine answers at once and keeps connections that the router
keeps, so the router's own time is measured. The last column is the time here by the time there.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import socket
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from multiprocessing.connection import Connection
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from routers import EXAMPLES, OK, connection, living, message, posted, running, until

ROUNDS = 40
REQUESTS = 150  # of a round
CLIENTS = [1, 16]  # at the same time
BODY = {"model": "m", "prompt": "a prompt of some length " * 20, "stream": False}


class Engine(asyncio.Protocol):
    """An engine that answers each request, which comes in one piece or in two."""

    def __init__(self) -> None:
        self.seen = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.seen += data
        if self.seen.endswith(b"}"):
            self.transport.write(OK)
            if b"\r\nconnection: close\r\n" in self.seen.lower():
                self.transport.close()
            self.seen = b""


def serve(told: Connection) -> None:
    async def serving() -> None:
        server = await asyncio.get_running_loop().create_server(Engine, "127.0.0.1", 0)
        told.send("http://127.0.0.1:%d" % server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(serving())


async def one_round(url: str, clients: int) -> float:
    """Returns the microseconds from one answer to the next."""

    async def client() -> None:
        async with connection(url) as (reader, writer):
            for _ in range(REQUESTS // clients):
                writer.write(posted(BODY))
                head, _ = await message(reader)
                assert head.startswith(b"HTTP/1.1 200 "), head

    start = time.perf_counter()
    await asyncio.gather(*[client() for _ in range(clients)])
    return (time.perf_counter() - start) / (REQUESTS // clients * clients) * 1e6


async def compare(urls: list[str]) -> None:
    print(
        f"microseconds a request, medians of {ROUNDS} rounds of {REQUESTS}, and their middle halves"
    )
    for clients in CLIENTS:
        rounds = [[await one_round(url, clients) for url in urls] for _ in range(ROUNDS + 2)][2:]
        for n, times in enumerate(zip(*rounds)):
            low, middle, high = statistics.quantiles(times, n=4)
            ratio = statistics.median(r[0] / r[n] for r in rounds)
            print(
                f"{clients:3} clients, {'this' if n == 0 else 'other':5} {middle:6.0f} ({low:.0f} to {high:.0f})"
                f"  {ratio:.2f}"
            )


def started(stack: ExitStack, table: Path, engine: str, app: Path) -> str:
    """Starts a router that serves until the stack ends, and returns its address."""
    # Without Nagle's algorithm, also for a version that does not turn it off.
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    url, _ = stack.enter_context(running(table, [engine], 1, app, listener))
    asyncio.run(until(lambda: table.exists() and len(living(table)) == 1))
    return url


def main() -> None:
    ours, theirs = multiprocessing.Pipe()
    engine = multiprocessing.Process(target=serve, args=(theirs,), daemon=True)
    engine.start()
    address = ours.recv()
    with ExitStack() as stack:
        below = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/dev/shm")))
        apps = [examples / "router.py" for examples in (EXAMPLES, *map(Path, sys.argv[1:2]))]
        urls = [started(stack, below / str(n), address, app) for n, app in enumerate(apps)]
        asyncio.run(compare(urls))
    engine.terminate()


if __name__ == "__main__":
    main()
