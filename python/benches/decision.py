"""Measures what a decision costs by headcount and by vLLM's own balancer, one after the other in one run.

`decision.py [RELEASE]` measures the vLLM that is installed, or the class in the wheel of a release under
target/vllm-releases. vLLM's figure is for the choice alone; those of headcount include the finish.
"""

from __future__ import annotations

import contextlib
import importlib
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import headcount

ENGINES = [2, 4, 8, 16, 32, 64]
REQUESTS = 100  # between two broadcasts
ROUNDS = 300


def main() -> None:
    release = sys.argv[1] if len(sys.argv) > 1 else None
    print(f"nanoseconds a request, medians of {ROUNDS} rounds of {REQUESTS}")
    print("engines      vLLM  headcount  ratio  with tokens  ratio    plugin  ratio")
    with vllm(release) as module:
        for engines in ENGINES:
            with rounds(module, engines) as one_round:
                times = [one_round() for _ in range(ROUNDS)]
            stock, plain, tokens, plugin = map(statistics.median, zip(*times))
            print(
                f"{engines:7} {stock:9.0f} {plain:10.0f} {stock / plain:6.1f}"
                f" {tokens:12.0f} {stock / tokens:6.1f} {plugin:9.0f} {stock / plugin:6.1f}"
            )


@contextlib.contextmanager
def vllm(release: str | None) -> Iterator[ModuleType]:
    if release is None:
        yield importlib.import_module("vllm.v1.engine.core_client")
        return
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from releases import core_client

    with core_client(release) as module:
        yield module


@contextlib.contextmanager
def rounds(
    module: ModuleType, engines: int
) -> Iterator[Callable[[], tuple[float, float, float, float]]]:
    """Gives a function that runs one round of each and returns nanoseconds a request."""
    from headcount.vllm._balance import Balance
    from headcount.vllm._settings import Settings

    cls: Any = module.DPLBAsyncMPClient
    choose = cls.get_core_engine_for_request
    client: Any = cls.__new__(cls)
    client.core_engines = [rank.to_bytes(2, "little") for rank in range(engines)]
    client.client_count, client.client_index, client.eng_start_index = 2, 0, 0
    client.stats_update_address = f"none-{engines}"
    client.streaming_reqs = set()
    requests = [
        SimpleNamespace(
            request_id=f"cmpl-{number:032x}",
            data_parallel_rank=None,
            pooling_params=None,
            prompt_token_ids=[0] * 100,
            resumable=False,
        )
        for number in range(REQUESTS)
    ]

    def reset() -> None:
        client.lb_engines = [[0, 20, 0.3] for _ in range(engines)]
        client.reqs_in_flight = {}
        client.engine_inflight = Counter(dict.fromkeys(client.core_engines, 20))

    table = headcount.Table.memfd(engines=engines)
    frontend = table.join()
    background = frontend.route_many(20 * engines)
    publisher = table.publisher()
    stats = [headcount.EngineStats(0, 20, 0.3)] * engines
    reset()
    late = getattr(module, "get_late_interaction_engine_index", None)
    balance = Balance(client, Settings(), late)

    def one_round() -> tuple[float, float, float, float]:
        publisher.publish(stats)
        reset()
        stock = timed(lambda: [choose(client, request) for request in requests])
        route = frontend.route

        def without_tokens() -> None:
            for _ in requests:
                route().release()

        def with_tokens() -> None:
            for request in requests:
                route(len(request.prompt_token_ids)).release()

        plain, tokens = timed(without_tokens), timed(with_tokens)
        reset()

        def plugin() -> None:
            for request in requests:
                balance.choose(client, request, choose)
                balance.finish((request.request_id,))

        through = timed(plugin)
        assert len(background) == 20 * engines
        return stock, plain, tokens, through

    yield one_round
    balance.close()


def timed(run: Callable[[], object]) -> float:
    start = time.perf_counter_ns()
    run()
    return (time.perf_counter_ns() - start) / REQUESTS


if __name__ == "__main__":
    main()
