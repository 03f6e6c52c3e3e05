"""Connections to engines that may answer before they have read all of a request."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import httpcore

PIECE = 1 << 16  # bytes that asyncio takes without waiting
LOOK = 1.0  # seconds that a piece waits before each look whether an answer is there


class Network(httpcore.AnyIOBackend):
    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        opened = await super().connect_tcp(host, port, timeout, local_address, socket_options)
        return Stream(opened)


class Stream(httpcore.AsyncNetworkStream):
    """A connection that stops writing when the other side has answered and reads no more.

    httpcore reads an answer when all is written, or when a write fails.
    """

    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self.stream = stream
        self.read, self.aclose = stream.read, stream.aclose  # type: ignore[method-assign]
        self.get_extra_info = stream.get_extra_info  # type: ignore[method-assign]
        # TLS sends bytes of its own, so readable bytes may be no answer: TLS connections are left as they are.
        self.start_tls = stream.start_tls  # type: ignore[method-assign]

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if len(buffer) <= PIECE:
            return await self.stream.write(buffer, timeout)
        for start in range(0, len(buffer), PIECE):
            piece = buffer[start : start + PIECE]
            writing = asyncio.ensure_future(self.stream.write(piece, timeout))
            try:
                while not (await asyncio.wait([writing], timeout=LOOK))[0]:
                    if self.get_extra_info("is_readable"):
                        raise httpcore.WriteError("the engine has answered, and reads no more")
            finally:
                writing.cancel()
            writing.result()
