"""A router in front of several engines, whose worker processes balance by one table.

    ROUTER_ENGINES=http://127.0.0.1:8001,http://127.0.0.1:8002 ROUTER_TABLE=/dev/shm/router \\
        uvicorn router:app --workers 4 --http h11 --no-server-header --no-date-header

When its body has arrived, each request goes to the engine with the fewest in flight from all workers. It counts
there until its response has been streamed to the end, or the client has left. A request that holds several (a list
of prompts, ``n``) counts as that many, all at one engine. An engine that cannot be reached is excluded for the
request. If all are at their caps, the client gets a 503 with a Retry-After; or the request waits for its turn, if
``ROUTER_QUEUE`` says how many may, in one queue of all workers. A client that leaves while it waits leaves the queue.

Plain ASGI and httpcore, the library below httpx, pass messages on as they came: targets, repeated headers, encoded
bodies. They add nothing, take no proxy from the environment, keep no cookies and follow no redirects. (Of uvicorn's
two servers, h11 notices that a client has left, whatever the client has sent before.)
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import headcount
import httpcore
from client import (
    LeftError,
    Receive,
    RefusedError,
    Scope,
    Send,
    head,
    refuse,
    target_of,
    until_left,
    whole_body,
)
from cost import cost
from exchange import Exchange, for_the_client
from settings import MOST_PER_ENGINE, PATIENCE, QUEUE, QUEUE_TIMEOUT, SILENCE
from worker import live

BUSY = "all engines are busy; try again soon"
TOO_LARGE = "this is more than an engine takes at once, however idle it is; split it"

log = logging.getLogger("uvicorn.error")


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        return await live(scope, receive, send)
    if scope["type"] != "http":  # a WebSocket: refused
        return await send({"type": "websocket.close", "code": 1003})
    begun = False

    async def to_client(message: dict[str, Any]) -> None:
        nonlocal begun
        begun = True
        with anyio.fail_after(PATIENCE):
            await send(message)

    try:
        body = await whole_body(scope, receive)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(until_left, receive, tasks.cancel_scope)
            try:
                await answer(scope, body, to_client)
            except Exception as error:
                # If an answer has begun, uvicorn closes the connection: so the client sees that it is not whole.
                log.warning("%s %s: %s", scope["method"], scope["path"], str(error) or repr(error))
                if not begun:
                    await refuse(to_client, error)
            tasks.cancel_scope.cancel()
    except RefusedError as error:
        await refuse(to_client, error)
    except LeftError:
        pass


async def answer(scope: Scope, body: bytes, send: Send) -> None:
    """Passes the request to an engine, and its answer to the client."""
    frontend: headcount.Frontend = scope["state"]["frontend"]
    exchange: Exchange = scope["state"]["exchange"]
    target, (places, tokens) = target_of(scope), await cost(body)
    tried: list[int] = []
    while True:
        async with admitted(frontend, places, tokens, tried) as permit:
            try:
                response = await exchange.response(scope, target, body, permit.engine_name)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                log.warning(
                    "%s cannot be reached: %s", permit.engine_name, str(error) or repr(error)
                )
                tried.append(permit.engine)
                continue
            except httpcore.ReadTimeout as error:
                late = f"the engine did not begin its answer within {SILENCE:g} s"
                raise RefusedError(504, "engine_timeout", late) from error
            except httpcore.LocalProtocolError as error:
                raise RefusedError(
                    400, "bad_request", f"this cannot be passed on: {error}"
                ) from error
            except (
                httpcore.NetworkError,
                httpcore.TimeoutException,
                httpcore.ProtocolError,
            ) as error:
                log.warning("%s: %s", permit.engine_name, str(error) or repr(error))
                broke_off = "the engine broke off before it answered; try again"
                raise RefusedError(502, "engine_broke_off", broke_off) from error
            try:
                await send(head(response.status, for_the_client(response.status, response.headers)))
                async for chunk in response.aiter_stream():
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
            finally:
                await response.aclose()
            return await send({"type": "http.response.body"})


@asynccontextmanager
async def admitted(
    frontend: headcount.Frontend, places: int, tokens: int, tried: list[int]
) -> AsyncIterator[headcount.Permit]:
    """Takes so many places at one engine, or none, while the block runs. Gives one of the permits."""
    if places > MOST_PER_ENGINE:
        raise RefusedError(400, "too_large", TOO_LARGE)
    permits: list[headcount.Permit] = []
    unfit: list[int] = []
    try:
        while not permits:
            permits = [await place(frontend, tokens, tried + unfit)]
            try:
                permits += frontend.route_many(places - 1, tokens, pin=permits[0].engine)
            except headcount.SaturatedError:
                # Another engine may have room for all of them.
                unfit.append(permits[0].engine)
                permits.pop().release()
        yield permits[0]
    except headcount.SaturatedError as error:
        if not error.passes:
            raise RefusedError(400, "too_large", TOO_LARGE) from error
        raise RefusedError(503, "engines_saturated", BUSY) from error
    except headcount.NoQueueError as error:  # the table of workers without one
        raise RefusedError(503, "engines_saturated", BUSY) from error
    except headcount.QueueFullError as error:
        raise RefusedError(503, "queue_full", BUSY, error.retry_after or 1) from error
    except headcount.WaitedTooLongError as error:
        raise RefusedError(503, "waited_too_long", BUSY) from error
    except headcount.UnavailableError as error:
        if unfit:
            raise RefusedError(503, "engines_saturated", BUSY) from error
        raise RefusedError(
            503, "no_engine", "no engine can be reached now; try again soon"
        ) from error
    finally:
        for permit in permits:
            permit.release()


async def place(frontend: headcount.Frontend, tokens: int, exclude: list[int]) -> headcount.Permit:
    """Takes a place at an engine. With a queue, waits for it: behind all that have waited longer, in any worker."""
    if not QUEUE:
        return frontend.route(tokens, exclude=exclude)
    return await frontend.acquire_async(timeout=QUEUE_TIMEOUT, tokens=tokens, exclude=exclude)
