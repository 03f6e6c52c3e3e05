"""The messages that the example router passes on, byte by byte, and its own answers."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import headcount
import pytest
from routers import (
    EXAMPLES,
    OK,
    ByteEngine,
    connection,
    exchange,
    in_flight,
    living,
    message,
    posted,
    reason,
    router,
    running,
    until,
)

SERVERS = ["h11", "httptools"]


def fields(head: bytes) -> list[tuple[bytes, bytes]]:
    """Returns the headers in their order, with names in lower case."""
    lines = head.split(b"\r\n")[1:-2]
    return [(name.lower(), value) for name, value in (line.split(b": ", 1) for line in lines)]


@pytest.mark.parametrize("http", SERVERS)
def test_methods_targets_headers_and_bodies_reach_the_engine_as_they_came(
    path: Path, http: str
) -> None:
    targets = [
        "/v1/models",
        "/v1/a%2Fb/%E2%82%AC",
        "/x?limit=2&after=a%26b+c",
        "//a/../b;c=1,2?x=/?&y",
    ]
    methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"]
    asked = [(method, target) for method in methods for target in targets]
    if http == "h11":  # httptools takes no such target
        asked.append(("OPTIONS", "*"))
    headers = b"X-Twice: 1\r\nX-Twice: 2\r\nX-Bytes: \xe9\xff\r\nCookie: a=b\r\nAuthorization: Bearer k\r\n"
    own = [
        (b"connection", b"x-own, close"),
        (b"x-own", b"1"),
        (b"te", b"trailers"),
        (b"upgrade", b"h2c"),
    ]

    async def scene() -> None:
        async with (
            ByteEngine(
                *[OK.replace(b"ok", b"") if m == "HEAD" else OK for m, _ in asked]
            ).serving() as engine,
            router(path, [engine.url], workers=1, http=http) as url,
        ):
            for method, target in asked:
                request = f"{method} {target} HTTP/1.1\r\nHost: router\r\n".encode() + headers
                request += b"".join(b"%b: %b\r\n" % field for field in own)
                body = b"" if method in ("GET", "HEAD", "OPTIONS") else b'{"a": "\xff\x00"}'
                if body:
                    request += b"Content-Length: %d\r\n" % len(body)
                head, _ = await exchange(url, request + b"\r\n" + body)
                assert head.startswith(b"HTTP/1.1 200 ")
                line, engines = engine.heads[-1].split(b"\r\n")[0], fields(engine.heads[-1])
                assert line == f"{method} {target} HTTP/1.1".encode()
                expected = [
                    (b"host", engine.url[7:].encode()),
                    *fields(b"\r\n" + headers + b"\r\n"),
                ]
                if body:
                    expected.append((b"content-length", b"%d" % len(body)))
                expected.append((b"connection", b"close"))
                assert engines == expected
                assert engine.bodies[-1] == body
            # A body in chunks reaches the engine whole, with its length.
            engine.answers.append(OK)
            chunked = b"POST / HTTP/1.1\r\nHost: router\r\nTransfer-Encoding: chunked\r\n\r\n"
            await exchange(url, chunked + b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
            assert engine.bodies[-1] == b"abcde"

    asyncio.run(scene())


def test_a_target_is_brought_to_the_form_for_engines_or_refused(path: Path) -> None:
    async def scene() -> None:
        answers = [OK] * 5
        async with (
            ByteEngine(*answers).serving() as engine,
            router(path, [engine.url + "/base"], workers=1) as url,
        ):
            host = engine.url[7:].encode()
            for line, asked in (
                (b"GET http://evil/x?y=http://z", b"GET /base/x?y=http://z"),
                (b"GET HTTP://evil", b"GET /base/"),
                (b"GET https://evil?y", b"GET /base/?y"),
                (b"GET //evil/x", b"GET /base//evil/x"),
                (b"OPTIONS *", b"OPTIONS *"),
            ):
                head, _ = await exchange(url, line + b" HTTP/1.1\r\nHost: router\r\n\r\n")
                assert head.startswith(b"HTTP/1.1 200 "), line
                assert engine.heads[-1].startswith(asked + b" HTTP/1.1\r\n")
                assert fields(engine.heads[-1])[0] == (b"host", host)
            for line, status, code in (
                (b"GET x", 400, "bad_target"),
                (b"GET *", 400, "bad_target"),
                (b"GET ftp://evil/x", 400, "bad_target"),
                (b"CONNECT a:80", 501, "no_tunnel"),
            ):
                request = line + b" HTTP/1.1\r\nHost: router\r\n\r\n"
                assert reason(await exchange(url, request)) == (status, code), line
            assert len(engine.heads) == 5
            await until(lambda: in_flight(path) == [0])

    asyncio.run(scene())


@pytest.mark.parametrize("http", SERVERS)
def test_responses_reach_the_client_as_they_came(path: Path, http: str) -> None:
    packed = gzip.compress(b"packed")
    answers = {
        "two cookies": b"200 OK\r\nset-cookie: a=1\r\nset-cookie: b=2\r\ncontent-length: 2\r\n\r\nok",
        "packed": b"200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n%b"
        % (len(packed), packed),
        "elsewhere": b"307 Temporary Redirect\r\nlocation: /x\r\ncontent-length: 0\r\n\r\n",
        "unchanged": b'304 Not Modified\r\netag: "1"\r\n\r\n',
        "nothing": b"204 No Content\r\nx-bytes: \xe9\xff\r\n\r\n",
        "dated": b"404 Not Found\r\ndate: then\r\nserver: engine\r\ncontent-length: 2\r\n\r\nno",
    }

    async def scene() -> None:
        whole = [b"HTTP/1.1 " + answer for answer in answers.values()]
        async with (
            ByteEngine(*whole).serving() as engine,
            router(path, [engine.url], workers=1, http=http) as url,
        ):
            for name, answer in zip(answers, whole):
                head, body = await exchange(url, b"GET / HTTP/1.1\r\nHost: router\r\n\r\n")
                sent, _, its_body = answer.partition(b"\r\n\r\n")
                assert head.split()[1] == answer.split()[1], name
                assert fields(head) == fields(sent + b"\r\n\r\n"), name
                assert body == its_body, name
                # The router keeps no cookies.
                assert b"cookie" not in engine.heads[-1], name
            assert len(engine.heads) == len(answers), "no redirect was followed"
            # The answer to a HEAD has the length that a GET's would have.
            engine.answers.append(b"HTTP/1.1 200 OK\r\ncontent-length: 1234\r\n\r\n")
            head, _ = await exchange(url, b"HEAD / HTTP/1.1\r\nHost: router\r\n\r\n")
            assert fields(head) == [(b"content-length", b"1234")]
            # A 204 has no length, also if its engine gives one.
            engine.answers.append(b"HTTP/1.1 204 No Content\r\ncontent-length: 2\r\n\r\n")
            head, body = await exchange(url, b"GET / HTTP/1.1\r\nHost: router\r\n\r\n")
            assert (head.split()[1], fields(head), body) == (b"204", [], b"")
            # The chunks tell the length of a body, not the content-length beside them.
            both = b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n"
            engine.answers.append(both + b"2\r\nok\r\n0\r\n\r\n")
            head, body = await exchange(url, b"GET / HTTP/1.1\r\nHost: router\r\n\r\n")
            assert body == b"2\r\nok\r\n0\r\n\r\n"
            assert fields(head) == [(b"transfer-encoding", b"chunked")]

    asyncio.run(scene())


def test_a_part_of_an_answer_does_not_wait_for_the_one_before_to_be_confirmed(path: Path) -> None:
    async def scene() -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        assert not listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        with running(path, ["http://127.0.0.1:9"], 2, listening=listener) as (url, _):
            await until(lambda: path.exists() and len(living(path)) == 2)
            # A connection inherits the option from the listening socket.
            assert listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            assert reason(await exchange(url, posted(b"{}")))[0] == 503

    asyncio.run(scene())


def test_a_proxy_in_front_is_told_to_pass_events_on_at_once(path: Path) -> None:
    async def scene() -> None:
        chunked = b"transfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
        events = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
        told = events + b"x-accel-buffering: yes\r\n"
        text = events.replace(b"event-stream", b"plain")
        async with (
            ByteEngine(events + chunked, told + chunked, text + chunked).serving() as engine,
            router(path, [engine.url], workers=1) as url,
        ):
            for expected in ([b"no"], [b"yes"], []):
                head, _ = await exchange(url, posted(b"{}"))
                found = [value for name, value in fields(head) if name == b"x-accel-buffering"]
                assert found == expected

    asyncio.run(scene())


def test_engines_may_be_listed_with_spaces_and_no_proxy_is_asked(path: Path) -> None:
    async def scene() -> None:
        async with (
            ByteEngine(OK).serving() as a,
            ByteEngine(OK).serving() as b,
            ByteEngine(OK).serving() as proxy,
            router(
                path,
                [f" {a.url}/base/", f" {b.url} ", ""],
                workers=1,
                HTTP_PROXY=proxy.url,
                http_proxy=proxy.url,
                ALL_PROXY=proxy.url,
            ) as url,
        ):
            for _ in range(2):
                assert (await exchange(url, b"GET /x HTTP/1.1\r\nHost: router\r\n\r\n"))[1] == b"ok"
            assert [len(e.heads) for e in (a, b, proxy)] == [1, 1, 0]
            assert a.heads[0].startswith(b"GET /base/x HTTP/1.1\r\n")

    asyncio.run(scene())


@pytest.mark.parametrize(
    "engines", ["127.0.0.1:8001", "ftp://engine", "http://", ",", "http://a:x"]
)
def test_what_is_no_address_is_refused_at_the_start(path: Path, engines: str) -> None:
    with running(path, [engines], workers=1) as (_, process):
        assert process.wait(60) != 0
    assert not path.exists()


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("ROUTER_ENGINES", None, "names no engine; give their addresses, as in http://10.0.0.7:8000"),
        ("ROUTER_ENGINES", " , ", "names no engine; give their addresses, as in http://10.0.0.7:8000"),
        ("ROUTER_ENGINES", "http://a:x", "names 'http://a:x'; give addresses, as in http://10.0.0.7"),
        ("ROUTER_MOST_PER_ENGINE", "many", "is 'many'; give a whole number from 1 to 1048575, as in 1024"),
        ("ROUTER_MOST_PER_ENGINE", "0", "is '0'; give a whole number from 1 to 1048575, as in 1024"),
        ("ROUTER_MOST_BYTES", "1e6", "is '1e6'; give a whole number from 1 to"),
        ("ROUTER_CONNECT", "soon", "is 'soon'; give a number of seconds above 0, as in 5"),
        ("ROUTER_SILENCE", "nan", "is 'nan'; give a number of seconds above 0, as in 600"),
        ("ROUTER_PATIENCE", "-1", "is '-1'; give a number of seconds above 0, as in 60"),
        ("ROUTER_TABLE", "", "is empty; give the path of the table, as in /dev/shm/router"),
    ],
)
def test_a_setting_that_cannot_be_is_told_in_one_sentence(
    path: Path, name: str, value: str | None, told: str
) -> None:
    environment = {**os.environ, "ROUTER_ENGINES": "http://127.0.0.1:1", "ROUTER_TABLE": str(path)}
    environment.pop(name, None)
    if value is not None:
        environment[name] = value
    command = [sys.executable, "-m", "uvicorn", "router:app", "--port", "0", "--log-level", "warning"]
    ran = subprocess.run(
        command, cwd=EXAMPLES, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode != 0
    assert "Traceback" not in ran.stderr
    first, *others = ran.stderr.splitlines()
    assert f"{name} {told}" in first
    assert not any("ROUTER_" in line for line in others)
    assert not path.exists()


# -- Engines that fail -------------------------------------------------------------------------------


def test_no_request_meets_the_end_of_a_connection_that_was_kept(path: Path) -> None:
    """The engine closes each connection when a second request comes on it, as if both had crossed."""

    class OneEach(ByteEngine):
        async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.connections += 1
            await message(reader)
            writer.write(OK)
            self.heads.append(await reader.readuntil(b"\r\n\r\n"))
            writer.close()

    async def scene() -> None:
        async with (
            OneEach().serving() as engine,
            router(path, [engine.url], workers=1) as url,
        ):
            for request in [b"GET / HTTP/1.1\r\nHost: router\r\n\r\n", posted(b"{}")] * 3:
                head, body = await exchange(url, request)
                assert (head.split()[1], body) == (b"200", b"ok")
            assert (engine.connections, engine.heads) == (6, [])
            await until(lambda: in_flight(path) == [0])

    asyncio.run(scene())


@pytest.mark.parametrize("http", SERVERS)
def test_a_row_that_is_no_address_is_passed_over(
    path: Path, http: str, capfd: pytest.CaptureFixture[str]
) -> None:
    rows = ["bogus", "gpu-0", "ftp://h", "127.0.0.1:8001", "http://h:99999", "http://h:x"]
    rows += ["http://[::1", "http://", "http://h:0", "http://a..b", "http://h/a b", "http://\xe4:1"]
    rows += ["http://" + "a" * 64]

    async def scene() -> None:
        async with (
            ByteEngine(OK).serving() as engine,
            router(path, [engine.url], workers=1, http=http) as url,
        ):
            table = headcount.Table.open(path)
            for row in rows:
                table.add(headcount.Engine(row))
            # The engine whose name is an address is asked last.
            holder = table.join()
            held = holder.route(pin=0)
            head, body = await exchange(url, posted(b"{}"))
            assert (head.split()[1], body) == (b"200", b"ok")
            table.drain(0)
            assert reason(await exchange(url, posted(b"{}"))) == (503, "no_engine")
            held.release()
            await until(lambda: not any(in_flight(path)))

    asyncio.run(scene())
    log = capfd.readouterr().err
    for row in rows:
        assert log.count(f"{row} cannot be reached: its name is no address") == 2, row


@pytest.mark.parametrize("http", SERVERS)
def test_what_an_engine_sends_beyond_an_answer_reaches_no_other_client(
    path: Path, http: str
) -> None:
    async def scene() -> None:
        evil = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nEVIL"
        chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
        none = b"HTTP/1.1 204 No Content\r\n\r\n"
        async with (
            ByteEngine(OK + evil, OK, chunked + evil, OK, none + evil, OK).serving() as engine,
            router(path, [engine.url], workers=1, http=http) as url,
        ):
            for number in range(6):
                target = b"/%d" % number
                head, body = await exchange(url, b"GET %b HTTP/1.1\r\nHost: r\r\n\r\n" % target)
                assert b"EVIL" not in body
                assert (b"ok" in body) == head.startswith(b"HTTP/1.1 200 ")
                assert engine.heads[-1].startswith(b"GET %b " % target)
            assert len(engine.heads) == 6

    asyncio.run(scene())


@pytest.mark.parametrize("http", SERVERS)
@pytest.mark.parametrize(
    "begun",
    [b"content-length: 9\r\n\r\nbegin", b"transfer-encoding: chunked\r\n\r\n5\r\nbegin\r\n"],
)
def test_an_answer_that_its_engine_breaks_off_does_not_look_whole(
    path: Path, http: str, begun: bytes
) -> None:
    async def scene() -> None:
        async with (
            ByteEngine(b"HTTP/1.1 200 OK\r\n" + begun, closes=True).serving() as engine,
            router(path, [engine.url], workers=1, http=http) as url,
            connection(url) as (reader, writer),
        ):
            writer.write(posted(b"{}"))
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 ")
            with pytest.raises(asyncio.IncompleteReadError) as early:
                await reader.readexactly(1000)
            # The client gets neither the whole length nor the last chunk.
            assert early.value.partial in (b"begin", b"5\r\nbegin\r\n")
            assert in_flight(path) == [0]

    asyncio.run(scene())


def test_the_router_says_why_in_the_form_of_openais_errors(path: Path) -> None:
    async def scene() -> None:
        silent = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nbegin\r\n"
        async with (
            ByteEngine(b"nonsense\r\n\r\n", b"", silent).serving() as engine,
            router(
                path, [engine.url], workers=1, ROUTER_SILENCE="0.5", ROUTER_MOST_BYTES="100"
            ) as url,
        ):
            assert reason(await exchange(url, posted(b"{}"))) == (502, "engine_broke_off")
            assert reason(await exchange(url, posted(b"{}"))) == (504, "engine_timeout")
            # An engine that falls silent amid its answer.
            async with connection(url) as (reader, writer):
                writer.write(posted(b"{}"))
                assert (await reader.read()).endswith(b"\r\n\r\n5\r\nbegin\r\n")
            # Too large by its length and by its bytes; refused before the client is asked to send it.
            assert reason(await exchange(url, posted(b"x" * 101))) == (413, "body_too_large")
            chunked = b"POST / HTTP/1.1\r\nHost: r\r\nTransfer-Encoding: chunked\r\n\r\n"
            large = await exchange(url, chunked + b"65\r\n" + b"x" * 101 + b"\r\n0\r\n\r\n")
            assert reason(large) == (413, "body_too_large")
            expect = (
                b"POST / HTTP/1.1\r\nHost: r\r\nExpect: 100-continue\r\nContent-Length: 101\r\n\r\n"
            )
            assert reason(await exchange(url, expect)) == (413, "body_too_large")
            assert in_flight(path) == [0]
            assert len(engine.heads) == 3

    asyncio.run(scene())


def test_an_answer_that_comes_before_the_body_was_read_is_passed_on(path: Path) -> None:
    """Also if the engine reads no more of the body. One that reads on gets all of it."""
    size = 20_000_000

    class Early(ByteEngine):
        reads = False

        async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(OK[:-2])
            if self.reads:
                self.bodies.append(await reader.readexactly(size))
            writer.write(OK[-2:])
            await asyncio.Event().wait()  # neither reads nor closes

    async def scene() -> None:
        engine = Early()
        async with engine.serving(), router(path, [engine.url], workers=1) as url:
            for engine.reads in (False, True):
                begun = asyncio.get_running_loop().time()
                head, body = await exchange(url, posted(b"x" * size))
                assert (head.split()[1], body) == (b"200", b"ok")
                # Within seconds, not after the minute that a write may take.
                assert asyncio.get_running_loop().time() - begun < 45
                await until(lambda: in_flight(path) == [0])
            assert engine.bodies == [b"x" * size]

    asyncio.run(scene())


@contextmanager
def full() -> Iterator[str]:
    """Gives the address of an engine that accepts no connection."""
    with socket.socket() as listener, socket.socket() as one, socket.socket() as two:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for waiting in (one, two):
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        yield "http://127.0.0.1:%d" % listener.getsockname()[1]


def test_an_engine_that_accepts_no_connection_is_passed_over(path: Path) -> None:
    async def scene() -> None:
        with full() as silent:
            async with (
                ByteEngine(OK, OK).serving() as engine,
                router(path, [silent, engine.url], workers=1, ROUTER_CONNECT="2") as url,
            ):
                for _ in range(2):
                    assert (await exchange(url, posted(b"{}")))[1] == b"ok"
                engine.answers = [OK]
            second = path.with_name(path.name + "-2")
            async with router(second, [silent], workers=1, ROUTER_CONNECT="0.5") as url:
                head, body = await exchange(url, posted(b"{}"))
                assert reason((head, body)) == (503, "no_engine")
                assert b"retry-after: 1" in head.lower()
                # A message for the client, not for the operator.
                assert "exclude" not in json.loads(body)["error"]["message"]
            second.unlink()

    asyncio.run(scene())
