"""An estimate of a reply's length, where a recording states only the usage of the start of its stream.

The visible reply is one measure. The next call's total is the other: it exceeds that of the call by the reply and
by the content that came in since. Each has an error in proportion to what was counted for it, and the estimate is
their mean, weighted by these errors. `benchmarks/TRUTH.md` compares it with outputs that are known.
"""

from __future__ import annotations

from typing import Final

TOOL_CALL_TOKENS: Final = 50
"""Output of a tool call beside its name and arguments: the median of 2,400 calls; 8 in 10 are from 34 to 69."""
START_RATIO: Final = 0.5
"""A stated output below this share of the visible reply is that of its start. Of 3,930 calls with one usage and
no end, 3,843 are below 0.4 of it, 3 from 0.4 to 0.8, and 84 above."""
_REPLY_ERROR: Final = (0.15, 10.0)
"""Error of the count of a visible reply, in proportion and in tokens."""
_INPUT_ERROR: Final = (0.15, 5.0)
"""Error of the count of content that came in."""
_RANGE: Final = (0.5, 2.0)
"""The totals count within this range of the visible reply: beyond it, other content came in or was removed."""


def visible_output(counted_tokens: int, tool_calls: int) -> int:
    """Return the output that the content of a reply shows."""
    return counted_tokens + tool_calls * TOOL_CALL_TOKENS


def is_start(output_tokens: int, visible_tokens: int) -> bool:
    """Return whether *output_tokens* cannot be the whole output of a reply of that size."""
    return output_tokens < START_RATIO * visible_tokens


def estimated_output(visible_tokens: int, *, growth: int | None = None, added_tokens: int = 0) -> int:
    """Return the estimated output of a reply.

    *growth* is the difference of the next call's total from that of the call, None where they do not compare;
    *added_tokens* is the count of what came in between.
    """
    if growth is None:
        return visible_tokens
    low, high = _RANGE
    sent = min(max(growth - added_tokens, low * visible_tokens), high * visible_tokens)
    reply_error = _variance(visible_tokens, *_REPLY_ERROR)
    input_error = _variance(added_tokens, *_INPUT_ERROR)
    return round((visible_tokens * input_error + sent * reply_error) / (reply_error + input_error))


def _variance(tokens: int, share: float, least: float) -> float:
    return (share * tokens) ** 2 + least**2
