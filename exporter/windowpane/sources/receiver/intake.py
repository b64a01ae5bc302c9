"""The queue between requests and the record of their calls: bounded, with one thread that assembles and records.

A request is acknowledged when it is in the log on disk, and stays there until the events of its calls are
stored. What a process did not store before it ended, the next one does. A request that does not fit is refused,
and its client sends it again. When the pipeline of the events is filling up, the thread waits, so that the queue
fills too.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from windowpane.core.events import Event
from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.effects.record_log import RecordLog
from windowpane.effects.worker import Poller, TimeLimit
from windowpane.outputs.http.routes import PostRequest
from windowpane.sources.receiver.call_recorder import CallRecorder
from windowpane.sources.receiver.request_log import (
    EarlierCalls,
    IsStored,
    RecordedCall,
    append,
    append_recorded,
    earlier_digests,
    earlier_requests,
    recorded_call,
)
from windowpane.sources.receiver.requests import DecodedRequest
from windowpane.sources.telemetry.assembly import WAIT_SECONDS, CallAssembly
from windowpane.sources.telemetry.records import LogRecord, Span, Telemetry
from windowpane.sources.telemetry.reported_call import Assembled
from windowpane.sources.transcripts.formats.exchanges.body_files import read_body_file

CAPACITY_BYTES: Final = 256 * 2**20
"""Bytes of the requests whose calls wait to be recorded."""
CAPACITY_ITEMS: Final = 500_000
"""Spans and log records of those requests."""
CAPACITY_CALLS: Final = 20_000
"""Model calls that wait to be recorded."""
RECORDED_AT_ONCE: Final = 100
"""Calls whose events are handed over after one write to the log."""
REMEMBERED_REQUESTS: Final = 20_000
"""Latest requests by which one that is sent again is known."""
TICK_SECONDS: Final = 0.25
"""Interval between two checks for calls whose time has come."""
PAUSE_SECONDS: Final = 0.02
"""Pause while the pipeline has no room."""
RETRY_SECONDS: Final = 1.0
"""Pause before the store is asked again what it has."""
CLOSE_SECONDS: Final = 5.0
"""Time in which closing records what waits; the rest stays in the log."""

_log = logging.getLogger(__name__)


class Backlog(Protocol):
    """A function that returns whether the events of more calls would not fit into the pipeline."""

    def __call__(self) -> bool:
        """Return True while no more calls should be recorded."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlet:
    """The pipeline behind the intake, and the store behind that."""

    put: Callable[[list[Event]], None]
    is_full: Backlog
    is_settled: Callable[[], bool]
    """Waits a moment, and returns whether every event that was put is stored durably, or counted as lost."""
    is_stored: IsStored


class Emitted:
    """Collects the events of one call: what the recorder emits."""

    def __init__(self) -> None:
        self._events: list[Event] = []

    def __call__(self, batch: list[Event]) -> None:
        """Add events."""
        self._events += batch

    def take(self) -> list[Event]:
        """Remove and return the events."""
        events, self._events = self._events, []
        return events


@dataclass(slots=True, eq=False)
class _Load:
    """The part of the capacity that a request uses until its calls are recorded."""

    number: int
    """Number in the log, or a lower one."""
    size: int = 0
    items: int = 0
    arrived_at: float = math.inf
    is_assembled: bool = False


class Intake:
    """Takes the content of requests and records their calls on a separate thread. It closes the log."""

    def __init__(
        self,
        recorder: CallRecorder,
        emitted: Emitted,
        log: RecordLog,
        outlet: Outlet,
        *,
        wait_seconds: float = WAIT_SECONDS,
        capacity_bytes: int = CAPACITY_BYTES,
        capacity_items: int = CAPACITY_ITEMS,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._recorder = recorder
        self._emitted = emitted
        self._request_log = log
        self._outlet = outlet
        self._capacity_bytes, self._capacity_items = capacity_bytes, capacity_items
        self._monotonic = monotonic
        self._assembly = CallAssembly(wait_seconds=wait_seconds, read_file=read_body_file)
        self._wait = wait_seconds
        self._boundary = ErrorBoundary(_log)
        self._lock = threading.Lock()  # guards the loads, the digests and the sums
        self._remains = _Load(0)
        """The load of what earlier processes did not record."""
        self._loads: deque[_Load] = deque([self._remains])
        """In the order of their numbers."""
        self._digests: OrderedDict[bytes, int] = OrderedDict()
        """The number of each of the latest requests, by what it holds."""
        self._writing = set[bytes]()
        """Requests that are being written to the log."""
        self._earlier = EarlierCalls()
        self._size = self._items = 0
        self._unrecorded = 0
        """Calls that are due and not recorded yet."""
        self._closed = False
        self._give_up_at = math.inf
        self._is_replayed = False
        self._arrived: deque[tuple[Telemetry, int, _Load]] = deque()
        self._poller = Poller("otlp-intake", self._record, settle=self._record_rest)
        self.recorded = 0
        """Calls and compactions recorded so far."""

    def start(self) -> None:
        """Start the thread, which first records what earlier processes did not."""
        for digest, number in earlier_digests(self._request_log):
            self._digests.setdefault(digest, number)
        self._poller.start()

    def put(self, request: PostRequest, decoded: DecodedRequest) -> bool:
        """Take a request, durably; returns False if the queue is full. Raises `OSError`."""
        telemetry = decoded.telemetry
        items = len(telemetry.spans) + len(telemetry.logs)
        if not items:
            return not self._closed
        with self._lock:
            if decoded.digest in self._digests:  # sent again after a lost response
                return True
            fits = not self._items or (
                self._size + decoded.size <= self._capacity_bytes and self._items + items <= self._capacity_items
            )
            if (
                decoded.digest in self._writing
                or self._closed
                or not fits
                or len(self._assembly) + self._unrecorded >= CAPACITY_CALLS
            ):
                return False
            load = _Load(self._request_log.next_number, decoded.size, items)
            self._loads.append(load)
            self._writing.add(decoded.digest)
            self._size, self._items = self._size + load.size, self._items + load.items
        try:
            number = append(self._request_log, request, decoded.digest, time.time())
        except BaseException:
            with self._lock:
                self._loads.remove(load)
                self._writing.discard(decoded.digest)
                self._size, self._items = self._size - load.size, self._items - load.items
            raise
        with self._lock:
            self._writing.discard(decoded.digest)
            self._digests[decoded.digest] = number
            while len(self._digests) > REMEMBERED_REQUESTS:
                self._digests.popitem(last=False)
            load.arrived_at = self._monotonic()
            self._arrived.append((telemetry, number, load))
        self._poller.wake()
        return True

    def close(self, timeout_seconds: float = CLOSE_SECONDS) -> bool:
        """Record what has arrived, and stop; returns False if some of it stays in the log for the next start."""
        self._give_up_at = self._monotonic() + timeout_seconds
        with self._lock:
            self._closed = True
        self._poller.close(timeout_seconds + 1.0)
        self._poller.join(1.0)
        return not self._poller.is_running and not self._loads

    def release(self, *, is_settled: bool) -> None:
        """Close the log; with *is_settled*, all events are stored and what was recorded is deleted from it."""
        if is_settled and not self._poller.is_running:
            self._request_log.release(self._needed())
        self._request_log.close()

    # -- run by the thread ------------------------------------------------------------------------------------

    def _assemble(self) -> None:
        while self._arrived:
            telemetry, number, load = self._arrived.popleft()
            self._add(telemetry, number, load.arrived_at)
            load.is_assembled = True

    def _record(self) -> float:
        """Record the calls whose time has come, and return the seconds until the next check."""
        self._replay_once()
        if not self._closed:
            with self._boundary.contain("receiving telemetry"):
                self._assemble()
                self._record_due(self._monotonic())
                self._release_stored()
        return TICK_SECONDS

    def _record_rest(self, _limit: TimeLimit, _is_last: bool) -> bool:  # noqa: FBT001
        self._replay_once()
        with self._boundary.contain("receiving telemetry"):
            self._assemble()
            self._record_due(self._monotonic(), everything=True)
            self._recorder.flush()
            self._outlet.put(self._emitted.take())
        return True

    def _replay_once(self) -> None:
        if not self._is_replayed:
            self._is_replayed = True
            with self._boundary.contain("recording what an earlier process received"):
                self._replay()

    def _replay(self) -> None:
        """Read the requests of earlier processes as they came, by the time that passed between them."""
        now, passed = self._monotonic(), -math.inf
        offset = now - time.time()
        while True:
            try:
                self._earlier.read(self._request_log, self._outlet.is_stored)
                break
            except Exception as error:  # noqa: BLE001  # a store that does not answer may do so later
                self._boundary.log_failure("reading what an earlier process has stored", error)
                if self._closed:
                    return
                time.sleep(RETRY_SECONDS)
        recorded_at = -math.inf
        for request in earlier_requests(self._request_log):
            if self._closed and self._monotonic() > self._give_up_at:
                return
            passed = max(passed, min(now, request.at + offset))
            if passed - recorded_at >= TICK_SECONDS:
                recorded_at = passed
                if not self._record_due(passed):
                    return
            if self._digests.get(request.decoded.digest, request.number) == request.number:
                self._add(request.decoded.telemetry, request.number, passed)
        with self._lock:
            self._remains.arrived_at, self._remains.is_assembled = passed, True

    def _add(self, telemetry: Telemetry, number: int, now: float) -> None:
        items: list[Span | LogRecord] = [*telemetry.spans, *telemetry.logs]
        for index, item in enumerate(items):
            with self._boundary.contain("reading telemetry"):  # one that cannot be read loses no other
                self._assembly.add(item, now, (number, index))

    def _record_due(self, now: float, *, everything: bool = False) -> bool:
        """Record the calls whose time has come; returns False if there is no time for all of them."""
        if self._monotonic() >= self._give_up_at:  # calls may have been due before, and stay in the log
            return False
        due = self._assembly.due(now, everything=everything)
        calls = [RecordedCall(void)] if (void := self._assembly.take_void()) else []
        for start in range(0, len(due), RECORDED_AT_ONCE):
            self._unrecorded = len(due) - start
            while self._outlet.is_full() and self._monotonic() < self._give_up_at:
                time.sleep(PAUSE_SECONDS)
            if self._monotonic() >= self._give_up_at:
                return False
            self._record_calls(due[start : start + RECORDED_AT_ONCE], calls)
            calls = []
        if calls:
            self._state(calls)
        self._unrecorded = 0
        with self._lock:
            while self._loads and self._loads[0].is_assembled:
                load = self._loads[0]
                if not everything and load.arrived_at > now - self._wait:
                    break
                self._loads.popleft()
                if load is self._remains:
                    self._earlier.clear()
                self._size, self._items = self._size - load.size, self._items - load.items
        return True

    def _record_calls(self, due: Sequence[Assembled], calls: list[RecordedCall]) -> None:
        """Record calls: their events are handed over when the log states which of them end the calls."""
        batches: list[list[Event]] = []
        for assembled in due:
            if self._earlier.contain(assembled.positions):
                continue
            with self._boundary.contain("recording a call"):
                self._recorder.record(assembled)
            events = self._emitted.take()
            calls.append(recorded_call(assembled.positions, events))
            if events:
                batches.append(events)
            self.recorded += 1
        self._state(calls)
        for events in batches:
            self._outlet.put(events)

    def _state(self, calls: list[RecordedCall]) -> None:
        """Write to the log what was recorded; without it, calls are stored all the same."""
        if calls:
            with self._boundary.contain("writing to the log of requests"):
                append_recorded(self._request_log, calls)

    def _needed(self) -> int:
        """Return the number of the first record of the log that is needed."""
        with self._lock:
            return self._loads[0].number if self._loads else self._request_log.next_number

    def _release_stored(self) -> None:
        """Delete from the log what is stored."""
        needed = self._needed()
        if self._request_log.can_release(needed) and self._outlet.is_settled():
            self._request_log.release(needed)
