"""Waiting for a place in a thread: bounds, order, deadlines, signals, forks and deaths."""

from __future__ import annotations

import asyncio
import math
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

import headcount
import pytest
from counts import in_flight
from headcount import Engine, Frontend, Table
from waiters import Holder, compute, holder, is_empty, queue, table_of, until, waiting


def test_q1_a_place_that_falls_free_goes_to_the_thread_that_waits() -> None:
    table = table_of()
    frontend = table.join()
    first = frontend.acquire(tokens=3)
    assert (first.engine, first.tokens) == (0, 3)
    with ThreadPoolExecutor() as threads:
        second = threads.submit(frontend.acquire, timeout=60, tokens=5)
        until(lambda: waiting(table) == 1)
        assert [seen.waiting for seen in table.view().frontends] == [1]
        first.release()
        with second.result(60) as permit:
            assert (permit.tokens, in_flight(table)) == (5, [1])
    assert is_empty(table)
    waited = queue(table).waited
    assert waited.count == 1 and 0 < waited.sum < 60
    assert waited.quantile(0.5) in (*headcount.WaitedView.BOUNDS, None)


def test_a_median_is_the_bound_of_its_range() -> None:
    bounds = headcount.WaitedView.BOUNDS
    assert bounds[:3] == (0.001, 0.0025, 0.005)
    ranges = [3, 0, 1] + [0] * (len(bounds) - 3) + [1]
    waited = headcount.WaitedView(by_range=ranges, sum=1.0)
    assert waited.count == 5
    assert [waited.quantile(it) for it in (0, 0.5, 0.6, 0.7, 1)] == [0.001, 0.001, 0.001, 0.005, None]
    assert headcount.WaitedView(by_range=[0] * 16, sum=0.0).quantile(0.5) is None


def test_q3_at_most_so_many_wait_as_the_table_allows() -> None:
    table = table_of(waiting=3, max_waiting_of_class={2: 1})
    frontend = table.join()

    def pass_through(class_: int) -> None:
        frontend.acquire(class_=class_, timeout=60).release()

    for known in (False, True):
        with ThreadPoolExecutor() as threads, frontend.acquire():
            threads.submit(pass_through, 2)
            until(lambda: waiting(table) == 1)
            with pytest.raises(headcount.QueueFullError, match="of class 2") as full:
                frontend.acquire(class_=2)
            assert full.value.class_ == 2
            for _ in range(2):
                threads.submit(pass_through, 1)
            until(lambda: waiting(table) == 3)
            assert [it.waiting for it in queue(table).classes] == [0, 2, 1, 0]
            with pytest.raises(headcount.QueueFullError, match="max_waiting") as full:
                frontend.acquire()
            # The rate at which requests are served is known when some were.
            after = full.value.retry_after
            assert (full.value.class_, after is not None) == (None, known)
            assert after is None or 0 < after < 60
            again = pickle.loads(pickle.dumps(full.value))
            assert (str(again), again.class_, again.retry_after) == (str(full.value), None, after)
    assert queue(table).refused_total == 4
    assert is_empty(table)


def test_q3_a_deadline_ends_the_wait_and_never_early() -> None:
    table = table_of()
    frontend = table.join()
    held = frontend.acquire()
    for timeout in (0.001, 0.02, 0.3):
        before = time.monotonic()
        with pytest.raises(headcount.WaitedTooLongError) as late:
            frontend.acquire(timeout=timeout)
        took = time.monotonic() - before
        assert timeout <= late.value.waited <= took < timeout + 1
        assert isinstance(late.value, TimeoutError)
        again = pickle.loads(pickle.dumps(late.value))
        assert (str(again), again.waited) == (str(late.value), late.value.waited)
    # With 0 it tries once.
    with pytest.raises(headcount.WaitedTooLongError) as late:
        frontend.acquire(timeout=0)
    assert late.value.waited == 0
    held.release()
    frontend.acquire(timeout=0).release()
    assert queue(table).timed_out_total == 3
    assert is_empty(table)


@pytest.mark.parametrize("bad", [-1, -1e-9, math.nan, math.inf, -math.inf, 1e300])
def test_a_timeout_that_is_none_is_told(bad: float) -> None:
    frontend = table_of().join()
    for call in (frontend.acquire, frontend.acquire_async):
        with pytest.raises(ValueError, match="timeout is .*, but it must be a number of seconds, 0 or more"):
            call(timeout=bad)


def test_a_request_that_cannot_be_is_told_why() -> None:
    table = table_of()
    frontend = table.join()
    held = frontend.acquire()
    for argument, why in (
        ({"class_": 4}, "there is no class 4; classes are 0, which is served first, to 3"),
        ({"class_": -1}, "there is no class -1; classes are 0"),
        ({"class_": 300}, "there is no class 300; classes are 0"),
        ({"tenant": "x" * 233}, "the tenant's name has 233 bytes, and may have 232"),
        ({"share": 0}, "a tenant's share cannot be 0"),
    ):
        with pytest.raises(ValueError, match=why):
            frontend.acquire(**argument)
    with pytest.raises(headcount.RequestError):
        frontend.acquire(class_=9)
    with pytest.raises(headcount.SaturatedError) as never:
        table.set_caps(0, max_tokens=10)
        frontend.acquire(tokens=11)
    assert not never.value.passes
    with pytest.raises(headcount.OptionError, match="the class of max_waiting_of_class is 4"):
        table_of(max_waiting_of_class={4: 1})
    for bad in (0, 1 << 20):
        with pytest.raises(headcount.OptionError, match=f"max_waiting is {bad}, but it must be 1 to"):
            table_of(waiting=bad)
    held.release()
    assert is_empty(table)


def test_a_table_without_a_queue_takes_no_request_that_would_wait() -> None:
    engine = Engine("a", max_in_flight=1)
    table = Table.memfd(engines=[engine])
    frontend = table.join()
    assert table.view().queue is None
    with frontend.acquire():
        with pytest.raises(headcount.NoQueueError, match="max_waiting"):
            frontend.acquire(timeout=60)
        # It gets a queue while frontends go on.
        assert [it.option for it in table.apply(max_waiting=5).differences] == ["max_waiting"]
        with pytest.raises(headcount.WaitedTooLongError):
            frontend.acquire(timeout=0.001)
    assert is_empty(table)
    table.apply()
    assert table.view().queue is None


def test_a_request_goes_where_it_may() -> None:
    table = Table.memfd(engines=[Engine(name, max_in_flight=1) for name in "abc"], max_waiting=9)
    frontend = table.join()
    held = [frontend.route(pin=number) for number in range(3)]
    with ThreadPoolExecutor() as threads:
        pinned = threads.submit(frontend.acquire, timeout=60, pin=1)
        until(lambda: waiting(table) == 1)
        elsewhere = threads.submit(frontend.acquire, timeout=60, exclude=[0, 1])
        until(lambda: waiting(table) == 2)
        held[0].release()  # which none of them may use
        with frontend.acquire(prefer=(0, 9.0)) as permit:
            assert permit.engine == 0
        held[2].release()
        with elsewhere.result(60) as permit:
            assert permit.engine == 2
        assert not pinned.done()
        # An engine that is removed takes no request any more.
        table.remove(1)
        with pytest.raises(headcount.NoSuchEngineError):
            pinned.result(60)
        held[1].release()
    assert is_empty(table)


def _wait_in_turn(table: Table, place: int, told: int) -> None:
    """Has a thread wait for each line of its input. The thread that gets the place writes the line's number."""
    frontend = table.join()

    def wait(number: int) -> None:
        with frontend.acquire(timeout=60):
            os.write(told, b"%d\n" % number)

    with os.fdopen(place) as lines, ThreadPoolExecutor(64) as threads:
        for line in lines:
            threads.submit(wait, int(line))


def test_q2_the_first_that_waits_is_served_first_over_processes() -> None:
    # By turns, but not strictly: 0 0 1 0 1 1, and so on.
    turns = [(number * number // 3) % 2 for number in range(60)]
    for _ in range(10):
        served = _served_over_processes(turns)
        for process in range(2):
            own = [number for number in served if turns[number] == process]
            assert own == sorted(own)
        if served == list(range(60)):
            return
        # On a busy machine, the queue passes over a process that does not run for 10 ms.
    raise AssertionError(f"in ten attempts, never in order: {served}")


def _served_over_processes(turns: list[int]) -> list[int]:
    """Has two processes wait by these turns. Returns the numbers of those that wait, in the order of service."""
    table = table_of()
    frontend = table.join()
    held = frontend.acquire()
    reading, told = os.pipe()
    pipes = [os.pipe() for _ in range(2)]
    children = []
    for place, _ in pipes:
        if (child := os.fork()) == 0:
            for _, end in pipes:
                os.close(end)
            try:
                _wait_in_turn(table, place, told)
            finally:
                os._exit(0)
        children.append(child)
    for number, process in enumerate(turns):
        os.write(pipes[process][1], b"%d\n" % number)
        until(lambda: waiting(table) == number + 1)
    held.release()
    for place, end in pipes:
        os.close(place)
        os.close(end)
    for child in children:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    os.close(told)
    table.reap()
    assert is_empty(table)
    with os.fdopen(reading) as lines:
        return [int(line) for line in lines]


def test_other_threads_run_while_one_waits() -> None:
    """The count is compared with that of a time in which no thread waits."""
    table = table_of()
    frontend = table.join()
    count, ends = 0, threading.Event()

    def work() -> None:
        nonlocal count
        while not ends.is_set():
            count += 1

    with frontend.acquire(), ThreadPoolExecutor() as threads:
        try:
            threads.submit(work)
            before = count
            time.sleep(0.3)
            alone = count - before
            before = count
            with pytest.raises(headcount.WaitedTooLongError):
                frontend.acquire(timeout=0.3)
            beside = count - before
        finally:
            ends.set()
    assert beside > alone / 4 > 100
    assert is_empty(table)


def test_a_thread_that_computes_keeps_no_place_idle() -> None:
    """The main thread, which looks for signals, takes the place first and waits for the interpreter's lock then."""
    table = table_of()
    frontend = table.join()
    idle, took = [], []
    with holder(table, places=1, rounds=20) as other, ThreadPoolExecutor() as threads:
        for _ in range(20):
            other.has_all()
            computes = threads.submit(_compute_when_one_waits, table, other)
            with frontend.acquire(timeout=60):
                took.append(computes.result(60))
            idle.append(other.idle())
    assert median(idle) < median(took) / 4, (idle, took)
    assert is_empty(table)


def _compute_when_one_waits(table: Table, other: Holder) -> float:
    until(lambda: waiting(table) == 1)
    other.give_back()
    return compute()


INTERRUPTED = """
import headcount, os, signal, sys, threading, time
table = headcount.Table.from_fd(int(sys.argv[1]))
frontend = table.join()
if sys.argv[2] == "beside":  # another thread looks for places for the main thread
    threading.Thread(target=frontend.acquire, daemon=True).start()
    while table.view().frontends[1].waiting == 0:
        time.sleep(0.001)
for _ in range(20):
    try:
        print("waits", flush=True)
        frontend.acquire(timeout=30)
    except KeyboardInterrupt:
        print(time.monotonic(), flush=True)
    else:
        sys.exit("it was not interrupted")
"""


@pytest.mark.parametrize("how", ["alone", "beside"])
def test_ctrl_c_ends_the_wait_at_once(how: str) -> None:
    table = table_of()
    frontend = table.join()
    held = frontend.acquire()
    command = [sys.executable, "-c", INTERRUPTED, str(table.fileno()), how]
    late = []
    with subprocess.Popen(command, pass_fds=[table.fileno()], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for number in range(20):
            assert child.stdout.readline() == "waits\n"
            until(lambda: waiting(table) == (1 if how == "alone" else 2))
            time.sleep(number * 0.007 % 0.06)
            before = time.monotonic()
            os.kill(child.pid, signal.SIGINT)
            late.append(float(child.stdout.readline()) - before)
        assert child.wait(60) == 0
    table.reap()
    assert median(late) < 0.06, late
    held.release()
    assert is_empty(table)
    assert queue(table).cancelled_total == 20


def test_a_signal_whose_handler_raises_nothing_does_not_end_the_wait() -> None:
    table = table_of()
    frontend = table.join()
    held = frontend.acquire()
    came: list[float] = []

    def handle(*_: object) -> None:
        came.append(time.monotonic())
        if len(came) == 5:
            held.release()

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
    try:
        with frontend.acquire(timeout=60):
            signal.setitimer(signal.ITIMER_REAL, 0)
            assert len(came) >= 5
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert is_empty(table)


def test_k3_a_forked_child_waits_for_nothing_of_its_parents() -> None:
    table = table_of()
    frontend = table.join()
    held = frontend.acquire()
    with ThreadPoolExecutor() as threads:
        waits = threads.submit(frontend.acquire, timeout=60)
        until(lambda: waiting(table) == 1)
        if (child := os.fork()) == 0:
            code = 1
            try:
                with pytest.raises(headcount.ForkedError):
                    frontend.acquire(timeout=1)
                with pytest.raises(headcount.ForkedError):
                    asyncio.run(frontend.acquire_async(timeout=1))
                own = table.join()
                with pytest.raises(headcount.WaitedTooLongError):
                    own.acquire(timeout=0.05)
                own.close()
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert (waiting(table), in_flight(table), waits.done()) == (1, [1], False)
        held.release()
        waits.result(60).release()
    assert is_empty(table)


def _wait(table: Table) -> None:
    table.join().acquire(timeout=60)


def test_q4_what_a_killed_process_waited_for_goes_to_the_next(path: Path) -> None:
    table = Table.create(path, engines=[Engine("a", max_in_flight=1)], max_waiting=100)
    frontend = table.join()
    held = frontend.acquire()
    process = multiprocessing.get_context("spawn").Process(target=_wait, args=(table,))
    process.start()
    until(lambda: waiting(table) == 1)
    with ThreadPoolExecutor() as threads:
        waits = threads.submit(frontend.acquire, timeout=60)
        until(lambda: waiting(table) == 2)
        process.kill()
        process.join()
        held.release()
        before = time.monotonic()
        waits.result(60).release()
        assert time.monotonic() - before < 1
    reaped = table.reap()
    assert reaped.waiting in (0, 1), "the thread that waited may have reaped"
    assert is_empty(table)


def test_a_reap_tells_how_many_waited(path: Path) -> None:
    table = Table.create(path, engines=[Engine("a", max_in_flight=0)], max_waiting=100)
    table.set_caps(0, 1)
    held = table.join().acquire()
    process = multiprocessing.get_context("spawn").Process(target=_wait, args=(table,))
    process.start()
    until(lambda: waiting(table) == 1)
    process.kill()
    process.join()
    assert (waiting(table), table.reap().waiting, waiting(table)) == (1, 1, 0)
    held.release()


def test_many_threads_wait_and_no_count_is_lost() -> None:
    """Of threads that acquire, give up and hold, never more than two hold a place."""
    table = table_of(places=2)
    frontends = [table.join(), table.join()]
    holding, most, guard = 0, 0, threading.Lock()
    late = 0

    def work(frontend: Frontend, number: int) -> None:
        nonlocal holding, most, late
        for turn in range(40):
            try:
                permit = frontend.acquire(timeout=0.002 if (turn + number) % 3 == 0 else 60)
            except headcount.WaitedTooLongError:
                late += 1
                continue
            with guard:
                holding += 1
                most = max(most, holding)
            time.sleep(0.0005)
            with guard:
                holding -= 1
            permit.release()

    with ThreadPoolExecutor(16) as threads:
        list(threads.map(work, frontends * 8, range(16)))
    assert (most, holding) == (2, 0)
    assert late > 0
    assert is_empty(table)
