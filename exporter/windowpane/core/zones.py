"""Zones of a window by its size: default thresholds, output reserve, safety margin, and the tokens of a level.

A status line is drawn at every prompt of a coding agent, so this module loads no other.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from windowpane.core.vocabulary import Zone

MINIMUM_LIMIT_TOKENS: Final = 256
"""A window smaller than this cannot hold a placeholder and a question."""
SMALL_WINDOW_TOKENS: Final = 32_768
LARGE_WINDOW_TOKENS: Final = 200_000
MINIMUM_OUTPUT_TOKENS: Final = 4_096
RESERVE_RATIO: Final = 0.05
MAXIMUM_RESERVE_RATIO: Final = 0.25
"""Bound of the reserve of a small window, unless more is requested."""
MARGIN_RATIO: Final = 0.05


def default_thresholds(limit_tokens: int) -> tuple[float, float, float]:
    """Return the lower ends of yellow, orange and red: lower for windows below 32K, higher from 200K."""
    if limit_tokens < SMALL_WINDOW_TOKENS:
        return 0.40, 0.65, 0.85
    if limit_tokens >= LARGE_WINDOW_TOKENS:
        return 0.60, 0.80, 0.90
    return 0.50, 0.75, 0.90


def default_reserve(limit_tokens: int, *, requested_output_tokens: int = 0) -> int:
    """Return the tokens reserved for output: those requested if they fit, at least `min(max(4096, 5%), 25%)`."""
    usual = max(MINIMUM_OUTPUT_TOKENS, int(limit_tokens * RESERVE_RATIO))
    usual = min(usual, int(limit_tokens * MAXIMUM_RESERVE_RATIO))
    return (
        max(usual, requested_output_tokens) if requested_output_tokens <= largest_output(limit_tokens) else usual
    )


def largest_output(limit_tokens: int) -> int:
    """Return the most tokens that can be reserved for output beside the safety margin and a question."""
    return limit_tokens - default_margin(limit_tokens) - MINIMUM_LIMIT_TOKENS


def default_margin(limit_tokens: int) -> int:
    """Return the safety margin for errors of client-side counting, in tokens."""
    return int(limit_tokens * MARGIN_RATIO)


def level_tokens(ratio: float, *, limit_tokens: int, usable_tokens: int) -> int:
    """Return the used tokens of the threshold *ratio* z: min(z × limit, z / 0.90 × usable)."""
    return int(min(ratio * limit_tokens, ratio / 0.90 * usable_tokens) + 1e-6)


def zone_of(used_tokens: int, levels: tuple[int, int, int], *, overflow_tokens: int) -> Zone:
    """Return the zone whose level *used_tokens* reach; *levels* are those of yellow, orange and red."""
    yellow, orange, red = levels
    if used_tokens < yellow:
        return "green"
    if used_tokens < orange:
        return "yellow"
    if used_tokens < red:
        return "orange"
    return "red" if used_tokens <= overflow_tokens else "overflow"


def default_zone(used_tokens: int, limit_tokens: int) -> Zone:
    """Return the zone of *used_tokens* in a window with the defaults of its size."""
    overflow = limit_tokens - default_reserve(limit_tokens)
    usable = overflow - default_margin(limit_tokens)
    yellow, orange, red = (
        level_tokens(ratio, limit_tokens=limit_tokens, usable_tokens=usable)
        for ratio in default_thresholds(limit_tokens)
    )
    return zone_of(used_tokens, (yellow, orange, red), overflow_tokens=overflow)
