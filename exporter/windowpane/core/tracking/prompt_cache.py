"""The prompt cache as the provider's counts show it: calls that send a cached prefix as new input.

A provider caches the start of a call and reads it for the next one as long as it is unchanged. The cache itself
is not visible, but its use is: what a call reads of that which the call before left in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, NamedTuple

from windowpane.core.events import CacheBroken, Usage
from windowpane.core.vocabulary import CacheBreakCause

BROKEN_RATIO: Final = 0.5
"""Share of the cached prefix above which sending it again is a cache break."""
MINIMUM_CACHED_TOKENS: Final = 1_024
"""Shortest prefix that providers cache."""
SHORT_LIFETIME_SECONDS: Final = 300
LONG_LIFETIME_SECONDS: Final = 3_600
"""Lifetimes of Anthropic's cache. Providers that do not report writes keep a prefix for an hour at most."""


class PrefixChange(NamedTuple):
    """The first block, by its position, that changed since the last call."""

    position: int
    cause: CacheBreakCause
    block_id: str


class PromptCache:
    """The cache after the last call, and the first change of the sent content since. Constant size."""

    def __init__(self) -> None:
        self.change: PrefixChange | None = None
        self._sent_end = 0
        """Position behind the content that the last call sent."""
        self._cached = 0
        self._lifetime: int | None = None
        self._started_at: float | None = None
        self._model = ""

    def restart(self) -> None:
        """Expect nothing of the next call: it sends a new window, a summary or a rewound conversation."""
        self._cached, self.change = 0, None

    def record_change(self, position: int, cause: CacheBreakCause, block_id: str) -> None:
        """Record a change of the content at *position*; the first position of all changes counts."""
        if position < self._sent_end and (self.change is None or position < self.change.position):
            self.change = PrefixChange(position, cause, block_id)

    def add(
        self,
        usage: Usage,
        *,
        model: str,
        started_at: float | None,
        sent_end: int,
        tokens_between: Callable[[int, int], int],
        is_reduced: bool,
        cost_of: Callable[[Usage], float | None] | None,
    ) -> CacheBroken | None:
        """Add the usage of a call; return the cache break that it shows.

        *sent_end* is the position behind the content it sent, *tokens_between* returns the tokens of the window
        between two positions and is called at a break only, *is_reduced* states that its total shows an
        unseen removal.
        """
        cached, change, lifetime, end = self._cached, self.change, self._lifetime, self._sent_end
        changed_model = bool(self._model) and model != self._model
        idle = None if started_at is None or self._started_at is None else started_at - self._started_at
        self._cached = usage.cache_read_tokens + usage.cache_write_tokens
        self._model, self._started_at, self._sent_end, self.change = model, started_at, sent_end, None
        if usage.cache_write_tokens:
            is_long = 2 * usage.hour_write_tokens >= usage.cache_write_tokens
            self._lifetime = LONG_LIFETIME_SECONDS if is_long else SHORT_LIFETIME_SECONDS
        sent = usage.input_tokens + usage.cache_write_tokens
        rewritten = min(cached - usage.cache_read_tokens, sent)
        if cached < MINIMUM_CACHED_TOKENS or rewritten <= BROKEN_RATIO * cached:
            return None
        cause: CacheBreakCause = "unknown"
        block_id = None
        if changed_model:
            cause = "model"
        elif idle is not None and idle > (lifetime or LONG_LIFETIME_SECONDS):
            cause = "expired"
        elif change is not None and tokens_between(change.position, end) >= BROKEN_RATIO * rewritten:
            cause, block_id = change.cause, change.block_id
        elif is_reduced:
            cause = "removed"
        return CacheBroken(
            rewritten, cached, cause, block_id, _extra_cost(usage, rewritten, cost_of), idle, lifetime
        )


def _extra_cost(usage: Usage, rewritten: int, cost_of: Callable[[Usage], float | None] | None) -> float | None:
    """Return the price of a call less its price if *rewritten* tokens had been read from the cache."""
    if cost_of is None:
        return None
    writes = min(rewritten, usage.cache_write_tokens)
    remaining = usage.cache_write_tokens - writes
    hour = (
        round(usage.hour_write_tokens * remaining / usage.cache_write_tokens) if usage.cache_write_tokens else 0
    )
    unbroken = replace(
        usage,
        input_tokens=usage.input_tokens - (rewritten - writes),
        cache_read_tokens=usage.cache_read_tokens + rewritten,
        cache_write_tokens=remaining,
        hour_write_tokens=hour,
    )
    actual, expected = cost_of(usage), cost_of(unbroken)
    return None if actual is None or expected is None else max(0.0, actual - expected)
