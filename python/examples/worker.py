"""What a worker of the router does from its start to its end.

A worker whose table was removed or replaced finishes what it has and ends, and uvicorn starts it anew
in the table that lies at the path then: so all workers soon count in one again.
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
from settings import ENGINES, MOST_PER_ENGINE, SILENCE, TABLE

log = logging.getLogger("uvicorn.error")


async def live(scope: Scope, receive: Receive, send: Send) -> None:
    """What a worker does from its start to its end."""
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
    # What a killed worker held is free again within a second. One that ends leaves the table: uvicorn raises
    # SIGTERM again after its shutdown, and a frontend that was not closed would be dead in it until a reap.
    with table.reap_every(1.0), table.join() as frontend:
        async with exchange.pool, anyio.create_task_group() as tasks:
            state["frontend"], state["exchange"] = frontend, exchange
            tasks.start_soon(end_with_the_table, table)
            yield
            await until_released(table, frontend.slot)
            tasks.cancel_scope.cancel()


def opened() -> headcount.Table:
    """The table that all workers share. It is made, or brought to this configuration, if no one uses it."""
    engines = [headcount.Engine(url, max_in_flight=MOST_PER_ENGINE) for url in ENGINES]
    try:
        return headcount.Table.open_or_create(TABLE, engines=engines)
    except headcount.DiffersError:
        table = headcount.Table.open(TABLE)
        view = table.view()
        if not any(frontend.alive for frontend in view.frontends):
            table.apply(engines)  # workers do so one after the other
        elif {engine.name for engine in view.engines} != set(ENGINES):
            raise  # another router's
        return table


async def until_released(table: headcount.Table, slot: int) -> None:
    """Waits for requests that uvicorn has cut off just now, by its ``--timeout-graceful-shutdown``, to give back their
    places."""
    with anyio.move_on_after(2):
        while any(it.slot == slot and it.in_flight for it in table.view().frontends):
            await anyio.sleep(0.01)


def send_at_once() -> None:
    """Turns off Nagle's algorithm, by which a part of an answer waits for the client to have confirmed the one before:
    40 ms, with many clients. A connection has it off if the socket has that it was accepted at.

    (asyncio does so if a socket says that it is TCP's. Those of ``uvicorn --workers`` do not.)
    """
    for fd in map(int, os.listdir("/proc/self/fd")):
        with suppress(OSError):  # no socket of TCP
            it = socket.socket(fileno=fd)
            try:
                if it.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                    it.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            finally:
                it.detach()


async def end_with_the_table(table: headcount.Table) -> None:
    # A worker that is started from now on counts in another table; two of them would fill engines
    # beyond their caps.
    while (state := table.path_state()) not in ("gone", "replaced"):
        await anyio.sleep(0.5)
    log.error("%s is %s: worker %d ends", TABLE, state, os.getpid())
    os.kill(os.getpid(), signal.SIGTERM)
