"""How many messages a channel is sent: a burst, then an even stream."""

from __future__ import annotations


class RateLimit:
    """A token bucket: a burst of a minute's messages, refilled evenly."""

    def __init__(self, a_minute: int) -> None:
        self._rate = a_minute / 60
        self._full = float(a_minute)
        self._tokens = self._full
        self._at: float | None = None

    def take(self, now: float) -> float:
        """Use one token; returns the seconds to wait for it, 0 when it was there."""
        if self._at is not None:
            self._tokens = min(self._full, self._tokens + max(0.0, now - self._at) * self._rate)
        self._at = now
        if self._tokens < 1:
            return (1 - self._tokens) / self._rate
        self._tokens -= 1
        return 0.0
