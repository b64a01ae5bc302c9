"""How many tokens are in the window: the provider's last count plus a calibrated estimate of what came since."""

from __future__ import annotations

from typing import Final

from windowpane.core.vocabulary import COMPONENTS, Component

CALIBRATION_RATE: Final = 0.2
"""Weight of the newest observation in the moving average of the calibration."""
CALIBRATION_RANGE: Final = (0.5, 2.0)
CALIBRATION_MINIMUM_TOKENS: Final = 200
"""Differences smaller than this are mostly rounding and are not learnt from."""


class Accounts:
    """The anchor (the provider's last input total) and the calibration of client-side counts against it.

    Counts are corrected by differences between calls, never by totals: what a total contains beyond the visible
    content (a system prompt that a transcript does not record) is the caller's `unattributed` block.
    """

    def __init__(self) -> None:
        self.calibration = 1.0
        """Provider tokens for one token counted here, 0.5 to 2.0."""
        self._anchor: int | None = None
        self._anchor_raw = 0
        self._comparable = False

    @property
    def anchored(self) -> bool:
        """Whether a provider's count was ever seen in this window."""
        return self._anchor is not None

    def used(self, raw_tokens: int) -> int:
        """What the next call would send, given the sum of the window's blocks."""
        if self._anchor is None:
            return raw_tokens
        return max(0, round(self._anchor + self.calibration * (raw_tokens - self._anchor_raw)))

    def reported(self, total_tokens: int, raw_tokens: int) -> float | None:
        """Take the provider's total of a call that sent blocks summing to *raw_tokens*.

        Returns the signed relative error of the estimate made for that call, or None for the first.
        """
        error = None
        if self._anchor is not None and total_tokens > 0:
            error = (self.used(raw_tokens) - total_tokens) / total_tokens
            self._learn(total_tokens - self._anchor, raw_tokens - self._anchor_raw)
        self._anchor, self._anchor_raw, self._comparable = total_tokens, raw_tokens, True
        return error

    def rebase(self, total_tokens: int | None, raw_tokens: int) -> None:
        """Start from another total after a compaction; the next difference is not learnt from."""
        if total_tokens is not None:
            self._anchor, self._anchor_raw = total_tokens, raw_tokens
        self._comparable = False

    def shift(self, raw_tokens: int) -> None:
        """Blocks worth *raw_tokens* entered that the anchor already counts (the unattributed remainder)."""
        self._anchor_raw += raw_tokens

    def reduced(self) -> None:
        """Blocks left: the difference to the next report mixes growth and reduction and is not learnt from."""
        self._comparable = False

    def reset(self) -> None:
        """A new window: no anchor; what was learnt about the counter stays."""
        self._anchor, self._anchor_raw, self._comparable = None, 0, False

    def _learn(self, reported_difference: int, counted_difference: int) -> None:
        if not self._comparable or counted_difference < CALIBRATION_MINIMUM_TOKENS or reported_difference <= 0:
            return
        low, high = CALIBRATION_RANGE
        seen = min(max(reported_difference / counted_difference, low), high)
        self.calibration += CALIBRATION_RATE * (seen - self.calibration)


def apportion(used_tokens: int, raw: dict[Component, int]) -> dict[Component, int]:
    """Split *used_tokens* over the components so that the parts sum to it.

    The unattributed part is kept as it is where it fits; the visible components share the rest in proportion to
    their own counts, and what rounding leaves over goes to the message history, or to the largest without one.
    """
    total = sum(raw.values())
    if total == used_tokens:
        return raw
    visible = total - raw.get("unattributed", 0)
    if visible <= 0:
        return {**dict.fromkeys(COMPONENTS, 0), "unattributed": used_tokens}
    unattributed = min(total - visible, used_tokens)
    rest = used_tokens - unattributed
    parts: dict[Component, int] = {component: rest * tokens // visible for component, tokens in raw.items()}
    parts["unattributed"] = unattributed
    over = used_tokens - sum(parts.values())
    if over:
        takes: Component = "message_history"
        if not raw.get(takes):
            takes = max((component for component in raw if component != "unattributed"), key=raw.__getitem__)
        parts[takes] += over
    return parts
