"""What the README shows, run as it stands there."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import httpx
from headcount import Engine, Table
from routers import SILENT, ByteEngine, in_flight, living, running, until

README = Path(__file__).parents[1] / "README.md"


def snippet(has: str) -> str:
    """The one block of Python in which these words are."""
    blocks: list[str] = re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.DOTALL | re.MULTILINE)
    (found,) = [block for block in blocks if has in block]
    return found


def test_the_fastapi_application_tells_clients_when_to_come_back(path: Path, tmp_path: Path) -> None:
    ok = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok"
    app = tmp_path / "shown.py"
    app.write_text(snippet("FastAPI()").replace("/dev/shm/llama", str(path)))

    async def scene() -> None:
        engine = ByteEngine(ok, SILENT)
        async with engine.serving(), httpx.AsyncClient(timeout=60, trust_env=False) as client:
            table = Table.create(path, engines=[Engine(engine.url, max_in_flight=1, max_tokens=100)])
            with running(path, [], 2, app) as (url, _):
                await until(lambda: len(living(path)) == 2)
                url += "/v1/completions"

                async def refused(**body: str) -> httpx.Response:
                    response = await client.post(url, json=body)
                    assert response.headers["content-type"] == "application/json"
                    assert "error" in response.json()
                    return response

                answered = await client.post(url, json={})
                assert (answered.status_code, answered.text) == (200, "ok")
                await until(lambda: in_flight(path) == [0])
                # The place is taken: by a client whose engine is silent, and that leaves at last.
                waiting = asyncio.create_task(client.post(url, json={}))
                await until(lambda: in_flight(path) == [1])
                busy = await refused()
                assert (busy.status_code, busy.headers["retry-after"]) == (503, "1")
                assert table.snapshot().refusals.engine_requests == 1
                waiting.cancel()
                await until(lambda: in_flight(path) == [0])
                table.down(0)
                down = await refused()
                assert (down.status_code, down.headers["retry-after"]) == (503, "1")
                table.up(0)
                # This one never gets in, however often it comes back.
                large = await refused(prompt="x" * 1000)
                assert (large.status_code, large.headers.get("retry-after")) == (400, None)

    asyncio.run(scene())
