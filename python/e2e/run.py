"""Runs vLLM with and without the plugin, end to end: `run.py DIRECTORY`, in an environment that has both.

`run.py DIRECTORY SCENE...` runs only some scenes: stock, plugin, killed, more. It fails if, with the plugin, a burst
whose requests were all in flight at once is not split exactly, or if anything stays counted.
"""

from __future__ import annotations

import asyncio
import glob
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import headcount
from load import Load, Outcome
from model import make
from server import Server

# The sizes of bursts, and the tokens of a request: so many that the first is still being served when the last arrives.
BURSTS = {64: 768, 256: 384, 512: 256}
ROUNDS = 2
LOOP_CLIENTS, LOOP_SECONDS = 64, 20.0

failures: list[str] = []


def main(directory: Path, scenes: list[str]) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("told to end"))
    model = make(directory / "model")
    wanted = set(scenes) or {"stock", "plugin", "killed", "more"}
    print("4 ranks, 2 API servers", flush=True)
    if "stock" in wanted:
        stock(directory, model)
    if wanted & {"plugin", "killed"}:
        with_the_plugin(directory, model, wanted)
    if "more" in wanted:
        more_servers_than_ranks(directory, model)
    left = tables()
    print(f"\ntables left in shared memory at the end: {len(left)}")
    check(not left, f"tables were left: {left}")
    if failures:
        sys.exit("FAILED: " + "; ".join(failures))
    print("every burst that its requests outlived was split exactly, and nothing stayed counted")


def stock(directory: Path, model: Path) -> None:
    server = Server(model, directory / "stock.log", 4, 2, plugin=False)
    try:
        print(f"\nstock (HEADCOUNT_VLLM=0): up in {server.seconds_to_start:.0f} s")
        check(not server.lines(), "the plugin was turned off and worked")
        asyncio.run(bursts_and_loop(server, 4, plugin=False))
    finally:
        server.kill()


def with_the_plugin(directory: Path, model: Path, wanted: set[str]) -> None:
    server = Server(model, directory / "plugin.log", 4, 2, plugin=True)
    try:
        print(f"\nwith the plugin: up in {server.seconds_to_start:.0f} s")
        print(f"  {server.lines()[0].partition('headcount: ')[2]}", flush=True)
        if "plugin" in wanted:
            asyncio.run(bursts_and_loop(server, 4, plugin=True))
        if "killed" in wanted:
            asyncio.run(clients_hang_up(server))
            asyncio.run(killed_amid_requests(server))
        else:
            server.stop()
    finally:
        server.kill()
    if "killed" in wanted:
        left_by_the_dead(server.path())
        started_again(directory, model, server.path())


def left_by_the_dead(path: Path) -> None:
    view = headcount.Table.open_read_only(path).view()
    counted = sum(engine.in_flight for engine in view.engines)
    print(f"  SIGKILL for all of it; its table still counts {counted} requests", flush=True)
    check(counted > 0, "nothing was in flight when it was killed")


def started_again(directory: Path, model: Path, killed: Path) -> None:
    server = Server(model, directory / "again.log", 4, 2, plugin=True)
    try:
        path = server.path()
        gone = path != killed and not killed.exists()
        print(f"\nstarted again: counted {in_flight(server)}, ", end="")
        print(f"the old table is {'gone' if gone else 'there'}")
        check(gone and sum(in_flight(server)) == 0, "a deployment did not start from zero")
        asyncio.run(one_burst(server, 4, 256))
        server.stop()
        print(f"  after SIGTERM its table is {'there' if path.exists() else 'gone, too'}")
        check(not path.exists(), "SIGTERM left a table")
    finally:
        server.kill()


def more_servers_than_ranks(directory: Path, model: Path) -> None:
    print("\n2 ranks, 4 API servers, with the plugin")
    server = Server(model, directory / "more.log", 2, 4, plugin=True)
    try:
        check(len(server.table().view().frontends) == 4, "not all API servers joined")
        asyncio.run(bursts_and_loop(server, 2, plugin=True))
        server.stop()
    finally:
        server.kill()


# -- Scenes --------------------------------------------------------------------------------------------


async def bursts_and_loop(server: Server, ranks: int, plugin: bool) -> None:
    load = Load(server.url, ranks)
    async with load.session:
        await load.burst(4 * ranks, 8)  # warms up: the first requests are slow
        for requests in BURSTS:
            outlived = False
            for _ in range(ROUNDS):
                outcome, peak = await watched(server if plugin else None, load, requests)
                report(f"burst of {requests}", outcome, peak)
                if plugin and peak == requests:
                    outlived = True
                    check(outcome.spread == 0, f"a burst of {requests} was split unevenly")
            check(not plugin or outlived, f"no burst of {requests} was all in flight at once")
        outcome = await load.closed_loop(LOOP_CLIENTS, LOOP_SECONDS)
        report(f"closed loop of {LOOP_CLIENTS}", outcome)
        if plugin:
            await to_zero(server, "all that")


async def one_burst(server: Server, ranks: int, requests: int) -> None:
    load = Load(server.url, ranks)
    async with load.session:
        await load.burst(4 * ranks, 8)
        outcome, peak = await watched(server, load, requests)
        report(f"burst of {requests}", outcome, peak)
        check(peak < requests or outcome.spread == 0, "a burst was split unevenly")
        await to_zero(server, "it")


async def clients_hang_up(server: Server) -> None:
    load = Load(server.url, 4)
    async with load.session:
        peak = Peak(server)
        await peak.during(asyncio.gather(*(load.hang_up(900) for _ in range(256))))
        print(f"  256 clients hung up amid their streams; in flight at most: {peak.most}")
        await to_zero(server, "that")


async def killed_amid_requests(server: Server) -> None:
    load = Load(server.url, 4)
    async with load.session:
        asked = [asyncio.create_task(load.complete(900)) for _ in range(128)]
        with suppress(TimeoutError):
            await until(lambda: sum(in_flight(server)) == 128 or any(task.done() for task in asked))
        ended = [task.exception() for task in asked if task.done()]
        print(f"  {sum(in_flight(server))} requests in flight, {len(ended)} ended", flush=True)
        check(not any(ended), f"requests failed: {ended}")
        server.kill()
        await asyncio.gather(*asked, return_exceptions=True)


# -- Results -----------------------------------------------------------------------------------------


class Peak:
    """The most requests that were in flight at once."""

    def __init__(self, server: Server) -> None:
        self.table = server.table()
        self.most = 0

    async def during(self, run: Awaitable[object]) -> object:
        task = asyncio.ensure_future(run)
        while not task.done():
            now = sum(engine.in_flight for engine in self.table.view().engines)
            self.most = max(self.most, now)
            await asyncio.sleep(0.005)
        return await task


async def watched(server: Server | None, load: Load, requests: int) -> tuple[Outcome, int | None]:
    if server is None:
        return await load.burst(requests, BURSTS[requests]), None
    peak = Peak(server)
    outcome = await peak.during(load.burst(requests, BURSTS[requests]))
    assert isinstance(outcome, Outcome)
    return outcome, peak.most


def report(what: str, outcome: Outcome, peak: int | None = None) -> None:
    split = "/".join(map(str, outcome.per_engine))
    at_once = "" if peak is None else f", {peak} at once"
    print(
        f"  {what:18} {split:>19}  spread {outcome.spread:2}"
        f"  {outcome.requests / outcome.seconds:6.0f} requests/s"
        f"  {outcome.tokens / outcome.seconds:7.0f} tokens/s{at_once}",
        flush=True,
    )


async def to_zero(server: Server, after: str) -> None:
    with suppress(TimeoutError):
        await until(lambda: sum(in_flight(server)) == 0)
    view = server.table().view()
    counts = [engine.in_flight for engine in view.engines]
    tokens = sum(engine.tokens for engine in view.engines)
    print(f"  counted after {after}: {counts}, {tokens} tokens", flush=True)
    check(sum(counts) == tokens == 0, f"{counts} stayed counted after {after}")


def in_flight(server: Server) -> list[int]:
    return [engine.in_flight for engine in server.table().view().engines]


async def until(condition: Callable[[], bool], patience: float = 60.0) -> None:
    deadline = time.monotonic() + patience
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError
        await asyncio.sleep(0.02)


def tables() -> list[str]:
    found = glob.glob(f"/dev/shm/headcount-vllm-{os.getuid()}-*")
    return [path for path in found if not path.endswith("-lock")]


def check(right: bool, otherwise: str) -> None:
    if not right:
        failures.append(otherwise)
        print(f"  FAILED: {otherwise}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
