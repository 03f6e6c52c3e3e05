"""The cost of a request, as its body tells it: how many prompts the engine runs, and their lengths."""

from __future__ import annotations

import asyncio
import gc
import json
import math
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from client import RefusedError
from settings import MOST_PER_ENGINE

# Bodies of more bytes are parsed in a thread, one at a time.
LARGE = 1 << 16
# The most objects, lists and commas in a body: json parses it in one go, and nothing else runs meanwhile.
MOST_PARTS = 1 << 22
READER = ThreadPoolExecutor(1)
# The tokens that an image, a sound or the like counts: the size of a file says little of them.
MEDIA = 1000
# No prompt counts more tokens: those of all requests at an engine are one number of 32 bits.
MOST_TOKENS = ((1 << 32) - 1) // MOST_PER_ENGINE
# The fields of prompts, of which an engine takes one. Texts are compared with the question in the field beside them.
PROMPTS = ("messages", "prompt", "input")
COMPARED = {"documents": "query", "text_2": "text_1"}
KNOWN = (*PROMPTS, *COMPARED, "prompt_embeds")
# The fields of a part of a message that is no text.
MEDIA_NAMES = {
    *("image_url", "image", "image_embeds", "input_audio", "audio_url", "audio", "audio_embeds"),
    *("video_url", "video", "file", "file_data", "file_url", "file_id", "source"),
}


async def cost(body: bytes) -> tuple[int, int]:
    """Returns ``cost_of`` the body, without stopping other requests for long."""
    if len(body) <= LARGE:
        return cost_of(body)
    if sum(map(body.count, (b"{", b"[", b","))) > MOST_PARTS:
        raise RefusedError(413, "too_many_parts", "this has too many parts to be counted; split it")
    return await asyncio.get_running_loop().run_in_executor(READER, cost_of_large, body)


def cost_of_large(body: bytes) -> tuple[int, int]:
    gc.disable()  # it would scan the growing result again and again, ten times as long as the parsing takes
    try:
        return cost_of(body)
    finally:
        gc.enable()


def cost_of(body: bytes) -> tuple[int, int]:
    """Returns how many requests an engine makes of this one, and the tokens of each: one for every four bytes of
    text, or as many as are given as numbers.

    An engine takes one of the fields, and its endpoint decides which: the most and the longest are counted.
    """
    try:
        # Python refuses to make an int of thousands of digits, but not a float. So an infinite number is one that is
        # too large, as 1e999; the names NaN and Infinity become NaN.
        asked = json.loads(body, parse_int=float, parse_constant=lambda name: math.nan)
        if isinstance(asked, dict) and any(asked.get(name) is not None for name in KNOWN):
            return counted(asked)
    except RecursionError as error:
        # This router cannot count its prompts, while an engine may be able to run them.
        raise RefusedError(400, "bad_request", "this JSON is nested too deeply") from error
    except ValueError:
        pass
    # The body is not in OpenAI's form: a file, perhaps.
    return 1, min(-(-len(body) // 4), MEDIA)


def counted(asked: dict[str, Any]) -> tuple[int, int]:
    is_chat = asked.get("messages") is not None
    prompts = max(several(asked.get(name), False) for name in PROMPTS)
    # Without a chat, each item of these fields makes a pair with its question. Beside a chat, items that are
    # objects are documents of the chat: parts of its one prompt.
    pairs = max(several(asked.get(name), not is_chat) for name in COMPARED)
    texts = max(quarters(asked.get(name)) for name in COMPARED)
    question = max(quarters(asked.get(name)) for name in COMPARED.values())
    embedded = several(asked.get("prompt_embeds"), False)
    sizes = [quarters(asked.get(name)) for name in PROMPTS]
    if is_chat:
        sizes.append(quarters(asked["messages"]) + texts)
    sizes.append(texts + question * pairs)
    size = max(sizes) + 4 * MEDIA * embedded
    count = max(1, max(prompts, pairs) + embedded)
    answers = max(1, number(asked.get("n")), number(asked.get("best_of")))
    return count * answers, min(-(-size // (4 * count)), MOST_TOKENS)


def several(prompt: Any, each: bool) -> int:
    """Returns how many prompts there are: the value is one, a list of them, or None."""
    if prompt is None:
        return 0
    if isinstance(prompt, list) and (each or all(isinstance(p, (str, list)) for p in prompt)):
        return len(prompt)
    return 1


def number(value: Any) -> int:
    """Returns a number as engines read it: 10.0 and "10" are 10, and a value that is no number is 0."""
    try:
        return int(float(value))
    except OverflowError:
        # "1e999" is more than any engine takes, and "inf" is no number.
        has_digits = isinstance(value, float) or any(map(str.isdigit, value))
        return sys.maxsize if has_digits and float(value) > 0 else 0
    except (TypeError, ValueError):
        return 0


def quarters(part: Any) -> int:
    """Returns the length of a prompt, or of a part of one, in quarters of a token."""
    if isinstance(part, str):
        return len(part.encode(errors="surrogatepass"))
    if isinstance(part, list):
        return sum(map(quarters, part))
    if isinstance(part, dict):
        text = quarters(part.get("content")) + quarters(part.get("text"))
        return text + (0 if MEDIA_NAMES.isdisjoint(part) else 4 * MEDIA)
    return 4 if isinstance(part, (int, float)) and not isinstance(part, bool) else 0
