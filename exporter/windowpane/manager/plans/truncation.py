"""Middle-out truncation: head and tail stay, a marker states the size of the removed middle."""

from __future__ import annotations

import json
from typing import Any, Final

from windowpane.core.protocols import TokenCounter
from windowpane.manager.plans.findings import failures_of

ATTEMPTS: Final = 6
SMALLEST_STRING: Final = 16


def middle_out(text: str, max_tokens: int, counter: TokenCounter, *, note: str = "") -> str:
    """Return *text* in at most *max_tokens*, unchanged if it fits; never longer than it was.

    *note*, such as the handle of the original, is added to the marker. If the limit is too small for the marker,
    only the beginning is returned.
    """
    total = counter.count(text)
    if total <= max_tokens:
        return text
    if max_tokens <= 0:
        return ""
    marker = f"\n[… {total - max_tokens} tokens left out{note} …]\n"
    room = max_tokens - counter.count(marker)
    if room < 8:
        return _head(text, max_tokens, counter)
    keep = len(text) * room // total
    for _ in range(ATTEMPTS):
        half = keep // 2
        if half < 1:
            break
        shorter = f"{text[:half]}{marker}{text[-half:]}"
        if len(shorter) < len(text) and counter.count(shorter) <= max_tokens:
            return shorter
        keep = keep * 4 // 5
    return _head(text, max_tokens, counter)


def shorten_result(text: str, max_tokens: int, counter: TokenCounter, *, note: str = "") -> str:
    """Return a tool result truncated by `middle_out`; the marker contains the failures that it would hide."""
    short = middle_out(text, max_tokens, counter, note=note)
    visible = " ".join(short.split())
    failures = failures_of(text) if len(short) < len(text) else []
    hidden = [one for one in failures if " ".join(one.split(" (")[0].rstrip("…").split()) not in visible]
    return middle_out(text, max_tokens, counter, note=f": {'; '.join(hidden)}{note}") if hidden else short


def clip_arguments(text: str, max_tokens: int, counter: TokenCounter, *, note: str = "") -> str:
    """Return the arguments of a tool call with long strings truncated middle-out, as a JSON object.

    Unchanged if they are not a JSON object or have no long string. The result may exceed *max_tokens*.
    """
    try:
        arguments = json.loads(text)
    except ValueError:
        return text
    if not isinstance(arguments, dict):
        return text
    share = max_tokens
    for _ in range(ATTEMPTS):
        clipped = json.dumps(_clip(arguments, share, counter, note), ensure_ascii=False)
        if counter.count(clipped) <= max_tokens or share < SMALLEST_STRING:
            break
        share = share * 2 // 3
    return clipped if len(clipped) < len(text) else text


def _clip(value: Any, max_tokens: int, counter: TokenCounter, note: str) -> Any:
    if isinstance(value, str):
        return middle_out(value, max_tokens, counter, note=note) if len(value) > max_tokens else value
    if isinstance(value, dict):
        return {key: _clip(item, max_tokens, counter, note) for key, item in value.items()}
    if isinstance(value, list):
        return [_clip(item, max_tokens, counter, note) for item in value]
    return value


def _head(text: str, max_tokens: int, counter: TokenCounter) -> str:
    """Return a beginning that fits, shortened by a quarter at a time; at least empty."""
    head = text[: max_tokens * 4]
    while head and counter.count(head) > max_tokens:
        head = head[: len(head) * 3 // 4]
    return head
