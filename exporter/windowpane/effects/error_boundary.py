"""The line that no exception of ours crosses: contain it, log it once per kind, go on.

Telemetry never harms the agent. Everything that runs on behalf of the agent runs inside one of these, so that no
call site needs a try of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from logging import Logger
from typing import Final

LOG_EVERY_SECONDS: Final = 60.0
MAXIMUM_KINDS: Final = 1_000


class Boundary:
    """Contains exceptions and logs each kind at most once a minute, with how many were kept quiet."""

    def __init__(self, logger: Logger, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._logger = logger
        self._clock = clock
        self._logged: dict[str, float] = {}
        self._quiet: dict[str, int] = {}

    @contextmanager
    def contain(self, what: str, *, failed: Callable[[], object] | None = None) -> Iterator[None]:
        """Run the body; an exception ends it, is logged as a failure of *what*, and goes no further.

        *failed* is called after an exception, to count it.
        """
        try:
            yield
        except Exception as error:  # noqa: BLE001  # this is the one place that takes them all
            self.caught(what, error)
            if failed is not None:
                failed()

    def caught(self, what: str, error: Exception) -> None:
        """Log that *what* failed, unless it just did."""
        self.say(f"{what} {type(error).__name__}", "%s failed: %s: %s", what, type(error).__name__, error)

    def say(self, kind: str, message: str, *values: object) -> None:
        """Log a warning of *kind* at most once a minute."""
        now = self._clock()
        last = self._logged.get(kind)
        if last is not None and now - last < LOG_EVERY_SECONDS:
            self._quiet[kind] = self._quiet.get(kind, 0) + 1
            return
        if last is None and len(self._logged) >= MAXIMUM_KINDS:
            return
        self._logged[kind] = now
        self._logger.warning(message, *values)
        quiet = self._quiet.pop(kind, 0)
        if quiet:
            self._logger.warning("%d more like it since the last one was logged", quiet)
