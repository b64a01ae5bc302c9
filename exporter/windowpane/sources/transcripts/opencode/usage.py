"""The token counts of opencode's steps and messages."""

from __future__ import annotations

from windowpane.core.events import Usage
from windowpane.sources.transcripts.json_document import JsonObject


def usage_of(holder: JsonObject) -> Usage | None:
    """Return the usage that a step or message states; None where it is absent or all zeros."""
    tokens = holder.item("tokens")
    cache = tokens.item("cache")
    usage = Usage(
        tokens.count("input") or 0,
        _output(tokens),
        cache.count("read") or 0,
        cache.count("write") or 0,
        tokens.count("reasoning") or 0,
    )
    return usage if usage.input_total else None


def _output(tokens: JsonObject) -> int:
    """Return all generated tokens. Some releases state the output without the reasoning: the total shows it."""
    output, reasoning = tokens.count("output") or 0, tokens.count("reasoning") or 0
    total = tokens.count("total")
    if total is None:
        return max(output, reasoning)
    cache = tokens.item("cache")
    rest = (tokens.count("input") or 0) + (cache.count("read") or 0) + (cache.count("write") or 0)
    return output + reasoning if total == rest + output + reasoning else max(output, reasoning)
