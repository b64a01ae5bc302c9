"""The levels of one window, in used tokens, from which it is reduced."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from windowpane.core.limits import EVICT_RATIO, WindowLimits

COMPACT_ABOVE: Final = 0.05
"""Utilization between the start of evictions and that of compactions."""
CHECKPOINT_RATIO: Final = 0.85
ROLL_RATIO: Final = 0.95
TARGET_SHARE: Final = 0.7
"""Target of an eviction as a share of the level that triggers it: from 75% to about 52%."""
STATIC_EVICT_SHARE: Final = 0.60
STATIC_TARGET_SHARE: Final = 0.35
"""Shares of the room beside system prompt and tools: earliest start of an eviction, and its target."""
MINIMUM_SAVING_RATIO: Final = 0.05
MINIMUM_SAVING_TOKENS: Final = 20_000
CACHE_WRITE_PRICE: Final = 1.25
CACHE_READ_PRICE: Final = 0.10
"""Factors on the price of fresh input, from Anthropic's price list; OpenAI's reads cost 0.1 to 0.5."""


@dataclass(frozen=True, slots=True)
class Levels:
    """Used tokens from which each reduction runs, in rising order except for the target."""

    prepare: int
    target: int
    """Used tokens after an eviction or compaction."""
    evict: int
    checkpoint: int
    compact: int
    roll: int
    ceiling: int
    """Above this the output no longer fits and the call may not be made."""
    minimum_saving: int

    @classmethod
    def of(cls, limits: WindowLimits, *, checkpoint_ratio: float = CHECKPOINT_RATIO) -> Levels:
        """Return the levels of a window; each threshold z acts at min(z × limit, z / 0.90 × usable)."""
        zones = limits.thresholds
        evict = max(zones.orange, EVICT_RATIO) if limits.has_usual_zones else zones.orange
        return cls(
            prepare=limits.at(zones.yellow),
            target=limits.at(evict * TARGET_SHARE),
            evict=limits.at(evict),
            checkpoint=limits.at(max(checkpoint_ratio, evict)),
            compact=limits.at(min(evict + COMPACT_ABOVE, zones.red)),
            roll=min(limits.at(ROLL_RATIO), limits.overflow_tokens),
            ceiling=limits.overflow_tokens,
            minimum_saving=int(min(MINIMUM_SAVING_TOKENS, MINIMUM_SAVING_RATIO * limits.usable_tokens)),
        )

    def compacting_at(self, limits: WindowLimits, ratio: float) -> Levels:
        """Return the levels with compaction from *ratio* on, but between eviction and rollover."""
        compact = min(max(limits.at(ratio), self.evict), self.roll)
        return replace(self, compact=compact)

    def above(self, static_tokens: int) -> Levels:
        """Return the levels of a window in which *static_tokens* are sent with every call.

        If system prompt and tools take most of the window, the shares apply to the remaining room. Otherwise
        every turn would start a reduction that cannot help.
        """
        room = max(0, self.ceiling - static_tokens)
        evict = max(self.evict, static_tokens + int(STATIC_EVICT_SHARE * room))
        if evict == self.evict:
            return self
        compact = max(self.compact, evict)
        return replace(
            self,
            target=max(self.target, static_tokens + int(STATIC_TARGET_SHARE * room)),
            evict=evict,
            checkpoint=max(self.checkpoint, evict),
            compact=compact,
            roll=max(self.roll, compact),
        )


def cache_break_even(tokens_behind: int, expected_turns: int) -> int:
    """Return the tokens that an edit must free to pay for caching the *tokens_behind* it again.

    Freeing f tokens saves f × read price in each expected turn; the edit costs (write − read price) once for
    every token behind it.
    """
    cost = (CACHE_WRITE_PRICE - CACHE_READ_PRICE) * tokens_behind
    return int(cost / (CACHE_READ_PRICE * max(1, expected_turns)))
