"""The examples of the README, run as they stand there."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import httpx
from headcount import Engine, Table
from routers import SILENT, ByteEngine, in_flight, living, running, until

README = Path(__file__).parents[1] / "README.md"


def snippet(has: str) -> str:
    """Returns the one block of Python that contains these words."""
    blocks: list[str] = re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.DOTALL | re.MULTILINE)
    (found,) = [block for block in blocks if has in block]
    return found


def test_the_fastapi_application_tells_clients_when_to_come_back(path: Path, tmp_path: Path) -> None:
    ok = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok"
    app = tmp_path / "shown.py"
    app.write_text(snippet("FastAPI(").replace("/dev/shm/llama", str(path)))

    async def scene() -> None:
        engine = ByteEngine(ok, SILENT)
        async with engine.serving(), httpx.AsyncClient(timeout=60, trust_env=False) as client:
            table = Table.create(path, engines=[Engine(engine.url, max_in_flight=1, max_tokens=100)])
            with running(path, [], 2, app) as (url, process):
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
                # The place is taken by a client whose engine is silent, and is free when the client leaves.
                waiting = asyncio.create_task(client.post(url, json={}))
                await until(lambda: in_flight(path) == [1])
                busy = await refused()
                assert (busy.status_code, busy.headers["retry-after"]) == (503, "1")
                assert table.view().refusals_total.engine_requests == 1
                waiting.cancel()
                await until(lambda: in_flight(path) == [0])
                table.down(0)
                down = await refused()
                assert (down.status_code, down.headers["retry-after"]) == (503, "1")
                table.up(0)
                # This request is never taken, however often it comes back.
                large = await refused(prompt="x" * 1000)
                assert (large.status_code, large.headers.get("retry-after")) == (400, None)
                # Stopped in the middle of an answer, whose client leaves then.
                engine.answers = [SILENT]
                waiting = asyncio.create_task(client.post(url, json={}))
                await until(lambda: in_flight(path) == [1])
                process.terminate()
                await asyncio.sleep(0.5)
                assert (process.poll(), in_flight(path)) == (None, [1])
                waiting.cancel()
                await until(lambda: process.poll() is not None)
                assert (table.view().frontends, in_flight(path)) == ([], [0])

    asyncio.run(scene())


def run(shown: str, path: Path) -> str:
    """Runs a block in a process of its own, and returns its output."""
    program = "import headcount\n" + shown.replace("/dev/shm/llama", str(path))
    command = [sys.executable, "-c", program]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stderr
    return ran.stdout


def test_what_is_to_be_used_can_be(path: Path) -> None:
    for _ in range(2):  # with no table, and with one
        assert run(snippet("# For each request"), path) == "0 0\n1 0\n2 0\n3 0\n"


def test_what_is_shown_of_waiting_waits(path: Path) -> None:
    more = """
import asyncio, threading
permits = [frontend.route(), frontend.route()]
threading.Timer(0.1, lambda: [permit.release() for permit in permits]).start()
asyncio.run(answer("a"))
queue = table.view().queue
print(queue.waited.count, queue.waited.sum > 0.05, [each.waiting for each in queue.classes])
"""
    assert run(snippet("acquire_async") + more, path) == "1 True [0, 0, 0, 0]\n"


def test_a_deployment_gets_its_engines_whatever_the_table_has(path: Path) -> None:
    shown = snippet("table.deploy()")
    assert run(shown, path).strip() == ""
    table = Table.open(path)
    # Changed by an operator, and by another configuration.
    table.set_total_max_in_flight(7)
    assert run(shown, path).strip() == "max_in_flight 7, now 1024"
    table.apply(engines=["other"])
    assert "engine other: removed" in run(shown, path)
    view = table.view()
    told = [(engine.name, engine.max_in_flight) for engine in view.engines]
    assert (told, view.max_in_flight) == ([("http://10.0.0.7:8000", 256)], 1024)
