"""Sends a request to an engine and returns its response, both byte for byte."""

from __future__ import annotations

import socket
from typing import Any
from urllib.parse import urlsplit

import httpcore
from network import Network
from settings import CONNECT, is_address

Headers = list[tuple[bytes, bytes]]

WRITE = 60.0  # seconds for which an engine may read nothing
# So that a dead host is noticed within two minutes, however long its engine may be silent.
KEEPALIVE = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 15),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4),
]
# Headers of one connection only; uvicorn has answered ``expect``.
HOP_BY_HOP = {
    b"connection",
    b"expect",
    b"keep-alive",
    b"proxy-connection",
    b"te",
    b"trailer",
    b"transfer-encoding",
    b"upgrade",
}


class Exchange:
    """Connections to engines, one for each request. Used within ``async with`` of the pool.

    Bytes that an engine sends beyond the end of an answer are lost with the connection. On a connection that is
    kept, they would be taken for the answer to the next request, which may be another client's. An engine may also
    close a kept connection just when a request is sent on it.
    """

    def __init__(self, silence: float) -> None:
        self.timeout = {"connect": CONNECT, "read": silence, "write": WRITE}
        self.pool = httpcore.AsyncConnectionPool(
            max_connections=None,
            max_keepalive_connections=0,
            socket_options=KEEPALIVE,
            network_backend=Network(),
        )

    async def response(
        self, scope: dict[str, Any], target: bytes, body: bytes, engine: str
    ) -> httpcore.Response:
        """Returns the engine's response, whose body is still to be read. The caller closes it in any case."""
        url = address(engine)
        if target != b"*":
            target = url.target.rstrip(b"/") + target
        headers = [(b"host", urlsplit(engine).netloc.rpartition("@")[2].encode())]
        headers += passed_on(scope["headers"], but={b"host", b"content-length"})
        declared = {name for name, _ in scope["headers"]}
        if body or declared & {b"content-length", b"transfer-encoding"}:
            headers.append((b"content-length", b"%d" % len(body)))
        headers.append((b"connection", b"close"))
        request = httpcore.Request(
            scope["method"],
            httpcore.URL(scheme=url.scheme, host=url.host, port=url.port, target=target),
            headers=headers,
            content=body,
            extensions={"timeout": self.timeout},
        )
        return await self.pool.handle_async_request(request)


def address(engine: str) -> httpcore.URL:
    """Returns the address that is the engine's name. An engine whose name is none cannot be reached."""
    if is_address(engine):
        return httpcore.URL(engine)
    raise httpcore.ConnectError("its name is no address, as http://10.0.0.7:8000 is one")


def passed_on(headers: Headers, but: set[bytes]) -> Headers:
    """Returns the headers of a message that are passed on to the next connection."""
    listed = b",".join(value for name, value in headers if name.lower() == b"connection")
    dropped = HOP_BY_HOP | but | {name.strip().lower() for name in listed.split(b",")}
    return [(name, value) for name, value in headers if name.lower() not in dropped]


def for_the_client(status: int, headers: Headers) -> Headers:
    values = {name.lower(): value for name, value in headers}
    # The chunks of a body tell where it ends, whatever its content-length says; a 204 has no body.
    has_no_length = b"transfer-encoding" in values or status == 204
    passed = passed_on(headers, {b"content-length"} if has_no_length else set())
    if values.get(b"content-type", b"").startswith(b"text/event-stream"):
        if b"x-accel-buffering" not in values:
            passed.append((b"x-accel-buffering", b"no"))  # nginx in front would wait for more
    return passed
