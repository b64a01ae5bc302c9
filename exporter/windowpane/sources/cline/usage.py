"""Usage of a task's model calls, which Cline and Roo Code show to the user and store in `ui_messages.json`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from windowpane.core.events import Usage
from windowpane.sources.json_lines import count, dollars, mapping, milliseconds, text

USAGE_NAMES: Final = ("tokensIn", "tokensOut", "cacheWrites", "cacheReads")


class ShownCall(NamedTuple):
    """One model call that was shown."""

    at: float | None
    usage: Usage | None
    cost_dollars: float | None
    after: int | None
    """Number of the last message before it, where Cline states it."""
    stated: dict[str, Any]


def shown_calls(messages: Sequence[object]) -> list[ShownCall]:
    """Return the model calls in order.

    Cline states the input without what the cache held; Roo Code does so for some protocols and in some releases,
    which a cache larger than the input shows.
    """
    starts = [mapping(message) for message in messages if mapping(message).get("say") == "api_req_started"]
    stated = [_payload(message.get("text")) for message in starts]
    has_protocol = any("apiProtocol" in call for call in stated)
    is_exclusive = not has_protocol or any(_cached(call) > count(call.get("tokensIn")) for call in stated)
    return [_call(message, call, exclusive=is_exclusive) for message, call in zip(starts, stated, strict=True)]


def _call(message: dict[str, Any], call: dict[str, Any], *, exclusive: bool) -> ShownCall:
    tokens, written, read = (count(call.get(name)) for name in ("tokensIn", "cacheWrites", "cacheReads"))
    output = count(call.get("tokensOut"))
    if exclusive:
        usage = Usage(tokens, output, read, written)
    else:
        usage = Usage.of_prompt(tokens, output, cached=read, written=written)
    index = message.get("conversationHistoryIndex")
    return ShownCall(
        milliseconds(message.get("ts")),
        usage if usage.input_total else None,
        dollars(call.get("cost")) if usage.input_total else None,
        index if isinstance(index, int) and not isinstance(index, bool) else None,
        call,
    )


def _cached(call: dict[str, Any]) -> int:
    return count(call.get("cacheWrites")) + count(call.get("cacheReads"))


def _payload(value: object) -> dict[str, Any]:
    try:
        return mapping(json.loads(text(value)))
    except (ValueError, RecursionError):
        return {}


def calls_of(replies: Sequence[tuple[int, float | None]], calls: Sequence[ShownCall]) -> dict[int, ShownCall]:
    """Return the call of each reply, given by its number and time; replies whose call is not known are absent.

    A call is shown when it starts: its reply is two messages later, or the first one that came after it.
    """
    by_index = {call.after + 2: call for call in calls if call.after is not None}
    if by_index:
        return {number: by_index[number] for number, _ in replies if number in by_index}
    if all(at is not None for _, at in replies) and all(call.at is not None for call in calls):
        return dict(_by_time(replies, calls))
    if len(replies) == len(calls):
        return {number: call for (number, _), call in zip(replies, calls, strict=True)}
    return {}


def _by_time(
    replies: Sequence[tuple[int, float | None]], calls: Sequence[ShownCall]
) -> Iterator[tuple[int, ShownCall]]:
    """Yield each reply with the last call between the reply before it and itself: earlier ones failed."""
    upcoming = 0
    for number, at in replies:
        latest = None
        while upcoming < len(calls) and (calls[upcoming].at or 0.0) <= (at or 0.0):
            latest = calls[upcoming]
            upcoming += 1
        if latest is not None:
            yield number, latest
