"""A client's request, and the router's own answers to it."""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from settings import MOST_BYTES, PATIENCE

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class RefusedError(Exception):
    """An answer of the router's own, in the form of OpenAI's errors."""

    def __init__(self, status: int, code: str, message: str, retry_after: float = 1) -> None:
        super().__init__(message)
        self.status, self.code, self.retry_after = status, code, retry_after


class LeftError(Exception):
    """The client has closed its connection."""


def target_of(scope: Scope) -> bytes:
    """Returns the request's target in the form in which an engine is asked: from its first slash on."""
    method, target, query = scope["method"], scope["raw_path"], scope["query_string"]
    if method == "CONNECT":
        raise RefusedError(501, "no_tunnel", "this is no proxy: there is no CONNECT")
    if target == b"*" and method == "OPTIONS":
        return b"*"
    scheme, colon, rest = target.partition(b"://")
    if colon and scheme.lower() in (b"http", b"https"):  # as a proxy would be asked
        target = b"/" + rest.partition(b"/")[2]
    if not target.startswith(b"/"):
        raise RefusedError(400, "bad_target", "a target begins with a slash, as in GET /v1/models")
    return bytes(target + (b"?" + query if query else b""))


async def whole_body(scope: Scope, receive: Receive) -> bytes:
    """Returns the body. It is read whole before a place at an engine is taken for the request."""
    too_large = RefusedError(413, "body_too_large", f"a body may have {MOST_BYTES} bytes here")
    if int(dict(scope["headers"]).get(b"content-length", b"0")) > MOST_BYTES:
        raise too_large
    body, more = bytearray(), True
    while more:
        message = None
        with anyio.move_on_after(PATIENCE):
            message = await receive()
        if message is None:
            raise RefusedError(408, "body_timeout", f"nothing of the body came for {PATIENCE:g} s")
        if message["type"] == "http.disconnect":
            raise LeftError
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > MOST_BYTES:
            raise too_large
    return bytes(body)


async def until_left(receive: Receive, request: anyio.CancelScope) -> None:
    """Cancels the request when its client leaves."""
    left = False
    while not left:
        # Asked again now and then: when the next request is there already, uvicorn stops reading and sees no end.
        with anyio.move_on_after(0.5):
            left = (await receive())["type"] == "http.disconnect"
    request.cancel()


def head(status: int, headers: list[tuple[bytes, bytes]]) -> dict[str, Any]:
    return {"type": "http.response.start", "status": status, "headers": headers}


async def refuse(send: Send, error: Exception) -> None:
    """Sends the client the error in place of an answer."""
    if not isinstance(error, RefusedError):
        error = RefusedError(500, "internal", "the router has failed; its log says how")
    kind = "invalid_request_error" if error.status < 500 else "server_error"
    fields = {"message": str(error), "type": kind, "param": None, "code": error.code}
    text = json.dumps({"error": fields}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(text))]
    if error.status == 503:
        headers.append((b"retry-after", b"%d" % max(1, math.ceil(error.retry_after))))
    await send(head(error.status, headers))
    await send({"type": "http.response.body", "body": text})
