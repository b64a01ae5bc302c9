"""The circuit breaker: stops compactions that make no progress, or whose window refills at once."""

from __future__ import annotations

from typing import Final

ATTEMPTS: Final = 3
REFILLS: Final = 3
REFILL_TURNS: Final = 3
NO_PROGRESS: Final = "no progress"
REFILLED: Final = "refilled"


class Breaker:
    """Counts compactions without progress and quick refills of a session; open until the next user message."""

    def __init__(self) -> None:
        self.open = False
        self.reason = ""
        self.attempts = 0
        self._refills = 0
        self._last_turn: int | None = None

    def due(self, turn: int) -> bool:
        """Return whether a compaction that is due in *turn* may be tried; counts a quick refill once per turn."""
        if self.open:
            return False
        last = self._last_turn
        if last is not None and turn > last:
            self._refills = self._refills + 1 if turn - last <= REFILL_TURNS else 0
            self._last_turn = None
            if self._refills >= REFILLS:
                self._trip(REFILLED)
        return not self.open

    def succeeded(self, turn: int) -> None:
        """Record that a compaction in *turn* made progress."""
        self.attempts = 0
        self._last_turn = turn

    def failed(self) -> bool:
        """Record that a compaction made no progress; return True if that opened the breaker."""
        self.attempts += 1
        if self.open or self.attempts < ATTEMPTS:
            return False
        self._trip(NO_PROGRESS)
        return True

    def reset(self) -> None:
        """Close the breaker: a user message came, or a new window started."""
        self.open, self.reason, self.attempts, self._refills, self._last_turn = False, "", 0, 0, None

    def _trip(self, reason: str) -> None:
        self.open, self.reason = True, reason
        self.attempts = max(self.attempts, self._refills)
