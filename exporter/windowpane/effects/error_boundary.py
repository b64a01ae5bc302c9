"""The error boundary: exceptions inside it are contained and logged at most once per minute per kind.

Telemetry never harms the agent. Everything that runs on behalf of the agent runs inside a boundary, so call sites
need no `try`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from logging import Logger
from typing import Final

LOG_EVERY_SECONDS: Final = 60.0
MAXIMUM_KINDS: Final = 100
"""Kinds that are logged within `LOG_EVERY_SECONDS`; messages of further ones are counted."""


class ErrorBoundary:
    """Contains exceptions and logs each kind at most once per minute, with the number of suppressed messages.

    A kind must not name a session or a file of one: the boundary knows the latest `MAXIMUM_KINDS`.
    """

    def __init__(self, logger: Logger, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._logger = logger
        self._clock = clock
        self._logged_at: dict[str, float] = {}
        """The last time that each kind was logged, oldest first."""
        self._suppressed: dict[str, int] = {}
        self._suppressed_others = 0
        """Messages of kinds that were not logged because many others were, or that were forgotten since."""

    @contextmanager
    def contain(self, what: str, *, failed: Callable[[], object] | None = None) -> Iterator[None]:
        """Run the body; an exception ends it and is logged as a failure of *what* instead of being raised.

        *failed* is called after an exception, to count it.
        """
        try:
            yield
        except Exception as error:  # noqa: BLE001  # the only place that catches every exception
            self.log_failure(what, error)
            if failed is not None:
                failed()

    def log_failure(self, what: str, error: Exception) -> None:
        """Log that *what* failed, at most once per minute per type of error."""
        self.warn(f"{what} {type(error).__name__}", "%s failed: %s: %s", what, type(error).__name__, error)

    def warn_once(self, kind: str, message: str, *values: object) -> None:
        """Log a warning of *kind* the first time only."""
        if kind not in self._logged_at:
            self.warn(kind, message, *values)

    def warn(self, kind: str, message: str, *values: object) -> None:
        """Log a warning of *kind*, at most once per minute."""
        now = self._clock()
        last = self._logged_at.get(kind)
        if last is not None and now - last < LOG_EVERY_SECONDS:
            self._suppressed[kind] = self._suppressed.get(kind, 0) + 1
            return
        if last is None and not self._make_room(now):
            self._suppressed_others += 1
            return
        self._logged_at.pop(kind, None)
        self._logged_at[kind] = now
        self._log(message, *values)
        if suppressed := self._suppressed.pop(kind, 0):
            self._log("%d similar messages since the last one", suppressed)
        if last is None and (others := self._suppressed_others):
            self._suppressed_others = 0
            self._log("%d other messages were not logged: there were too many", others)

    def _make_room(self, now: float) -> bool:
        """Forget the kind that was logged longest ago; return False if that is less than a minute ago."""
        if len(self._logged_at) < MAXIMUM_KINDS:
            return True
        oldest = list(self._logged_at)[0]  # noqa: RUF015  # one step, while other threads add kinds
        if now - self._logged_at.get(oldest, now) < LOG_EVERY_SECONDS:
            return False
        self._logged_at.pop(oldest, None)
        self._suppressed_others += self._suppressed.pop(oldest, 0)
        return True

    def _log(self, message: str, *values: object) -> None:
        with suppress(Exception):  # a filter of the program's logging may raise
            self._logger.warning(message, *values)
