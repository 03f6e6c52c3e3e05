"""The output of requests in flight, which their permits count some tokens at a time."""

from __future__ import annotations

import time
from dataclasses import dataclass

import headcount

# A permit is told of more output when there are so many tokens since the last time, or when so many seconds have
# passed.
_TOKENS = 16
_SECONDS = 0.1


@dataclass(slots=True)
class _Output:
    """The output of a request that its permit does not count."""

    uncounted: int
    """All of it."""
    untold: int
    """That of which the permit was not told. The rest was refused."""
    told_at: float


class OutputCounter:
    """Adds the tokens of output to those of permits."""

    def __init__(self) -> None:
        self.uncounted: dict[headcount.Permit, _Output] = {}
        """By the permits of requests in flight."""

    def add(self, permit: headcount.Permit, tokens: int) -> None:
        """Adds tokens of output. What a cap refuses is tried again with the next tokens."""
        now = time.monotonic()
        output = self.uncounted.get(permit)
        if output is None:
            output = self.uncounted[permit] = _Output(0, 0, now)
        output.uncounted += tokens
        output.untold += tokens
        if output.untold < _TOKENS and now - output.told_at < _SECONDS:
            return
        output.untold, output.told_at = 0, now
        try:
            permit.set_tokens(permit.tokens + output.uncounted)
        except headcount.SaturatedError:
            return
        output.uncounted = 0

    def forget(self, permit: headcount.Permit) -> None:
        """Forgets a permit that was released."""
        self.uncounted.pop(permit, None)
