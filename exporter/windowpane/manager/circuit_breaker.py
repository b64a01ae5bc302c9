"""Stops a reduction that gets nowhere: attempts without progress, or a window that fills again at once."""

from __future__ import annotations

from typing import Final

ATTEMPTS: Final = 3
REFILLS: Final = 3
REFILL_TURNS: Final = 3
NO_PROGRESS: Final = "no progress"
REFILLED: Final = "refilled"


class Breaker:
    """Counts fruitless compactions and quick refills of one session; open until the next real user message."""

    def __init__(self) -> None:
        self.open = False
        self.reason = ""
        self.attempts = 0
        self._refills = 0
        self._last_turn: int | None = None

    def due(self, turn: int) -> bool:
        """A compaction is due in *turn*; says whether it may be tried. Counts a quick refill once a turn."""
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
        """A compaction in *turn* made progress."""
        self.attempts = 0
        self._last_turn = turn

    def failed(self) -> bool:
        """A compaction made no progress; says whether that opened the breaker."""
        self.attempts += 1
        if self.open or self.attempts < ATTEMPTS:
            return False
        self._trip(NO_PROGRESS)
        return True

    def reset(self) -> None:
        """A real user message came, or a new window began."""
        self.open, self.reason, self.attempts, self._refills, self._last_turn = False, "", 0, 0, None

    def _trip(self, reason: str) -> None:
        self.open, self.reason = True, reason
        self.attempts = max(self.attempts, self._refills)
