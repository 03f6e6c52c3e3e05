"""Waiting for a place in an asyncio task.

A thread of the library waits for the tasks of all loops. It tells a loop which tasks have their outcome, by a socket
that the loop watches.
"""

from __future__ import annotations

import asyncio
import itertools
import weakref

from headcount._native import Permit, _Acquire, _Wakeups


class _Loop:
    """The tasks of an event loop that wait for a place."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.wakeups = _Wakeups()
        self.numbers = itertools.count()
        self.futures: dict[int, asyncio.Future[None]] = {}
        # The loop keeps this object, and nothing else does: when it is closed, tasks that it has left are collected.
        loop.add_reader(self.wakeups.fileno(), self.wake)

    def wake(self) -> None:
        for number in self.wakeups.take():
            future = self.futures.get(number)
            if future is not None and not future.done():
                future.set_result(None)


_loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, weakref.ref[_Loop]]
_loops = weakref.WeakKeyDictionary()


def _of(loop: asyncio.AbstractEventLoop) -> _Loop:
    known = _loops.get(loop)
    found = known() if known is not None else None
    if found is None:
        found = _Loop(loop)
        _loops[loop] = weakref.ref(found)
    return found


async def acquired(request: _Acquire) -> Permit:
    """Returns the permit of a request when it has its place. However this ends, the request leaves the queue."""
    loop = asyncio.get_running_loop()
    waiting = _of(loop)
    number = next(waiting.numbers)
    try:
        while (permit := request.poll(waiting.wakeups, number)) is None:
            waiting.futures[number] = loop.create_future()
            await waiting.futures[number]
        return permit
    finally:
        waiting.futures.pop(number, None)
        request.close()
