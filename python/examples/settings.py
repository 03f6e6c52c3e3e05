"""The router's settings, from its environment.

If one is wrong, a worker says so when it starts, and ends: see ``check``.
"""

from __future__ import annotations

import math
import os
from urllib.parse import urlsplit

import headcount

ADDRESSES = "as in http://10.0.0.7:8000,http://10.0.0.8:8000"

wrong: list[str] = []


def whole(name: str, default: int, most: int, least: int = 1) -> int:
    found = os.environ.get(name, str(default))
    try:
        if least <= int(found) <= most:
            return int(found)
    except ValueError:
        pass
    wrong.append(f"{name} is {found!r}; give a whole number from {least} to {most}, as in {default}")
    return default


def seconds(name: str, default: float) -> float:
    found = os.environ.get(name, str(default))
    try:
        if 0 < float(found) < math.inf:
            return float(found)
    except ValueError:
        pass
    wrong.append(f"{name} is {found!r}; give a number of seconds above 0, as in {default:g}")
    return default


def is_address(engine: str) -> bool:
    try:
        url = urlsplit(engine)
        (url.hostname or "").encode("idna")  # the form in which it is resolved
        is_url = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:  # a port that is no number, say
        return False
    return is_url and engine.isascii() and engine.isprintable() and " " not in engine


def engines() -> list[str]:
    found = os.environ.get("ROUTER_ENGINES", "")
    listed = [url.strip().rstrip("/") for url in found.split(",") if url.strip()]
    if not listed:
        wrong.append(f"ROUTER_ENGINES names no engine; give their addresses, {ADDRESSES}")
    for engine in listed:
        if not is_address(engine):
            wrong.append(f"ROUTER_ENGINES names {engine!r}; give addresses, {ADDRESSES}")
    return listed


ENGINES = engines()
TABLE = os.environ.get("ROUTER_TABLE", "/dev/shm/router")
if not TABLE:
    wrong.append("ROUTER_TABLE is empty; give the path of the table, as in /dev/shm/router")
MOST_PER_ENGINE = whole("ROUTER_MOST_PER_ENGINE", 1024, headcount.MAX_IN_FLIGHT)
QUEUE = whole("ROUTER_QUEUE", 0, headcount.MAX_IN_FLIGHT, least=0)  # requests that wait for a place
QUEUE_TIMEOUT = seconds("ROUTER_QUEUE_TIMEOUT", 30)  # for which each of them waits
MOST_BYTES = whole("ROUTER_MOST_BYTES", 64 << 20, 1 << 40)  # of a request's body
CONNECT = seconds("ROUTER_CONNECT", 5)  # Linux tries again after 1 s and 3 s, if an engine's queue was full
SILENCE = seconds("ROUTER_SILENCE", 600)  # for which an engine may send nothing
PATIENCE = seconds("ROUTER_PATIENCE", 60)  # for which a client may send, or read, nothing


def check() -> None:
    """Raises ValueError with a sentence for each variable that is wrong."""
    if wrong:
        raise ValueError("; ".join(wrong))
