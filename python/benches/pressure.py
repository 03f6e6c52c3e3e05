"""Measures what weights, caps and KV pressure add to a `route` and its finish, beside the same without them.

`pressure.py [--json]`. In a round both tables are measured in alternation; a figure is the median of all rounds.
"""

from __future__ import annotations

import json
import statistics
import sys
import time

import headcount

ENGINES = [8, 64]
REQUESTS = 200
ROUNDS = 400
IN_FLIGHT = 20  # on each engine


def main() -> None:
    ratios = {f"python_pressed_e{engines}": measure(engines) for engines in ENGINES}
    if "--json" in sys.argv[1:]:
        print(json.dumps({"ratios": {name: ratio for name, (ratio, _, _) in ratios.items()}}))
        return
    for name, (ratio, calm, pressed) in ratios.items():
        print(f"{name:20} {ratio:5.2f}  {pressed:5.0f} ns : {calm:5.0f} ns")


def measure(engines: int) -> tuple[float, float, float]:
    """Returns the ratio, and nanoseconds without and with weights, caps and pressure."""
    plain = [headcount.Engine(f"engine-{n}") for n in range(engines)]
    uneven = [
        headcount.Engine(f"engine-{n}", weight=1.0 + n % 3, max_in_flight=500)
        for n in range(engines)
    ]
    calm = Contender(plain, waiting=0, kv_usage=0.4)
    pressed = Contender(uneven, waiting=4, kv_usage=0.8)
    rounds = [(calm.nanoseconds(), pressed.nanoseconds()) for _ in range(ROUNDS)]
    ratio = statistics.median(pressed / calm for calm, pressed in rounds)
    times = map(statistics.median, zip(*rounds))
    return ratio, *times


class Contender:
    """A table with requests in flight, a frontend, and a publisher."""

    def __init__(self, engines: list[headcount.Engine], waiting: int, kv_usage: float) -> None:
        self.table = headcount.Table.memfd(engines)
        self.frontend = self.table.join()
        self.publisher = self.table.publisher()
        self.stats = [
            headcount.EngineStats(waiting=waiting + n % 5 * (waiting > 0), running=20, kv_usage=kv_usage)
            for n in range(len(engines))
        ]
        self.held = self.frontend.route_many(IN_FLIGHT * len(engines))

    def nanoseconds(self) -> float:
        self.publisher.publish(self.stats)
        route = self.frontend.route
        start = time.perf_counter_ns()
        for _ in range(REQUESTS):
            route().release()
        return (time.perf_counter_ns() - start) / REQUESTS


if __name__ == "__main__":
    main()
