"""Used tokens of the window: the provider's last total plus a calibrated estimate of everything since."""

from __future__ import annotations

from typing import Final

from windowpane.core.vocabulary import COMPONENTS, Component

CALIBRATION_RATE: Final = 0.2
"""Weight of the newest observation in the moving average of the calibration."""
CALIBRATION_RANGE: Final = (0.5, 2.0)
CALIBRATION_MINIMUM_TOKENS: Final = 200
"""Smaller differences are mostly rounding and do not change the calibration."""


class TokenAccount:
    """The anchor (the provider's last input total) and the calibration of client-side counts against it.

    Counts are corrected by differences between calls, never by totals: content that a total includes but
    a transcript does not record, such as a system prompt, is the caller's `unattributed` block.
    """

    def __init__(self) -> None:
        self.calibration = 1.0
        """Provider tokens per token counted here, 0.5 to 2.0."""
        self._anchor: int | None = None
        self._anchor_raw = 0
        self._comparable = False

    @property
    def anchored(self) -> bool:
        """True once the provider has reported a total for this window."""
        return self._anchor is not None

    def used(self, raw_tokens: int) -> int:
        """Return the tokens that the next call would send, given the sum of the window's blocks."""
        if self._anchor is None:
            return raw_tokens
        return max(0, round(self._anchor + self.calibration * (raw_tokens - self._anchor_raw)))

    def report(self, total_tokens: int, raw_tokens: int) -> float | None:
        """Set the anchor to the provider's total of a call that sent blocks summing to *raw_tokens*.

        Returns the signed relative error of the estimate for that call, or None for the first.
        """
        error = None
        if self._anchor is not None and total_tokens > 0:
            error = (self.used(raw_tokens) - total_tokens) / total_tokens
            self._calibrate(total_tokens - self._anchor, raw_tokens - self._anchor_raw)
        self._anchor, self._anchor_raw, self._comparable = total_tokens, raw_tokens, True
        return error

    def rebase(self, total_tokens: int | None, raw_tokens: int) -> None:
        """Set the anchor after a compaction; the next difference does not change the calibration."""
        if total_tokens is not None:
            self._anchor, self._anchor_raw = total_tokens, raw_tokens
        self._comparable = False

    def shift(self, raw_tokens: int) -> None:
        """Count *raw_tokens* of new blocks that the anchor already includes (the unattributed remainder)."""
        self._anchor_raw += raw_tokens

    def reduce(self) -> None:
        """Blocks were removed: the next difference mixes growth and reduction and is not used to calibrate."""
        self._comparable = False

    def reset(self) -> None:
        """Drop the anchor for a new window; the calibration stays."""
        self._anchor, self._anchor_raw, self._comparable = None, 0, False

    def _calibrate(self, reported_difference: int, counted_difference: int) -> None:
        if not self._comparable or counted_difference < CALIBRATION_MINIMUM_TOKENS or reported_difference <= 0:
            return
        low, high = CALIBRATION_RANGE
        observed = min(max(reported_difference / counted_difference, low), high)
        self.calibration += CALIBRATION_RATE * (observed - self.calibration)


def apportion(used_tokens: int, raw: dict[Component, int]) -> dict[Component, int]:
    """Split *used_tokens* over the components so that the parts sum to it.

    The unattributed part is unchanged if it fits; the visible components share the rest in proportion to their
    counts. The rounding remainder is added to the message history, or to the largest component without one.
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
    remainder = used_tokens - sum(parts.values())
    if remainder:
        receiver: Component = "message_history"
        if not raw.get(receiver):
            receiver = max((component for component in raw if component != "unattributed"), key=raw.__getitem__)
        parts[receiver] += remainder
    return parts
