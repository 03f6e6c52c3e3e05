"""The life of one worker process of the router.

A worker whose table was removed or replaced finishes its requests and ends. uvicorn then starts another, which uses
the table that lies at the path by then: so all workers soon count in one table again.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import headcount
import settings
from client import Receive, Scope, Send
from exchange import Exchange
from settings import ENGINES, MOST_PER_ENGINE, QUEUE, SILENCE, TABLE

log = logging.getLogger("uvicorn.error")


async def live(scope: Scope, receive: Receive, send: Send) -> None:
    """Serves the lifespan of a worker: starts it, and ends it when uvicorn says so."""
    await receive()
    try:
        async with working(scope["state"]):
            await send({"type": "lifespan.startup.complete"})
            await receive()
    except Exception as error:
        await send({"type": "lifespan.startup.failed", "message": str(error)})
    else:
        await send({"type": "lifespan.shutdown.complete"})


@asynccontextmanager
async def working(state: dict[str, Any]) -> AsyncIterator[None]:
    settings.check()
    send_at_once()
    table = opened()
    exchange = Exchange(SILENCE)
    # The places of a killed worker are free again within a second. A worker that ends closes its frontend here:
    # uvicorn raises SIGTERM again after its shutdown, and would leave a dead frontend until the next reap.
    with table.reap_every(1.0), table.join() as frontend:
        async with exchange.pool, anyio.create_task_group() as tasks:
            state["frontend"], state["exchange"] = frontend, exchange
            tasks.start_soon(end_with_the_table, table)
            yield
            await until_released(table, frontend.slot)
            tasks.cancel_scope.cancel()


def opened() -> headcount.Table:
    """Opens the table that all workers share. A table that no worker uses is brought to this configuration."""
    engines = [headcount.Engine(url, max_in_flight=MOST_PER_ENGINE) for url in ENGINES]
    try:
        return headcount.Table.open_or_create(TABLE, engines=engines, max_waiting=QUEUE or None)
    except headcount.DiffersError:
        table = headcount.Table.open(TABLE)
        view = table.view()
        if not any(frontend.alive for frontend in view.frontends):
            table.apply(engines, max_waiting=QUEUE or None)  # the workers do this one after the other
        elif {engine.name for engine in view.engines} != set(ENGINES):
            raise  # the table of another router
        return table


async def until_released(table: headcount.Table, slot: int) -> None:
    """Waits until requests that uvicorn has just cut off (``--timeout-graceful-shutdown``) have given their places
    back."""
    with anyio.move_on_after(2):
        while any(it.slot == slot and it.in_flight for it in table.view().frontends):
            await anyio.sleep(0.01)


def send_at_once() -> None:
    """Turns off Nagle's algorithm on the listening sockets; connections inherit that.

    With it, a part of an answer waits until the client has confirmed the part before: 40 ms, with many clients.
    asyncio turns it off only for a socket whose protocol says TCP. Those of ``uvicorn --workers`` do not.
    """
    for fd in map(int, os.listdir("/proc/self/fd")):
        with suppress(OSError):  # not a TCP socket
            it = socket.socket(fileno=fd)
            try:
                if it.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                    it.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            finally:
                it.detach()


async def end_with_the_table(table: headcount.Table) -> None:
    # A worker that starts from now on counts in another table, and two tables would fill engines beyond their
    # caps.
    while (state := table.path_state()) not in ("gone", "replaced"):
        await anyio.sleep(0.5)
    log.error("%s is %s: worker %d ends", TABLE, state, os.getpid())
    os.kill(os.getpid(), signal.SIGTERM)
