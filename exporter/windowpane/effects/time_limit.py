"""Time limits of calls that may wait for a disk or a lock without end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class TimeLimit:
    """The rest of a time of *seconds*, by a clock that is never set."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    @property
    def remaining(self) -> float:
        """Remaining seconds; 0 when the time is up."""
        return max(0.0, self._end - time.monotonic())

    def share(self, ratio: float) -> float:
        """Return this part of the remaining seconds."""
        return ratio * self.remaining


def run_within(seconds: float, call: Callable[[], object]) -> bool:
    """Run *call*, which raises nothing, for at most *seconds*; return False if it has not ended by then."""
    thread = threading.Thread(target=call, name="windowpane-limited", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # no thread can be started while the interpreter shuts down
        call()
        return True
    thread.join(seconds)
    return not thread.is_alive()
