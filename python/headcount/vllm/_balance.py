"""One API server's part in its deployment's table: its requests in flight, and perhaps the statistics.

No error of the table reaches vLLM: vLLM routes a request that the table does not take.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import headcount
from headcount.vllm import _deployment
from headcount.vllm._deployment import Deployment
from headcount.vllm._log import log
from headcount.vllm._output import OutputCounter
from headcount.vllm._settings import Settings

# vLLM's client and its requests. `_shape` has checked what is used of them.
Client = Any
Request = Any
Outputs = Any
Choose = Callable[[Client, Request], bytes]
LateRank = Callable[[Any, int], "int | None"]

_REAP_EVERY = 1.0  # seconds
_PUBLISHER_AGAIN = 1.0  # seconds


class Balance:
    """The engines of a deployment, shared with its other API servers."""

    def __init__(
        self,
        client: Client,
        settings: Settings,
        late_rank: LateRank | None = None,
        has_sessions: bool = False,
    ) -> None:
        ranks = _ranks(client)
        self.deployment = Deployment(str(client.stats_update_address), ranks[0])
        membership = _deployment.join(self.deployment, ranks, settings)
        self.table = membership.table
        # By the ids of requests. An id has several permits if it is used again while an engine still has the
        # old request.
        self.permits: dict[str, list[headcount.Permit]] = {}
        # Permits of requests that are just being sent, by the addresses of the requests.
        self._sending: dict[int, headcount.Permit | None] = {}
        self.output = OutputCounter()
        self._route: Callable[..., headcount.Permit] = membership.frontend.route
        self._late_rank = late_rank
        self._has_sessions = has_sessions
        self._reaper = self.table.reap_every(_REAP_EVERY)
        self._publisher: headcount.Publisher | None = None
        self._publisher_again = 0.0
        self._complaints: set[type[BaseException]] = set()
        self._pid = os.getpid()
        self._closed = False
        # The numbers that vLLM's engines have in the table, in vLLM's order and by rank; the engines' ids and their
        # places in vLLM's order, by number; and the numbers of engines that this server does not know.
        self._numbers: list[int] = []
        self._number_of_rank: dict[int, int] = {}
        self._engines: dict[int, headcount.EngineId] = {}
        self._places: dict[int, int] = {}
        self._unknown: list[int] = []
        self._follow(ranks)

    # -- A request's life ----------------------------------------------------------------------------

    def choose(self, client: Client, request: Request, own: Choose) -> bytes:
        """Returns the engine for a request. ``own`` is vLLM's method, which keeps vLLM's own books."""
        request_id = request.request_id
        if self._has_sessions and request_id in client.reqs_in_flight:
            return own(client, request)  # a session, which stays at its engine
        rank = request.data_parallel_rank
        try:
            if len(client.core_engines) != len(self._numbers):
                self._follow(_ranks(client))
            decided = rank
            if decided is None and self._late_rank is not None:
                decided = self._late_rank(request.pooling_params, len(self._numbers))
            if decided is None:
                permit = self._placed(_tokens(request))
                request.data_parallel_rank = self._places[permit.engine]
            else:
                permit = self._route(_tokens(request), self._numbers[decided])
        except Exception as error:
            self._complain(error)
            return own(client, request)
        self.permits.setdefault(request_id, []).append(permit)
        try:
            engine = own(client, request)
        except BaseException:
            self._end(request_id, permit)
            raise
        finally:
            request.data_parallel_rank = rank
        if id(request) in self._sending:
            self._sending[id(request)] = permit
        return engine

    @contextmanager
    def sending(self, request: Request) -> Iterator[None]:
        """Ends the request that is counted within this block if the block raises, since it was not sent."""
        self._sending[id(request)] = None
        try:
            yield
        except Exception:
            # It never reached its engine. A cancellation, which is no Exception, comes after that.
            permit = self._sending[id(request)]
            if permit is not None:
                self._end(request.request_id, permit)
            raise
        finally:
            del self._sending[id(request)]

    def finish(self, request_ids: Iterable[str], rank: int | None = None) -> None:
        """Ends these requests. ``rank`` is that of the engine that reports their end."""
        number = None if rank is None else self._number_of_rank.get(rank)
        for request_id in request_ids:
            permit = self._permit(request_id, number)
            if permit is not None:
                self._end(request_id, permit)

    def count_output(self, outputs: Outputs) -> None:
        """Adds what an engine has put out to the tokens of its requests."""
        try:
            rank = getattr(outputs, "engine_index", None)
            number = None if rank is None else self._number_of_rank.get(rank)
            for output in outputs.outputs:
                tokens = len(output.new_token_ids)
                permit = self._permit(output.request_id, number) if tokens > 0 else None
                if permit is not None:
                    self.output.add(permit, tokens)
        except Exception as error:
            self._complain(error)

    def finish_all(self) -> None:
        """Ends all requests of this server."""
        permits, self.permits = self.permits, {}
        self.output = OutputCounter()
        for permit in itertools.chain(*permits.values()):
            permit.release()

    def _permit(self, request_id: str, number: int | None) -> headcount.Permit | None:
        """Returns the permit of a request at an engine; the oldest, if the engine is not known."""
        for permit in self.permits.get(request_id, ()):
            if number is None or permit.engine == number:
                return permit
        return None

    def _end(self, request_id: str, permit: headcount.Permit) -> None:
        permit.release()
        self.output.forget(permit)
        permits = self.permits.get(request_id, [])
        if permit in permits:
            permits.remove(permit)
            if not permits:
                del self.permits[request_id]

    def _placed(self, tokens: int) -> headcount.Permit:
        if not self._unknown:
            permit = self._route(tokens)
            if permit.engine in self._places:
                return permit
            # The engine is one that another server has added, and that this one does not know yet.
            permit.release()
            self._find_unknown()
        return self._route(tokens, None, self._unknown)

    # -- Engines that come and go --------------------------------------------------------------------

    def _follow(self, ranks: Sequence[int]) -> None:
        """Brings the table to the engines of these ranks."""
        table = self.table
        names = [self.deployment.engine_name(rank) for rank in ranks]
        engines = {engine.index: engine for engine in map(self._engine_of, names)}
        numbers = list(engines)
        for number in self._numbers:
            if number not in numbers:
                try:
                    table.remove(self._engines[number])
                except headcount.NoSuchEngineError:
                    pass  # another server was faster
                # The engine is gone, and will not report the end of its requests.
                for request_id, permits in list(self.permits.items()):
                    for permit in [permit for permit in permits if permit.engine == number]:
                        self._end(request_id, permit)
        self._numbers = numbers
        self._number_of_rank = dict(zip(ranks, numbers))
        self._engines = engines
        self._places = {number: place for place, number in enumerate(numbers)}
        self._find_unknown()

    def _engine_of(self, name: str) -> headcount.EngineId:
        table = self.table
        engine = table.find(name)
        if engine is None:
            try:
                return table.add(name)
            except headcount.NameTakenError:
                engine = table.find(name)  # another server was faster
                if engine is None:
                    raise
        return engine

    def _find_unknown(self) -> None:
        engines = self.table.view().engines
        self._unknown = [
            engine.id.index
            for engine in engines
            if engine.id.index not in self._places and engine.state != "leaving"
        ]

    # -- The coordinator's statistics ----------------------------------------------------------------

    def publish(self, client: Client, counts: Sequence[Sequence[float]]) -> None:
        """Publishes a broadcast of the coordinator, unless another server is the publisher."""
        try:
            if len(client.core_engines) != len(self._numbers):
                self._follow(_ranks(client))
            publisher = self._publisher or self._become_publisher()
            if publisher is not None and len(counts) == len(self._numbers):
                words = (int(client.current_wave), int(client.engines_running))
                publisher.publish(self._stats(counts), words)
        except Exception as error:
            self._complain(error)

    def _become_publisher(self) -> headcount.Publisher | None:
        now = time.monotonic()
        if now < self._publisher_again:
            return None
        self._publisher_again = now + _PUBLISHER_AGAIN
        try:
            self._publisher = self.table.publisher()
        except headcount.PublisherHeldError:
            pass
        return self._publisher

    def _stats(self, counts: Sequence[Sequence[float]]) -> list[headcount.EngineStats]:
        stats = [headcount.EngineStats()] * (max(self._numbers) + 1)
        for number, (waiting, running, *rest) in zip(self._numbers, counts):
            kv_usage = min(max(float(rest[0]), 0.0), 1.0) if rest else 0.0
            stats[number] = headcount.EngineStats(int(waiting), int(running), kv_usage)
        return stats

    # -- The end -------------------------------------------------------------------------------------

    def close(self) -> None:
        """Leaves the table, and removes it if this was the last server. A second call changes nothing."""
        if self._closed or os.getpid() != self._pid:
            return
        self._closed = True
        try:
            self.finish_all()
            self._reaper.stop()
            if self._publisher is not None:
                self._publisher.close()
            self._route = _closed
            _deployment.remove_if_empty(self.table)
        except Exception as error:
            self._complain(error)

    def _complain(self, error: Exception) -> None:
        """Logs the error, once for each kind."""
        if type(error) not in self._complaints:
            self._complaints.add(type(error))
            log.warning(
                "headcount: a request or a broadcast has failed at the table; vLLM's own balancer decides "
                "in such a case: %s: %s",
                type(error).__name__,
                error,
            )


def _closed(*_: object) -> headcount.Permit:
    raise RuntimeError("this server has left the table")


def _ranks(client: Client) -> list[int]:
    return [int.from_bytes(identity, "little") for identity in client.core_engines]


def _tokens(request: Request) -> int:
    """Returns the length of the prompt."""
    prompt = request.prompt_token_ids
    if prompt is None:
        prompt = getattr(request, "prompt_embeds", None)
    return 0 if prompt is None else len(prompt)
