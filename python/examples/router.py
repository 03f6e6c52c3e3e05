"""A router in front of several engines, which all its worker processes balance as one.

    ROUTER_ENGINES=http://127.0.0.1:8001,http://127.0.0.1:8002 ROUTER_TABLE=/dev/shm/router \\
        uvicorn router:app --workers 4

A worker whose table was removed or replaced finishes what it has and ends, and uvicorn starts it anew
in the table that lies at the path then: so all workers soon count in one again.

Each request goes to the engine with the fewest in flight from all workers. It counts there until its
response has been streamed to the end, or the client has left. An engine that does not answer is passed
over for this request; if all are at their caps, the client is told to come back.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import headcount
import httpx
from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import StreamingResponse

ENGINES = [url.rstrip("/") for url in os.environ["ROUTER_ENGINES"].split(",")]
TABLE = os.environ.get("ROUTER_TABLE", "/dev/shm/router")
MOST_PER_ENGINE = int(os.environ.get("ROUTER_MOST_PER_ENGINE", "1024"))

# Headers of one connection, which are not passed on to the next.
OF_THE_CONNECTION = {"connection", "content-length", "host", "keep-alive", "transfer-encoding"}


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    engines = [headcount.Engine(url, max_in_flight=MOST_PER_ENGINE) for url in ENGINES]
    table = headcount.Table.open_or_create(TABLE, engines=engines)
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(timeout=None, limits=limits) as client:
        # What a killed worker held is free again within a second.
        with table.reap_every(1.0):
            app.state.frontend = table.join()
            app.state.client = client
            watch = asyncio.create_task(end_with_the_table(table))
            yield
            watch.cancel()


async def end_with_the_table(table: headcount.Table) -> None:
    # A worker that is started from now on counts in another table; two of them would fill engines
    # beyond their caps.
    while (state := table.path_state()) not in ("gone", "replaced"):
        await asyncio.sleep(0.5)
    logging.getLogger("uvicorn.error").error("%s is %s: worker %d ends", TABLE, state, os.getpid())
    os.kill(os.getpid(), signal.SIGTERM)


app = FastAPI(lifespan=lifespan)


@app.api_route("/{path:path}", methods=["GET", "POST"])
async def proxy(path: str, request: Request) -> StreamingResponse:
    body = await request.body()
    headers = [(k, v) for k, v in request.headers.items() if k not in OF_THE_CONNECTION]
    client: httpx.AsyncClient = request.app.state.client
    tried: list[int] = []
    while True:
        permit = admit(request.app.state.frontend, len(body) // 4, tried)
        try:
            passed_on = client.build_request(
                request.method, f"{permit.engine_name}/{path}", content=body, headers=headers
            )
            response = await client.send(passed_on, stream=True)
        except httpx.ConnectError:
            tried.append(permit.engine)
            permit.release()
        except BaseException:
            permit.release()
            raise
        else:
            break
    kept = {k: v for k, v in response.headers.items() if k not in OF_THE_CONNECTION}
    return StreamingResponse(streamed(response, permit), response.status_code, kept)


def admit(frontend: headcount.Frontend, tokens: int, tried: list[int]) -> headcount.Permit:
    try:
        return frontend.route(tokens, exclude=tried)
    except headcount.Saturated as full:
        raise HTTPException(503, str(full), {"Retry-After": "1"}) from full
    except headcount.Unavailable as none:
        raise HTTPException(502, str(none)) from none


async def streamed(response: httpx.Response, permit: headcount.Permit) -> AsyncIterator[bytes]:
    # Left when the stream ends, fails, or is cancelled since the client has left.
    with permit:
        try:
            async for chunk in response.aiter_raw():
                yield chunk
        finally:
            await response.aclose()
