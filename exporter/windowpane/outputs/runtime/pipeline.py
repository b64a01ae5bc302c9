"""The queue between agents and sinks: `put` never blocks, never raises and never waits for I/O.

Agents append lists of events to a deque; one daemon thread removes them, evaluates the alerts and writes them to
every sink. A producer never waits for a lock: deque operations are atomic, and the count of queued events may be
off for a moment but is corrected whenever the queue is empty. So `put` also works in a signal handler that
interrupted another `put`, and in a child process after a fork.

A loss is never silent: it is counted, logged, reported to the sink as `telemetry.dropped`, and makes the next
`flush` return False.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from queue import Empty, SimpleQueue
from typing import Final

from windowpane.alerts.engine import AlertEngine
from windowpane.core.events import Event
from windowpane.core.protocols import EventSink
from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.effects.forks import ForkLock, follow_forks
from windowpane.effects.time_limit import TimeLimit, run_within
from windowpane.effects.worker import ProgressCounter
from windowpane.metrics.internal import CountDrops
from windowpane.outputs.runtime.admission import admit
from windowpane.outputs.runtime.child_records import Progress
from windowpane.outputs.runtime.sink_runner import CHUNK_EVENTS, DropReport, Failure, SinkRunner

CAPACITY_EVENTS: Final = 100_000
LINGER_SECONDS: Final = 0.1
"""Time the worker waits for more events, so that it seldom competes with the agent."""
FLUSH_SECONDS: Final = 5.0
CLOSE_SECONDS: Final = 10.0
"""Longest time that closing takes; a third of what Kubernetes waits before it kills a process."""
SPOOL_SHARE: Final = 0.4
"""Share of the time to close that is reserved for spooling what could not be written."""
BUSY_PAUSE_SECONDS: Final = 0.05
"""Pause of a flush between two attempts to write to a locked sink."""

Listener = Callable[[Event], object]

_log = logging.getLogger("windowpane.outputs.runtime.pipeline")
_pipelines: weakref.WeakSet[Pipeline] = weakref.WeakSet()


class _FlushRequest:
    """A caller waits until everything put so far is written; with *stop* the worker ends afterwards."""

    def __init__(self, *, stop: bool, limit: TimeLimit, loss: object) -> None:
        self.stop = stop
        self.limit = limit
        self.loss = loss
        """The last loss that a flush has reported when the caller started to wait."""
        self.done = threading.Event()
        self.is_written = False


class Pipeline:
    """A bounded queue with one worker, shared by all agents of a process."""

    def __init__(
        self,
        sinks: Mapping[str, EventSink],
        *,
        engine: AlertEngine | None = None,
        capacity_events: int = CAPACITY_EVENTS,
        linger_seconds: float = LINGER_SECONDS,
        count_drops: CountDrops | None = None,
    ) -> None:
        self._runners = [SinkRunner(name, sink) for name, sink in sinks.items()]
        self._engine = engine
        self._capacity = capacity_events
        self._urgent_events = min(capacity_events // 2, 2 * CHUNK_EVENTS)
        self._linger = linger_seconds
        self._count_drops = count_drops
        self._boundary = ErrorBoundary(_log)
        self._listeners: dict[str, tuple[Listener, ...]] = {}
        self._closed = False
        self.writes_late_events = False
        """At the end of the process: events put after closing are written at once, on the caller's thread."""
        self._is_abandoned = False
        """True after closing has stopped waiting for a worker that hangs in a write."""
        self._reset()
        _pipelines.add(self)
        atexit.register(self.close)

    def _reset(self) -> None:
        """Start with an empty queue and no worker; a forked child never writes the parent's queue."""
        self._batches: deque[list[Event]] = deque()
        self._signals: SimpleQueue[_FlushRequest | None] = SimpleQueue()
        self._worker: threading.Thread | None = None
        self._starting = threading.Lock()
        """Prevents two workers."""
        self._writing = ForkLock()
        """Held by the worker while it writes, and by a thread that forks."""
        self._accepted = 0
        self._removed = 0
        self.progress: ProgressCounter = Progress()
        self._signaled = self._urgency_signaled = False
        self._dropped = DropReport("queue_full")
        self._loss = self._reported_loss = object()
        """The last loss, and the last one that a flush has reported; each loss is another object."""

    # -- called by agents -------------------------------------------------------------------------------------

    def put(self, batch: list[Event]) -> None:
        """Queue a list of events, which the caller must not change later; drop all of it if the queue is full."""
        try:
            size = len(batch)
            if self._closed and self.writes_late_events:
                self._write_late(batch)
                return
            waiting = self._accepted - self._removed
            if waiting + size > self._capacity or self._closed:
                self._drop(batch, size)
                return
            if self._dropped and batch:
                batch = [*self._dropped.take(batch[0].context.stream_id), *batch]
            self._batches.append(batch)
            self._accepted += len(batch)
            self.progress.accept(self._accepted)
            if not self._signaled:
                self._signaled = True
                self._wake()
            elif waiting > self._urgent_events and not self._urgency_signaled:
                self._urgency_signaled = True
                self._signals.put(None)
        except Exception as error:  # noqa: BLE001  # no exception may reach the agent
            self._boundary.log_failure("queueing events", error)

    @property
    def is_unused(self) -> bool:
        """True if nothing was put in this process."""
        return self._worker is None and not self._batches

    @property
    def queued_events(self) -> int:
        """Approximate number of events that wait in the queue, or for a sink that takes none now."""
        waiting = max((runner.waiting_events for runner in self._runners), default=0)
        return max(0, self._accepted - self._removed) + waiting

    def listen(self, event_type: str, listener: Listener) -> None:
        """Call *listener* on the worker with every event of a type, after the sinks; exceptions are contained."""
        self._listeners[event_type] = (*self._listeners.get(event_type, ()), listener)

    def flush(self, timeout_seconds: float = FLUSH_SECONDS) -> bool:
        """Return True if every event put so far is durably in every sink.

        False if some are not within *timeout_seconds*: they wait and are retried. Also False, once, after events
        were lost: dropped, refused by a sink, or stored in a file that was deleted.
        """
        limit = TimeLimit(timeout_seconds)
        return self._submit(_FlushRequest(stop=False, limit=limit, loss=self._reported_loss), timeout_seconds)

    def close(self, timeout_seconds: float = CLOSE_SECONDS) -> bool:
        """Write the queued events and stop; return False if a sink did not take all of them in time.

        What the store did not take is spooled. Events put afterwards are dropped, unless the process ends. The
        sinks stay open.
        """
        if self._closed:
            return True
        self._closed = True
        atexit.unregister(self.close)
        limit = TimeLimit(timeout_seconds)
        writing = TimeLimit((1 - SPOOL_SHARE) * timeout_seconds)
        request = _FlushRequest(stop=True, limit=writing, loss=self._reported_loss)
        written = self._submit(request, writing.remaining + limit.share(SPOOL_SHARE) / 4)
        worker = self._worker
        if worker is not None and request.done.is_set():
            worker.join(limit.remaining)
        if worker is None or not worker.is_alive():
            self._drain()
            written = self._settle() and (written or not request.done.is_set())
        self._is_abandoned = True
        if not run_within(limit.remaining, self._spool_rest):
            _log.error("events are still being spooled; they are lost if the process ends now")
        return written

    def before_fork(self) -> None:
        """Wait for the write in progress, and start no other until the fork is done."""
        self._writing.before_fork()
        for runner in self._runners:
            with self._boundary.contain(f"preparing sink {runner.name}"):
                runner.call("before_fork")

    def after_fork_in_parent(self) -> None:
        """Resume writing."""
        for runner in self._runners:
            with self._boundary.contain(f"resuming sink {runner.name}"):
                runner.call("after_fork_in_parent")
        self._writing.after_fork_in_parent()

    def after_fork(self) -> None:
        """Start over in a forked child, where the sinks reopen what must not be shared."""
        self._reset()
        if self._engine is not None:
            self._engine = AlertEngine(self._engine.rules)
        for runner in self._runners:
            with self._boundary.contain(f"reopening sink {runner.name}"):
                runner.after_fork()

    def _write_late(self, batch: list[Event]) -> None:
        if not self._writing.acquire(FLUSH_SECONDS):  # the worker hangs in a write
            self._drop(batch, len(batch))
            return
        try:
            self._deliver(batch)
            self._settle()
            self._spool_rest()
            for runner in self._runners:
                with self._boundary.contain(f"releasing sink {runner.name}"):
                    runner.call("release")
        finally:
            self._writing.release()

    def _drop(self, batch: list[Event], size: int) -> None:
        if not self._closed:
            self._dropped.add(batch)
        self._lose("queue", "closed" if self._closed else "full", size)

    def _lose(self, sink: str, reason: str, events: int) -> None:
        """Count lost events, and have the next flush report them."""
        self._loss = object()
        if events and self._count_drops is not None:
            with self._boundary.contain("counting lost events"):
                self._count_drops(sink, reason, events)

    def _wake(self, request: _FlushRequest | None = None) -> None:
        if self._worker is None or not self._worker.is_alive():
            self._start()
        self._signals.put(request)

    def _start(self) -> None:
        if not self._starting.acquire(blocking=False):
            return
        try:
            if self._worker is None or not self._worker.is_alive():
                self._worker = threading.Thread(target=self._run, name="windowpane-pipeline", daemon=True)
                self._worker.start()
        finally:
            self._starting.release()

    def _submit(self, request: _FlushRequest, timeout_seconds: float) -> bool:
        if threading.current_thread() is self._worker:
            return False
        try:
            self._wake(request)
        except RuntimeError as error:  # no thread can be started while the interpreter shuts down
            self._boundary.log_failure("starting the worker", error)
            return False
        return request.done.wait(timeout_seconds) and request.is_written

    # -- run by the worker ------------------------------------------------------------------------------------

    def _run(self) -> None:
        signals = self._signals
        try:
            while not self._is_abandoned:
                request = self._next_request(signals)
                self._signaled = self._urgency_signaled = False
                if request is None:
                    with self._writing:
                        self._drain()
                    self._record_progress()
                    continue
                self._complete(request)
                if request.stop:
                    return
        finally:
            self._signaled = False

    def _next_request(self, signals: SimpleQueue[_FlushRequest | None]) -> _FlushRequest | None:
        """Wait until events were put, a sink is to be tried again, or a flush is requested; return that."""
        pauses = [runner.retry_seconds for runner in self._runners]
        try:
            request = signals.get(timeout=min((pause for pause in pauses if pause is not None), default=None))
            return signals.get(timeout=self._linger) if request is None else request
        except Empty:
            return None

    def _complete(self, request: _FlushRequest) -> None:
        """Write everything, waiting for a sink that is only locked, and answer *request*."""
        while True:
            with self._writing:
                self._drain()
                settled = self._settle()
            is_busy = any(runner.is_busy for runner in self._runners)
            if settled or not is_busy or not request.limit.remaining or (self._closed and not request.stop):
                break
            time.sleep(BUSY_PAUSE_SECONDS)
        loss = self._loss
        request.is_written = settled and loss is request.loss
        self._reported_loss = loss
        self._record_progress()
        request.done.set()

    def _settle(self) -> bool:
        """Write what waits for a sink, and have each sink flush; return False if one does not take everything."""
        settled = True
        for runner in self._runners:
            self._handle(runner, runner.retry(at_once=True))
            failure = None if runner.waiting_events else runner.flush()
            self._handle(runner, failure)
            settled = settled and failure is None and not runner.waiting_events
        return settled

    def _handle(self, runner: SinkRunner, failure: Failure | None) -> None:
        if failure is None:
            return
        self._boundary.log_failure(f"sink {runner.name}", failure.error)
        if failure.means_loss:
            self._lose(runner.name, "error", failure.lost)

    def _drain(self) -> None:
        """Write the batches that are queued now; those put meanwhile send another signal."""
        remaining = len(self._batches)
        while remaining > 0:
            events: list[Event] = []
            while remaining > 0 and len(events) < CHUNK_EVENTS:
                remaining -= 1
                events += self._next_batch()
            self._deliver(events)
        if not self._batches:
            self._accepted = self._removed
        if self._dropped:
            self._report_drops()
        for runner in self._runners:
            self._handle(runner, runner.retry())

    def _record_progress(self) -> None:
        unstored = max((runner.unstored_events for runner in self._runners), default=0)
        self.progress.finish(max(0, self._removed - unstored))

    def _report_drops(self) -> None:
        """Report drops of streams that may never put again, in the order of their numbers."""
        reports = self._dropped.take_all()
        queued = [event for _ in range(len(self._batches)) for event in self._next_batch()]
        queued += reports
        queued.sort(key=lambda event: (event.context.stream_id, event.n))
        self._deliver(queued)
        self._boundary.warn("full", "the queue was full: events of %d streams were dropped", len(reports))

    def _next_batch(self) -> list[Event]:
        try:
            batch = self._batches.popleft()
        except IndexError:  # closing has taken the queue from a worker that hung
            return []
        self._removed += len(batch)
        return batch

    def _deliver(self, events: list[Event]) -> None:
        events = self._prepared(events)
        for runner in self._runners:
            self._handle(runner, runner.write(events))
        if self._listeners:
            self._notify(events)

    def _prepared(self, events: list[Event]) -> list[Event]:
        """Return the events that sinks can use, with the alerts they cause."""
        admission = admit(events)
        if admission.refused:
            self._boundary.warn("refused", "%d events were refused: %s", admission.refused, admission.problem)
            self._lose("queue", "invalid", admission.refused)
        alerts = [] if self._engine is None else self._evaluate(self._engine, admission.events)
        return [*admission.events, *alerts]

    def _spool_rest(self) -> None:
        """Spool what the sinks have not taken, the queue included; count it as lost where that fails."""
        queued = self._prepared([event for _ in range(len(self._batches)) for event in self._next_batch()])
        for runner in self._runners:
            rest = [*runner.take_waiting(), *queued]
            failure = runner.spool(rest) if rest else None
            if failure is not None:
                _log.error("%d events of %s are lost: %s", failure.lost, runner.name, failure.error)
                self._lose(runner.name, "error", failure.lost)

    def _evaluate(self, engine: AlertEngine, events: Sequence[Event]) -> list[Event]:
        alerts: list[Event] = []
        for event in events:
            try:
                alerts += engine.evaluate((event,))
            except Exception as error:  # noqa: BLE001  # a faulty event must not affect the others
                self._boundary.log_failure("evaluating alerts", error)
        return alerts

    def _notify(self, events: Sequence[Event]) -> None:
        for event in events:
            for listener in self._listeners.get(event.data.type, ()):
                with self._boundary.contain(f"listener of {event.data.type}"):
                    listener(event)


follow_forks(_pipelines)
