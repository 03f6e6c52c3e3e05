"""The example router with a queue: its clients wait in one order over all workers."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import headcount
from routers import (
    OK,
    SILENT,
    ByteEngine,
    Engine,
    connection,
    exchange,
    in_flight,
    living,
    message,
    posted,
    reason,
    router,
    until,
)


def waiting(path: Path) -> int:
    queue = headcount.Table.open_read_only(path).view().queue
    assert queue is not None
    return sum(of_class.waiting for of_class in queue.classes)


def retry_after(answer: tuple[bytes, bytes]) -> int:
    head = answer[0].lower().split(b"\r\n")
    return int(next(line for line in head if line.startswith(b"retry-after: "))[13:])


@contextmanager
def without_the_busiest_worker(path: Path) -> Iterator[None]:
    """Stops the worker that has the most requests meanwhile, so that another one takes the next."""
    busiest = max(living(path), key=lambda worker: worker.waiting + worker.in_flight)
    os.kill(busiest.pid, signal.SIGSTOP)
    yield
    os.kill(busiest.pid, signal.SIGCONT)


def test_clients_are_served_in_the_order_in_which_they_began_to_wait(path: Path) -> None:
    async def scene() -> None:
        served: list[int] = []

        async def ask(url: str, number: int) -> None:
            head, _ = await exchange(url, posted(b"{}", f"/{number}"))
            assert head.startswith(b"HTTP/1.1 200")
            served.append(number)

        engine = ByteEngine(SILENT, *[OK] * 20, closes=True)
        async with (
            engine.serving(),
            router(path, [engine.url], most=1, ROUTER_QUEUE="20") as url,
            connection(url) as (_, writer),
        ):
            writer.write(posted(b"{}"))
            await until(lambda: engine.connections == 1)
            asked = []
            for number in range(20):
                with without_the_busiest_worker(path) if number == 10 else nullcontext():
                    asked.append(asyncio.create_task(ask(url, number)))
                    await until(lambda: waiting(path) == number + 1)
            # They wait in several workers.
            assert sum(worker.waiting > 0 for worker in living(path)) > 1
            # One more is told when to come back. The router does not know how fast it will go.
            full = await exchange(url, posted(b"{}"))
            assert (reason(full), retry_after(full)) == ((503, "queue_full"), 1)
            # The client whose engine is silent leaves, and the others have their turns.
            writer.close()
            await asyncio.gather(*asked)
            targets = [head.split()[1] for head in engine.heads[1:]]
            assert targets == [b"/%d" % number for number in range(20)]
            assert sorted(served) == list(range(20))
            await until(lambda: (waiting(path), in_flight(path)) == (0, [0]))

    asyncio.run(scene())


def test_a_full_queue_tells_when_to_come_back(path: Path) -> None:
    async def scene() -> None:
        answered = 0

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal answered
            await message(reader)
            await asyncio.sleep(0.8)
            writer.write(OK)
            writer.close()
            answered += 1

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        engine = "http://127.0.0.1:%d" % server.sockets[0].getsockname()[1]
        async with server, router(path, [engine], most=1, workers=2, ROUTER_QUEUE="4") as url:
            asked = [asyncio.create_task(exchange(url, posted(b"{}"))) for _ in range(5)]
            await until(lambda: answered == 3)
            asked += [asyncio.create_task(exchange(url, posted(b"{}"))) for _ in range(3)]
            await until(lambda: waiting(path) == 4)
            full = await exchange(url, posted(b"{}"))
            assert reason(full) == (503, "queue_full")
            # In the time that four requests take.
            assert 2 <= retry_after(full) <= 20
            for head, _ in await asyncio.gather(*asked):
                assert head.startswith(b"HTTP/1.1 200")

    asyncio.run(scene())


def test_a_client_that_leaves_while_it_waits_leaves_the_queue(path: Path) -> None:
    async def scene() -> None:
        engine = ByteEngine(SILENT, OK)
        async with (
            engine.serving(),
            router(path, [engine.url], most=1, ROUTER_QUEUE="9") as url,
            connection(url) as (_, first),
        ):
            first.write(posted(b"{}"))
            await until(lambda: engine.connections == 1)
            for _ in range(10):
                async with connection(url) as (_, writer):
                    writer.write(posted(b"{}"))
                    await until(lambda: waiting(path) == 1)
                left = time.monotonic()
                await until(lambda: waiting(path) == 0)
                assert time.monotonic() - left < 2
            assert (in_flight(path), engine.connections) == ([1], 1)
            # The place is there for the next client.
            async with connection(url) as (reader, writer):
                writer.write(posted(b"{}"))
                await until(lambda: waiting(path) == 1)
                first.close()
                assert (await message(reader))[1] == b"ok"

    asyncio.run(scene())


def test_a_client_waits_no_longer_than_the_router_was_told(path: Path) -> None:
    async def scene() -> None:
        engine = ByteEngine(SILENT)
        async with (
            engine.serving(),
            router(path, [engine.url], 1, ROUTER_QUEUE="9", ROUTER_QUEUE_TIMEOUT="0.3") as url,
            connection(url) as (_, first),
        ):
            first.write(posted(b"{}"))
            await until(lambda: engine.connections == 1)
            begun = time.monotonic()
            late = await exchange(url, posted(b"{}"))
            assert time.monotonic() - begun >= 0.3
            assert (reason(late), retry_after(late)) == ((503, "waited_too_long"), 1)
            # A request that holds more than any engine takes does not wait.
            assert reason(await exchange(url, posted({"prompt": "x", "n": 2})))[0] == 400
            assert (waiting(path), in_flight(path)) == (0, [1])

    asyncio.run(scene())


def test_what_a_killed_worker_waited_for_goes_to_the_others(path: Path) -> None:
    async def scene() -> None:
        engine = Engine()
        async with (
            engine.serving(),
            router(path, [engine.url], most=1, ROUTER_QUEUE="99") as url,
        ):
            asked = [asyncio.create_task(exchange(url, posted(b"{}"))) for _ in range(12)]
            await until(lambda: engine.open == 1 and waiting(path) == 11)
            with without_the_busiest_worker(path):
                asked += [asyncio.create_task(exchange(url, posted(b"{}"))) for _ in range(12)]
                await until(lambda: waiting(path) == 23)
            workers = [it for it in living(path) if it.in_flight == 0 and it.waiting > 0]
            victim = min(workers, key=lambda it: it.waiting)
            os.kill(victim.pid, signal.SIGKILL)
            engine.end.set()
            answers = await asyncio.gather(*asked, return_exceptions=True)
            fine = [it for it in answers if not isinstance(it, BaseException)]
            assert len(fine) == 24 - victim.waiting
            assert all(head.startswith(b"HTTP/1.1 200") for head, _ in fine)
            await until(lambda: (waiting(path), in_flight(path)) == (0, [0]))

    asyncio.run(scene())
