"""What a request costs its engine, as far as its body tells: how many prompts it runs, and how long."""

from __future__ import annotations

import json
from typing import Any

# What an image, a sound or the like counts, in tokens: the size of a file says little of them.
MEDIA = 1000


def cost(body: bytes) -> tuple[int, int]:
    """How many requests an engine makes of this one, and the tokens of each: one for every four bytes of
    text, or as many as there are if they are given by number."""
    try:
        asked = json.loads(body)
        names = ("messages", "prompt", "input", "documents", "text_2")
        prompt = next(asked[name] for name in names if asked.get(name) is not None)
        prompts = [prompt]
        if isinstance(prompt, list) and prompt and all(isinstance(p, (str, list)) for p in prompt):
            prompts = prompt
        answers = [asked.get(name) for name in ("n", "best_of")]
        copies = max([1, *(n for n in answers if isinstance(n, int))])
        return len(prompts) * copies, -(-quarters(prompts) // (4 * len(prompts)))
    except (ValueError, AttributeError, StopIteration, RecursionError):
        # Not as OpenAI has it: a file, perhaps.
        return 1, min(-(-len(body) // 4), MEDIA)


def quarters(part: Any) -> int:
    """The length of a prompt, or of a part of one, in quarters of a token."""
    if isinstance(part, str):
        return len(part.encode(errors="surrogatepass"))
    if isinstance(part, (int, float)):
        return 4
    if isinstance(part, list):
        return sum(map(quarters, part))
    if isinstance(part, dict):
        if "content" in part or "text" in part:
            return quarters(part.get("content")) + quarters(part.get("text"))
        return 4 * MEDIA
    return 0
