"""The queue between requests and the record of their calls: bounded, with one thread that assembles and records.

What was acknowledged is not lost while the process runs: a request that does not fit is refused, and its client
sends it again. When the pipeline of the events is filling up, the thread waits, so that the queue fills too.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.receiver.call_recorder import CallRecorder
from windowpane.telemetry.assembly import WAIT_SECONDS, CallAssembly
from windowpane.telemetry.records import LogRecord, Span, Telemetry
from windowpane.telemetry.reported_call import Assembled

CAPACITY_BYTES: Final = 256 * 2**20
"""Bytes of the requests whose calls wait to be recorded."""
CAPACITY_ITEMS: Final = 500_000
"""Spans and log records of those requests."""
CAPACITY_CALLS: Final = 20_000
"""Model calls that wait to be recorded: no more than closing has time for."""
TICK_SECONDS: Final = 0.25
"""Interval between two checks for calls whose time has come."""
PAUSE_SECONDS: Final = 0.02
"""Pause while the pipeline has no room."""
CLOSE_SECONDS: Final = 60.0
"""Longest time that closing takes, for a full queue on a busy machine."""

_log = logging.getLogger(__name__)


class Backlog(Protocol):
    """A function that returns whether the events of more calls would not fit into the pipeline."""

    def __call__(self) -> bool:
        """Return True while no more calls should be recorded."""
        ...


class _Load(NamedTuple):
    """The part of the capacity that a request uses until its calls are recorded."""

    arrived_at: float
    size: int
    items: int


class Intake:
    """Takes the content of requests and records their calls on a separate thread."""

    def __init__(
        self,
        recorder: CallRecorder,
        *,
        is_full: Backlog,
        wait_seconds: float = WAIT_SECONDS,
        capacity_bytes: int = CAPACITY_BYTES,
        capacity_items: int = CAPACITY_ITEMS,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._recorder = recorder
        self._is_full = is_full
        self._capacity = _Load(0.0, capacity_bytes, capacity_items)
        self._monotonic = monotonic
        self._assembly = CallAssembly(wait_seconds=wait_seconds)
        self._wait = wait_seconds
        self._boundary = ErrorBoundary(_log)
        self._changed = threading.Condition()
        self._arrived: deque[tuple[Telemetry, float]] = deque()
        self._loads: deque[_Load] = deque()
        self._size = self._items = 0
        self._unrecorded = 0
        """Calls that are due and not recorded yet."""
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="windowpane-otlp-intake", daemon=True)
        self.recorded = 0
        """Calls and compactions recorded so far."""

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def put(self, telemetry: Telemetry, size: int) -> bool:
        """Take the content of a request of *size* bytes; returns False if the queue is full."""
        items = len(telemetry.spans) + len(telemetry.logs)
        if not items:
            return not self._closed
        with self._changed:
            fits = not self._loads or (
                self._size + size <= self._capacity.size and self._items + items <= self._capacity.items
            )
            if self._closed or not fits or len(self._assembly) + self._unrecorded >= CAPACITY_CALLS:
                return False
            now = self._monotonic()
            self._loads.append(_Load(now, size, items))
            self._size, self._items = self._size + size, self._items + items
            self._arrived.append((telemetry, now))
            self._changed.notify()
        return True

    def close(self, timeout_seconds: float = CLOSE_SECONDS) -> bool:
        """Record everything that has arrived, and stop; returns False if it takes longer."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    # -- run by the thread ------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._closed:
            with self._changed:
                if not self._arrived:
                    self._changed.wait(TICK_SECONDS)
            with self._boundary.contain("receiving telemetry"):
                self._assemble()
                self._record_due(everything=False)
        with self._boundary.contain("receiving telemetry"):
            self._assemble()
            self._record_due(everything=True)
            self._recorder.flush()

    def _assemble(self) -> None:
        while self._arrived:
            telemetry, now = self._arrived.popleft()
            items: list[Span | LogRecord] = [*telemetry.spans, *telemetry.logs]
            for item in items:
                with self._boundary.contain("reading telemetry"):  # one that cannot be read loses no other
                    self._assembly.add(item, now)

    def _record_due(self, *, everything: bool) -> None:
        now = self._monotonic()
        due = self._assembly.due(now, everything=everything)
        for number, assembled in enumerate(due):
            self._unrecorded = len(due) - number
            self._record(assembled)
        self._unrecorded = 0
        with self._changed:
            while self._loads and (everything or self._loads[0].arrived_at <= now - self._wait):
                load = self._loads.popleft()
                self._size, self._items = self._size - load.size, self._items - load.items

    def _record(self, assembled: Assembled) -> None:
        while self._is_full():
            time.sleep(PAUSE_SECONDS)
        with self._boundary.contain("recording a call"):
            self._recorder.record(assembled)
        self.recorded += 1
