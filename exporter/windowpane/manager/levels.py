"""Where pressure turns into action: the levels of one window, in used tokens."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from windowpane.core.limits import WindowLimits

EVICT_RATIO: Final = 0.75
COMPACT_RATIO: Final = 0.90
"""Where reductions begin at the earliest, unless zones are chosen. Small windows enter orange and red before:
their reserve is a quarter of them already, and reducing them earlier still left half of an 8K window unused."""
CHECKPOINT_RATIO: Final = 0.85
ROLL_RATIO: Final = 0.95
TARGET_SHARE: Final = 0.80
"""An eviction goes down to this share of where it begins: from 75% to 60%."""
STATIC_EVICT_SHARE: Final = 0.60
STATIC_TARGET_SHARE: Final = 0.35
"""Of the room that system prompt and tools leave: where an eviction begins at the earliest, and its target."""
MINIMUM_SAVING_RATIO: Final = 0.05
MINIMUM_SAVING_TOKENS: Final = 20_000
CACHE_WRITE_PRICE: Final = 1.25
CACHE_READ_PRICE: Final = 0.10
"""Of the price of fresh input, as Anthropic's price list has them; OpenAI's reads are between 0.1 and 0.5."""


@dataclass(frozen=True, slots=True)
class Levels:
    """Used tokens from which each step is taken, in rising order but for the target."""

    prepare: int
    target: int
    """Where an eviction or compaction wants to get to."""
    evict: int
    checkpoint: int
    compact: int
    roll: int
    ceiling: int
    """Above this the output reserve is gone and the call may not be made."""
    minimum_saving: int

    @classmethod
    def of(cls, limits: WindowLimits, *, checkpoint_ratio: float = CHECKPOINT_RATIO) -> Levels:
        """The levels of a window; each threshold z acts at min(z × limit, z / 0.90 × usable)."""
        zones = limits.thresholds
        evict, compact = zones.orange, zones.red
        if limits.has_usual_zones:
            evict, compact = max(evict, EVICT_RATIO), max(compact, COMPACT_RATIO)
        return cls(
            prepare=limits.at(zones.yellow),
            target=limits.at(evict * TARGET_SHARE),
            evict=limits.at(evict),
            checkpoint=limits.at(max(checkpoint_ratio, evict)),
            compact=limits.at(compact),
            roll=min(limits.at(ROLL_RATIO), limits.overflow_tokens),
            ceiling=limits.overflow_tokens,
            minimum_saving=int(min(MINIMUM_SAVING_TOKENS, MINIMUM_SAVING_RATIO * limits.usable_tokens)),
        )

    def compacting_at(self, limits: WindowLimits, ratio: float) -> Levels:
        """The levels with compaction from *ratio* on; never before evictions begin, never after the roll."""
        compact = min(max(limits.at(ratio), self.evict), self.roll)
        return replace(self, compact=compact)

    def above(self, static_tokens: int) -> Levels:
        """The levels of a window of which *standing_tokens* are sent with every call.

        Where system prompt and tools leave little room, the shares apply to that room: else a window would be
        reduced at every turn for what no reduction can change.
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
    """Tokens an edit must free to pay for the *tokens_behind* it that the prompt cache has to take in again.

    Freeing f tokens saves f × read price in each expected turn; the edit costs (write − read price) once for
    every token behind it.
    """
    cost = (CACHE_WRITE_PRICE - CACHE_READ_PRICE) * tokens_behind
    return int(cost / (CACHE_READ_PRICE * max(1, expected_turns)))
