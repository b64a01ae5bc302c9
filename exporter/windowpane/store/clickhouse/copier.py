"""The thread that copies a store; while ClickHouse does not answer, it waits ever longer."""

from __future__ import annotations

import logging
from typing import Final

from windowpane.effects.worker import Backoff, Poller
from windowpane.exceptions import WindowpaneError
from windowpane.store.clickhouse.store_copy import StoreCopy

POLL_SECONDS: Final = 1.0
"""Interval between reads of new events."""
CLOSE_SECONDS: Final = 10.0

_log: Final = logging.getLogger(__name__)


class Copier:
    """Copies a store on its own thread, from `start` to `close`."""

    def __init__(self, copy: StoreCopy, *, poll_seconds: float = POLL_SECONDS) -> None:
        self._copy = copy
        self._poll_seconds = poll_seconds
        self._is_open = False
        self._backoff = Backoff()
        self._poller = Poller("clickhouse", self._follow)
        self.failure = ""
        """The reason why the last attempt failed; empty after one that did not."""
        self.lag_events: int | None = None
        """Events of the store that are not copied; None before the first attempt."""

    def start(self) -> None:
        """Start copying."""
        self._poller.start()

    def close(self) -> None:
        """Stop after the batch that is being copied; the next copier continues behind it."""
        self._poller.close(CLOSE_SECONDS)

    def health(self) -> dict[str, object]:
        """Return the state of the copy, for `/healthz`."""
        details: dict[str, object] = {"copied_to_seq": self._copy.position, "lag_events": self.lag_events}
        return {**details, "failure": self.failure} if self.failure else details

    def copy_pending(self) -> None:
        """Copy everything that the store holds now. Raises `ClickHouseError` and `StoreError`."""
        if not self._is_open:
            self._copy.open()
            self._is_open = True
        self.lag_events = self._copy.lag_events()
        while not self._poller.is_closed and self._copy.copy_batch():
            self.lag_events = self._copy.lag_events()

    def _follow(self) -> float:
        """Copy, and return the seconds until the next time."""
        try:
            self.copy_pending()
        except Exception as error:  # noqa: BLE001  # serving continues, and the copy is tried again
            self._report(error)
            self._measure_lag()
            self._backoff.fail()
            return self._backoff.remaining_seconds
        if self.failure:
            _log.warning("the copy in ClickHouse continues")
            self.failure = ""
        self._backoff.succeed()
        return self._poll_seconds

    def _report(self, error: Exception) -> None:
        """Log a failure, once while it stays the same."""
        failure = str(error) if isinstance(error, WindowpaneError) else f"{type(error).__name__}: {error}"
        if failure != self.failure:
            unexpected = None if isinstance(error, WindowpaneError) else error
            _log.error("events are not copied to ClickHouse: %s", failure, exc_info=unexpected)
        self.failure = failure

    def _measure_lag(self) -> None:
        """Let the lag grow while nothing can be copied."""
        try:
            self.lag_events = self._copy.lag_events()
        except Exception:  # noqa: BLE001  # the copy is tried again
            _log.debug("the lag cannot be measured", exc_info=True)
