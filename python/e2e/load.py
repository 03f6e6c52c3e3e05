"""Sends requests to a deployment, and counts those that each engine got, by vLLM's own metrics."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections import Counter
from dataclasses import dataclass

import aiohttp

SUCCESS = re.compile(r'^vllm:request_success_total\{.*?engine="(\d+)".*?\} (\S+)$', re.MULTILINE)
PROMPT = "Once upon a time there was a table that all of them could read. "

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass
class Outcome:
    per_engine: list[int]
    requests: int
    seconds: float
    tokens: int

    @property
    def spread(self) -> int:
        return max(self.per_engine) - min(self.per_engine)


class Load:
    """A client of one deployment."""

    def __init__(self, url: str, ranks: int) -> None:
        self.url = url
        self.ranks = ranks
        # A connection for each request: a kept one may be closed just when it is used again.
        self.session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, force_close=True),
            timeout=aiohttp.ClientTimeout(total=None),
        )

    async def complete(self, tokens: int) -> int:
        body = {"model": "tiny", "prompt": PROMPT, "max_tokens": tokens, "ignore_eos": True}
        async with self.session.post(f"{self.url}/v1/completions", json=body) as answer:
            answer.raise_for_status()
            return int((await answer.json())["usage"]["completion_tokens"])

    async def connect(self) -> Connection:
        host, port = self.url.removeprefix("http://").split(":")
        return await asyncio.open_connection(host, int(port))

    async def complete_on(self, connection: Connection, tokens: int) -> int:
        """Sends a request on an open connection, and returns how many tokens came back."""
        reader, writer = connection
        body = json.dumps(
            {"model": "tiny", "prompt": PROMPT, "max_tokens": tokens, "ignore_eos": True}
        )
        writer.write(
            "POST /v1/completions HTTP/1.1\r\nHost: tiny\r\nConnection: close\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
        )
        answer = (await reader.read()).decode()
        writer.close()
        if not answer.startswith("HTTP/1.1 200 "):
            raise RuntimeError(answer)
        return int(answer.partition('"completion_tokens":')[2].split(",")[0].rstrip("}"))

    async def hang_up(self, tokens: int) -> None:
        """Asks for a stream, and hangs up after its first piece."""
        body = {
            "model": "tiny",
            "prompt": PROMPT,
            "max_tokens": tokens,
            "ignore_eos": True,
            "stream": True,
        }
        answer = await self.session.post(f"{self.url}/v1/completions", json=body)
        await answer.content.readline()
        answer.close()

    async def burst(self, requests: int, tokens: int) -> Outcome:
        """Sends so many requests at once, on connections that are open already."""
        connections = await asyncio.gather(*(self.connect() for _ in range(requests)))

        async def all_at_once() -> int:
            return sum(await asyncio.gather(*(self.complete_on(c, tokens) for c in connections)))

        return await self._measured(all_at_once)

    async def closed_loop(self, clients: int, seconds: float) -> Outcome:
        """Runs so many clients, each of which asks again when it is answered; lengths differ."""
        end = time.monotonic() + seconds

        async def client(number: int) -> int:
            total, turn = 0, number
            while time.monotonic() < end:
                total += await self.complete(8 + turn * 7 % 56)
                turn += 1
            return total

        async def loop() -> int:
            return sum(await asyncio.gather(*(client(number) for number in range(clients))))

        return await self._measured(loop)

    async def _measured(self, run) -> Outcome:  # type: ignore[no-untyped-def]
        before = await self.finished()
        start = time.monotonic()
        tokens = await run()
        seconds = time.monotonic() - start
        # Each API server updates its metrics when it has time.
        after, previous = await self.finished(), None
        while after != previous:
            await asyncio.sleep(1)
            after, previous = await self.finished(), after
        per_engine = [after[engine] - before[engine] for engine in range(self.ranks)]
        return Outcome(per_engine, sum(per_engine), seconds, tokens)

    async def finished(self) -> Counter[int]:
        async with self.session.get(f"{self.url}/metrics") as answer:
            text = await answer.text()
        counts: Counter[int] = Counter()
        for engine, value in SUCCESS.findall(text):
            counts[int(engine)] += round(float(value))
        return counts
