"""Waiting for a place in asyncio tasks, under asyncio's own loop and under uvloop."""

from __future__ import annotations

import asyncio
import gc
import random
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

import headcount
import pytest
import uvloop
from counts import in_flight
from headcount import Frontend, Permit
from waiters import Holder, compute, holder, is_empty, queue, table_of, until, waiting

Loop = Callable[[], asyncio.AbstractEventLoop]
LOOPS = pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])


def run(new_loop: Loop, scene: Coroutine[Any, Any, None]) -> None:
    """Runs a scene in a loop of its own, in which no callback may fail."""
    loop = new_loop()
    failed: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: failed.append(context))
    try:
        loop.run_until_complete(asyncio.wait_for(scene, 60))
    finally:
        loop.close()
    assert failed == []


async def soon(condition: Callable[[], bool]) -> None:
    for _ in range(60_000):
        if condition():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("the condition was not met")


def threads() -> list[str]:
    """Returns the names of the threads of this process that wait for tasks."""
    tasks = Path("/proc/self/task")
    names = [(task / "comm").read_text().strip() for task in tasks.iterdir()]
    return [name for name in names if name == "headcount-wait"]


@LOOPS
def test_q2_two_thousand_tasks_wait_in_order_by_one_thread(new_loop: Loop) -> None:
    table = table_of()
    frontend = table.join()
    served: list[int] = []

    async def wait(number: int) -> None:
        async with await frontend.acquire_async():
            assert in_flight(table) == [1]
            served.append(number)

    gc.collect()
    until(lambda: threads() == [])  # those of frontends of other tests

    async def scene() -> None:
        held = await frontend.acquire_async()
        assert threads() == [], "a task that does not wait needs no thread"
        tasks = [asyncio.create_task(wait(number)) for number in range(2000)]
        await soon(lambda: waiting(table) == 2000)
        assert len(threads()) == 1
        spent, begun = time.process_time(), time.monotonic()
        await asyncio.sleep(0.5)
        spent, lasted = time.process_time() - spent, time.monotonic() - begun
        assert spent < lasted / 5, "waiting takes no processor time"
        held.release()
        await asyncio.gather(*tasks)
        assert served == list(range(2000))

    run(new_loop, scene())
    assert is_empty(table)


@LOOPS
def test_q2_classes_and_shares_are_served_as_they_say(new_loop: Loop) -> None:
    table = table_of()
    frontend = table.join()
    served: list[str] = []

    async def wait(class_: int, tenant: str | None, share: int = 1) -> None:
        async with await frontend.acquire_async(class_=class_, tenant=tenant, share=share):
            served.append(f"{class_}{tenant or ''}")

    async def scene() -> None:
        held = await frontend.acquire_async()
        asked = [(3, None)] * 2 + [(1, "small")] * 20 + [(1, "large")] * 20 + [(0, None)] * 2
        tasks = []
        for class_, tenant in asked:
            share = 3 if tenant == "large" else 1
            tasks.append(asyncio.create_task(wait(class_, tenant, share)))
            await asyncio.sleep(0)
        assert waiting(table) == len(asked)
        held.release()
        await asyncio.gather(*tasks)

    run(new_loop, scene())
    assert (served[:2], served[-2:]) == (["0", "0"], ["3", "3"])
    # Three of the one for each of the other, while both wait.
    assert served[2:26].count("1large") in (17, 18, 19)
    assert is_empty(table)


async def by_cancel(waits: asyncio.Task[Permit]) -> None:
    waits.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waits


async def by_timeout(waits: asyncio.Task[Permit]) -> None:
    with pytest.raises(asyncio.TimeoutError):
        async with asyncio.timeout(0.01):
            await waits


async def by_wait_for(waits: asyncio.Task[Permit]) -> None:
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(waits, 0.01)


ENDS = [by_cancel, by_wait_for] + [by_timeout] * (sys.version_info >= (3, 11))


@LOOPS
@pytest.mark.parametrize("end", ENDS)
def test_q5_a_task_that_is_cancelled_leaves_the_queue(
    new_loop: Loop, end: Callable[[asyncio.Task[Permit]], Awaitable[None]]
) -> None:
    table = table_of()
    frontend = table.join()

    async def scene() -> None:
        with await frontend.acquire_async() as held:
            waits = asyncio.create_task(frontend.acquire_async())
            last = asyncio.create_task(frontend.acquire_async())
            await soon(lambda: waiting(table) == 2)
            await end(waits)
            # At once, and not when the garbage collector runs: the task and its exception are still there.
            assert waiting(table) == 1
            assert waits.cancelled()
            held.release()
            (await last).release()

    run(new_loop, scene())
    assert queue(table).cancelled_total == 1
    assert is_empty(table)


@LOOPS
def test_q5_a_place_that_comes_with_the_cancel_goes_to_the_next(new_loop: Loop) -> None:
    table = table_of()
    frontend = table.join()
    raced = 0

    async def scene() -> None:
        nonlocal raced
        for turn in range(50):
            held = await frontend.acquire_async()
            first = asyncio.create_task(frontend.acquire_async())
            second = asyncio.create_task(frontend.acquire_async())
            await soon(lambda: waiting(table) == 2)
            held.release()
            # The loop stands still, and the first task gets the place meanwhile.
            until(lambda: in_flight(table) == [1])
            if turn % 2:
                await asyncio.sleep(0)  # and its loop has been told
            if first.cancel():
                with pytest.raises(asyncio.CancelledError):
                    await first
                raced += 1
            else:
                (await first).release()
            permit = await second
            assert in_flight(table) == [1]
            permit.release()

    run(new_loop, scene())
    assert raced > 10
    assert is_empty(table)


@LOOPS
def test_q5_tasks_are_cancelled_at_any_moment_and_nothing_stays_counted(new_loop: Loop) -> None:
    """A thread takes and gives back the place meanwhile."""
    table = table_of()
    frontend, other = table.join(), table.join()
    most = served = cancelled = 0
    ends = threading.Event()

    def hold() -> None:
        while not ends.is_set():
            other.acquire(timeout=60).release()

    async def wait() -> None:
        nonlocal most, served
        async with await frontend.acquire_async(timeout=30):
            most = max(most, *in_flight(table))
            served += 1
            await asyncio.sleep(0)

    async def scene() -> None:
        nonlocal cancelled
        chance = random.Random(7)
        tasks: set[asyncio.Task[None]] = set()
        for _ in range(1000):
            tasks.add(asyncio.create_task(wait()))
            await asyncio.sleep(0)
            if chance.random() < 0.5:
                chance.choice(list(tasks)).cancel()
            done = {task for task in tasks if task.done()}
            cancelled += sum(task.cancelled() for task in done)
            tasks -= done
        await asyncio.gather(*tasks, return_exceptions=True)

    with ThreadPoolExecutor() as pool:
        holding = pool.submit(hold)
        try:
            run(new_loop, scene())
        finally:
            ends.set()
        holding.result(60)
    assert served > 100 and cancelled > 100
    assert most == 1
    assert is_empty(table)


@LOOPS
def test_the_errors_of_a_wait_come_to_its_task(new_loop: Loop) -> None:
    table = table_of(waiting=1)
    frontend = table.join()

    async def scene() -> None:
        before = time.monotonic()
        with await frontend.acquire_async():
            with pytest.raises(headcount.WaitedTooLongError) as late:
                await frontend.acquire_async(timeout=0.05)
            assert 0.05 <= late.value.waited <= time.monotonic() - before < 1
            with pytest.raises(headcount.WaitedTooLongError):
                await frontend.acquire_async(timeout=0)
            waits = asyncio.create_task(frontend.acquire_async())
            await soon(lambda: waiting(table) == 1)
            with pytest.raises(headcount.QueueFullError):
                await frontend.acquire_async()
            # It waits when it is awaited, not before, and its timeout runs from then.
            asked = frontend.acquire_async(timeout=0.2)
            waits.cancel()
            await asyncio.sleep(0.3)
            assert waiting(table) == 0
        (await asked).release()
        with pytest.raises(headcount.RequestError):
            await frontend.acquire_async(class_=4)
        with await frontend.acquire_async():
            waits = asyncio.create_task(frontend.acquire_async(pin=0))
            await soon(lambda: waiting(table) == 1)
            table.remove(0)
            with pytest.raises(headcount.NoSuchEngineError):
                await waits

    run(new_loop, scene())
    frontend.close()
    with pytest.raises(ValueError, match="closed"):
        frontend.acquire_async().close()
    assert waiting(table) == 0


def test_what_is_returned_is_a_coroutine() -> None:
    """So it can be given to everything that asyncio has."""
    frontend = table_of(places=9).join()

    async def scene() -> None:
        asked = frontend.acquire_async()
        assert asyncio.iscoroutine(asked)
        permits = [*await asyncio.gather(asked, frontend.acquire_async())]
        permits.append(await asyncio.wait_for(frontend.acquire_async(), 60))
        assert [permit.engine for permit in permits] == [0, 0, 0]
        with pytest.warns(RuntimeWarning, match="never awaited"):
            never = frontend.acquire_async()
            del never

    asyncio.run(scene())


@LOOPS
@pytest.mark.parametrize("granted", [False, True])
def test_a_loop_that_is_closed_meanwhile_keeps_nothing(new_loop: Loop, granted: bool) -> None:
    """Its tasks are collected as others of a closed loop are, and then leave the queue."""
    table = table_of()
    frontend = table.join()
    held = frontend.acquire()
    loop = new_loop()
    loop.set_exception_handler(lambda *_: None)  # of tasks that are destroyed while they wait
    tasks = [loop.create_task(frontend.acquire_async()) for _ in range(3)]
    loop.run_until_complete(soon(lambda: waiting(table) == 3))
    loop.close()
    if granted:
        # One of them gets the place, and does not know it.
        held.release()
        until(lambda: waiting(table) == 2)
        assert in_flight(table) == [1]
    else:
        assert waiting(table) == 3
    for task in tasks:
        task._log_destroy_pending = False  # type: ignore[attr-defined]
    del loop, tasks, task
    gc.collect()
    assert waiting(table) == 0
    held.release()
    assert is_empty(table)
    # The next loop works.
    run(new_loop, _takes_a_place(frontend))


async def _takes_a_place(frontend: Frontend) -> None:
    (await frontend.acquire_async(timeout=60)).release()


@LOOPS
def test_loops_of_several_threads_wait_at_once(new_loop: Loop) -> None:
    table = table_of()
    frontends = [table.join(), table.join()]
    gc.collect()
    until(lambda: threads() == [])

    async def pass_through(frontend: Frontend) -> None:
        async with await frontend.acquire_async(timeout=60):
            await asyncio.sleep(0)

    async def scene(frontend: Frontend) -> None:
        for _ in range(20):
            await asyncio.gather(*(pass_through(frontend) for _ in range(10)))

    with ThreadPoolExecutor(6) as pool:
        runs = [pool.submit(run, new_loop, scene(frontends[number % 2])) for number in range(6)]
        for each in runs:
            each.result(60)
    assert len(threads()) <= 2
    assert queue(table).waited.count > 100
    assert is_empty(table)


ENDS_WHILE_IT_WAITS = """
import asyncio, headcount, sys, threading, time
table = headcount.Table.from_fd(int(sys.argv[1]))
frontend = table.join()

async def scene():
    await asyncio.gather(*(frontend.acquire_async() for _ in range(100)))

threading.Thread(target=lambda: asyncio.run(scene()), daemon=True).start()
while table.view().queue.classes[0].waiting < 100:
    time.sleep(0.001)
print("waits", flush=True)
if sys.argv[2] == "exit":
    sys.exit(7)
time.sleep(0.1)
"""


@pytest.mark.parametrize("how", ["exit", "end"])
def test_a_process_can_end_while_tasks_wait(how: str) -> None:
    """Meanwhile places fall free, and the waiting thread tells the loop of a thread that is about to go."""
    table = table_of(places=50)
    frontend = table.join()
    command = [sys.executable, "-c", ENDS_WHILE_IT_WAITS, str(table.fileno()), how]
    for _ in range(5):
        held = [frontend.acquire() for _ in range(50)]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, pass_fds=[table.fileno()], stdout=pipe, stderr=pipe) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == b"waits\n"
            for permit in held:
                permit.release()
                time.sleep(0.001)
            assert child.communicate(timeout=60)[1] == b""
            assert child.returncode == (7 if how == "exit" else 0)
        table.reap()
        assert is_empty(table)


def test_a_thread_that_computes_keeps_no_place_idle() -> None:
    """The thread that waits for tasks needs no lock of the interpreter, so it gives a second task its place while no
    code of Python's can run to tell the first one."""
    table = table_of(places=2)
    frontend = table.join()
    idle: list[float] = []
    took: list[float] = []

    async def scene(other: Holder) -> None:
        for _ in range(20):
            other.has_all()
            waits = [asyncio.create_task(frontend.acquire_async()) for _ in range(2)]
            await soon(lambda: waiting(table) == 2)
            other.give_back()
            took.append(compute())
            idle.append(other.idle())
            for permit in await asyncio.gather(*waits):
                permit.release()

    with holder(table, places=2, rounds=20) as other:
        asyncio.run(scene(other))
    assert median(idle) < median(took) / 4, (idle, took)
    assert is_empty(table)
