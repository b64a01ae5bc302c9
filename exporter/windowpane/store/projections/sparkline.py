"""The small chart of a session in the list: its used tokens and utilization, thinned as they come."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

SPARKLINE_POINTS: Final = 24


@dataclass(slots=True)
class Sparkline:
    """Used tokens and utilization over a session in at most 48 points; when full, every second one is dropped."""

    stride: int = 1
    seen: int = 0
    used: list[int] = field(default_factory=list)
    utilization: list[float | None] = field(default_factory=list)
    last: tuple[int, float | None] | None = None
    """The newest point, also where the stride skips it."""

    def add(self, used_tokens: int, utilization: float | None) -> None:
        """Add the final measurement of a turn."""
        self.last = (used_tokens, utilization)
        if self.seen % self.stride == 0:
            self.used.append(used_tokens)
            self.utilization.append(utilization)
            if len(self.used) >= 2 * SPARKLINE_POINTS:
                self.used, self.utilization = self.used[::2], self.utilization[::2]
                self.stride *= 2
        self.seen += 1

    def correct(self, before: int, limit_tokens: int) -> None:
        """Replace the limit *before*, which never was."""
        pairs = [*zip(self.used, self.utilization, strict=True), *([self.last] if self.last else [])]
        pairs = [(used, used / limit_tokens if share == used / before else share) for used, share in pairs]
        if self.last is not None:
            self.last = pairs.pop()
        self.utilization = [share for _, share in pairs]

    def points(self, peak_used_tokens: int) -> tuple[float, ...]:
        """Return utilization, or the share of the peak without a limit, at most 24 points including the last."""
        if self.last is None:
            return ()
        pairs = list(zip(self.used, self.utilization, strict=True))
        if (self.seen - 1) % self.stride:
            pairs.append(self.last)
        step = -(-len(pairs) // SPARKLINE_POINTS)
        pairs = pairs[::-1][::step][::-1]  # from the end, so that the newest point stays
        if any(utilization is not None for _, utilization in pairs):
            return tuple(round(utilization or 0.0, 4) for _, utilization in pairs)
        peak = peak_used_tokens or 1
        return tuple(round(used / peak, 4) for used, _ in pairs)
