"""What a request costs its engine, as far as its body tells: how many prompts it runs, and how long."""

from __future__ import annotations

import json
from typing import Any

from client import RefusedError
from worker import MOST_PER_ENGINE

# What an image, a sound or the like counts, in tokens: the size of a file says little of them.
MEDIA = 1000
# No prompt counts more: the tokens of all requests at an engine are one number of 32 bits.
MOST_TOKENS = ((1 << 32) - 1) // max(1, MOST_PER_ENGINE)
PROMPTS = ("messages", "prompt", "input", "documents", "text_2")


def cost(body: bytes) -> tuple[int, int]:
    """How many requests an engine makes of this one, and the tokens of each: one for every four bytes of
    text, or as many as there are if they are given by number.

    An engine takes one of ``PROMPTS``, and which one is its endpoint's: the most and the longest are counted.
    """
    try:
        # (An int of Python's refuses to be read from thousands of digits; a float does not.)
        asked = json.loads(body, parse_int=float)
        if isinstance(asked, dict) and any(
            asked.get(p) is not None for p in (*PROMPTS, "prompt_embeds")
        ):
            return counted(asked)
    except RecursionError as error:
        # How many prompts it holds cannot be told, and an engine may be able to tell.
        raise RefusedError(400, "bad_request", "this JSON is nested too deeply") from error
    except ValueError:
        pass
    # Not as OpenAI has it: a file, perhaps.
    return 1, min(-(-len(body) // 4), MEDIA)


def counted(asked: dict[str, Any]) -> tuple[int, int]:
    # In a chat, the parts of ``documents`` go into its one prompt.
    parts = asked.get("messages") is not None
    choices = [
        several(asked.get(name), name in ("documents", "text_2") and not parts) for name in PROMPTS
    ]
    embedded = len(several(asked.get("prompt_embeds"), False))
    prompts = max(map(len, choices)) + embedded
    size = max(map(quarters, choices)) + 4 * MEDIA * embedded
    answers = max(1, number(asked.get("n")), number(asked.get("best_of")))
    return prompts * answers, min(-(-size // (4 * prompts)), MOST_TOKENS)


def several(prompt: Any, each: bool) -> list[Any]:
    """The prompts in what may be one, a list of them, or nothing."""
    if (
        isinstance(prompt, list)
        and prompt
        and (each or all(isinstance(p, (str, list)) for p in prompt))
    ):
        return prompt
    return [] if prompt is None else [prompt]


def number(value: Any) -> int:
    """A number as engines read it, which take 10.0 and "10" for 10. What they take for none is 0."""
    try:
        return int(float(value))
    except (TypeError, ValueError, OverflowError):
        return 0


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
