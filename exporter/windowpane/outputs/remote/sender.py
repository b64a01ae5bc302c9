"""The thread that sends a process's events, in order, and what becomes of them while the server takes none.

Events wait in memory until the server has acknowledged them. While it cannot be reached, or takes less than the
agents produce, they move to spool files, which are sent before anything newer; so the order within a session is
kept. A file is deleted when all of it is acknowledged. Whatever was interrupted is sent again: the server stores
each event once. A new process first sends the files of earlier ones.

Only this thread removes events from the front, so those of the request in progress wait there too.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from windowpane.core.events import Event
from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.effects.worker import Backoff, Poller, TimeLimit
from windowpane.outputs.remote.batches import Record, event_records, text_records
from windowpane.outputs.remote.delivery import Delivery, UndeliveredError
from windowpane.store.captured_content import Redactor
from windowpane.store.writes.content_capture import ContentCapture
from windowpane.store.writes.spool import Spool

BATCH_EVENTS: Final = 1_000
"""Events sent at once, about half a megabyte before compression."""
BATCH_BYTES: Final = 4 * 2**20
"""Bytes from which a batch takes no further record, before compression."""
LINGER_SECONDS: Final = 0.5
"""Time for which the first event waits for others: each request has a cost on both sides."""
MEMORY_EVENTS: Final = 50_000
"""Events that wait in memory at most; more are dropped."""
SPOOL_EVENTS: Final = 10_000
"""Events in memory from which they are moved to a file."""
SPOOL_SECONDS: Final = 5.0
"""Time without the server after which what waits is moved to a file."""
FILES_SECONDS: Final = 60.0
"""Interval between two looks for files of other processes."""

_log = logging.getLogger("windowpane")


class Sender:
    """Sends events to one server. One thread at a time calls its methods.

    *redact* is None where texts are not captured: then they are not sent.
    """

    def __init__(self, delivery: Delivery, spool: Spool, *, redact: Redactor | None) -> None:
        self._delivery = delivery
        self._spool = spool
        self._redact = redact
        self._boundary = ErrorBoundary(_log)
        self._start_over()

    def _start_over(self) -> None:
        self._poller = Poller("sender", self._send_due, settle=self._send_now)
        self._waiting: deque[Event] = deque()
        self._waits_since = 0.0
        self._own_files: dict[Path, int] = {}
        """Spool files with events of this process, and the number of them."""
        self._damaged_events = 0
        self._look_at = 0.0
        """Time of the next look for spool files."""
        self._backoff = Backoff()
        self._failing_since: float | None = None
        self._requested_until = 0.0
        """The time until which the server asked to wait."""
        self._stopped = False
        self.problem = ""
        """Reason for which the last request failed; empty while the server takes events."""

    # -- called by the sink -----------------------------------------------------------------------------------

    @property
    def unsent_events(self) -> int:
        """Number of events in memory that are not acknowledged."""
        return len(self._waiting)

    def start(self) -> None:
        """Start the thread, which first sends the files of earlier processes."""
        self._poller.start()

    def put(self, events: Sequence[Event]) -> Sequence[Event]:
        """Queue events and return those that have no room."""
        if self._stopped:
            return events
        if not self._waiting:
            self._waits_since = time.monotonic()
        room = max(0, MEMORY_EVENTS - len(self._waiting))
        self._waiting.extend(events[:room])
        self._poller.wake()
        with self._boundary.contain("starting the sender"):
            self._poller.start()
        return events[room:]

    def settle(self, timeout_seconds: float) -> bool:
        """Try at once to send everything; return True when all events of this process are acknowledged."""
        return self._is_settled() or self._poller.wait(timeout_seconds)

    def take_damaged(self) -> int:
        """Return the number of events, not returned before, whose spool files were damaged."""
        damaged, self._damaged_events = self._damaged_events, 0
        return damaged

    def close(self) -> int:
        """Stop, and move what is not acknowledged to a spool file; return the number of events that are lost."""
        self._stopped = True
        rest = list(self._waiting)
        self._poller.abandon()
        self._delivery.abort()
        return len(rest) - self._spooled(rest)

    def after_fork(self) -> None:
        """Start over in a forked child: what waits is sent by the parent."""
        self._delivery.after_fork()
        self._start_over()

    def _is_settled(self) -> bool:
        return not self._waiting and not self._own_files

    # -- run by the thread ------------------------------------------------------------------------------------

    def _send_due(self) -> float:
        """Send what is due, and return the seconds until more is."""
        if self._seconds_until_due() <= 0:
            self._send_all()
        return self._seconds_until_due()

    def _send_now(self, _limit: TimeLimit, _is_last: bool) -> bool:  # noqa: FBT001
        """Send everything, unless the server asked to wait; return whether it has acknowledged all events."""
        if not self._is_settled() and time.monotonic() >= self._requested_until:
            self._send_all()
        return self._is_settled()

    def _seconds_until_due(self) -> float:
        now = time.monotonic()
        due = self._look_at
        if self._own_files:
            due = now
        if self._waiting:
            is_full = len(self._waiting) >= BATCH_EVENTS
            due = min(due, now if is_full else self._waits_since + LINGER_SECONDS)
        return max(due - now, self._requested_until - now, self._backoff.remaining_seconds, 0.0)

    def _send_all(self) -> None:
        if self._stopped:
            return
        try:
            self._send_files()
            self._send_waiting()
        except UndeliveredError as error:
            self._postpone(str(error), error.retry_after_seconds)
        except Exception as error:  # noqa: BLE001  # the thread continues
            self._boundary.log_failure("sending events", error)
            self._postpone(f"{type(error).__name__}: {error}", 0.0)
        self._relieve_memory()

    def _send_files(self) -> None:
        """Send the spool files, oldest first."""
        if not self._own_files and time.monotonic() < self._look_at:
            return
        for path in self._spool.files():
            spooled = self._spool.read(path)
            if spooled is None and path in self._own_files and path.exists():
                raise UndeliveredError(f"{path}: cannot be read")
            if spooled is not None:
                self._send([*text_records(spooled.texts), *event_records(spooled.events)])
                self._spool.remove(path)
            self._forget(path)
        for path in self._own_files.keys() - set(self._spool.files()):
            self._forget(path)  # another process has sent it or set it aside
        self._look_at = time.monotonic() + FILES_SECONDS

    def _forget(self, path: Path) -> None:
        events = self._own_files.pop(path, 0)
        if self._spool.is_set_aside(path):
            self._damaged_events += events

    def _send_waiting(self) -> None:
        while events := list(islice(self._waiting, BATCH_EVENTS)):
            if self._stopped:
                return
            self._send(self._records(events))
            for _ in events:
                self._waiting.popleft()
            self._waits_since = time.monotonic()

    def _records(self, events: Sequence[Event]) -> list[Record]:
        if self._redact is None:
            return list(event_records(events))
        capture = ContentCapture(self._redact)
        for event in events:
            capture.collect_one(event)
        return [*text_records(capture.take_redacted()), *event_records(events)]

    def _send(self, records: Sequence[Record]) -> None:
        """Send records in batches of bounded size. Raises `UndeliveredError`."""
        batch: list[Record] = []
        size = 0
        for record in records:
            if batch and (size + len(record.line) > BATCH_BYTES or len(batch) >= BATCH_EVENTS):
                self._deliver(batch)
                batch, size = [], 0
            batch.append(record)
            size += len(record.line)
        if batch:
            self._deliver(batch)

    def _deliver(self, batch: Sequence[Record]) -> None:
        self._delivery.deliver(batch)
        if self.problem:
            _log.info("the ingest server takes events again")
        self.problem, self._failing_since, self._requested_until = "", None, 0.0
        self._backoff.succeed()

    def _postpone(self, problem: str, retry_after_seconds: float) -> None:
        """Pause before the next attempt, and as long as the server asks."""
        self._boundary.warn("unsent", "events are not sent for now: %s", problem)
        now = time.monotonic()
        self.problem = problem
        self._failing_since = now if self._failing_since is None else self._failing_since
        self._requested_until = now + retry_after_seconds
        self._backoff.fail()

    def _relieve_memory(self) -> None:
        """Move what waits to a file if the server has been away for a while, or much waits."""
        is_away = self._failing_since is not None and time.monotonic() - self._failing_since >= SPOOL_SECONDS
        events = list(self._waiting)
        if self._stopped or not (is_away or len(events) >= SPOOL_EVENTS):
            return
        for _ in range(self._spooled(events)):
            self._waiting.popleft()

    def _spooled(self, events: Sequence[Event]) -> int:
        """Write events to a spool file and return how many fit."""
        if not events:
            return 0
        others, spooled = set(self._spool.files()), 0
        with self._boundary.contain("spooling events"):
            spooled = self._spool.write(events)
        self._own_files |= dict.fromkeys(set(self._spool.files()) - others, spooled)
        return spooled
