"""The queue between agents and sinks: `put` never blocks, never raises and never waits for I/O.

Agents hand over lists of events; one worker evaluates the alerts and writes them to every sink.

A loss is never silent: it is counted, logged, reported to the sink as `telemetry.dropped`, and makes the next
`flush` return False.
"""

from __future__ import annotations

import atexit
import logging
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from windowpane.alerts.engine import AlertEngine
from windowpane.core.events import Event, EventContext
from windowpane.core.protocols import EventSink
from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.effects.forks import ForkLock, follow_forks
from windowpane.effects.worker import ProgressCounter, TimeLimit, Worker, run_within
from windowpane.metrics.internal import CountDrops
from windowpane.outputs.runtime.sink_runner import CHUNK_EVENTS, DropReport, Failure, SinkGroup

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


class _StoredProgress:
    """Counts events as finished when every sink has stored them."""

    def __init__(self, progress: ProgressCounter, unstored_events: Callable[[], int]) -> None:
        self._progress = progress
        self._unstored_events = unstored_events
        self.accept = progress.accept

    def finish(self, number: int) -> None:
        """State how many events left the queue."""
        self._progress.finish(max(0, number - self._unstored_events()))


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
        self._sinks = SinkGroup(sinks, failed=self._record_failure)
        self._engine = engine
        self._worker: Worker[list[Event]] = Worker(
            "pipeline",
            self._write,
            capacity=capacity_events,
            batch=CHUNK_EVENTS,
            linger_seconds=linger_seconds,
            urgent=min(capacity_events // 2, 2 * CHUNK_EVENTS),
            poll=self._retry,
            settle=self._settle_within,
        )
        self._writing = ForkLock()
        """Held while sinks are written to, and by a thread that forks."""
        self._written_events = 0
        """Number of events that the worker is writing now."""
        self._count_drops = count_drops
        self._boundary = ErrorBoundary(_log)
        self._listeners: dict[str, tuple[Listener, ...]] = {}
        self._closed = False
        self.writes_late_events = False
        """At the end of the process: events put after closing are written at once, on the caller's thread."""
        self._dropped = DropReport("queue_full")
        _pipelines.add(self)
        atexit.register(self.close)

    # -- called by agents -------------------------------------------------------------------------------------

    def put(self, batch: list[Event]) -> None:
        """Queue a list of events, which the caller must not change later; drop all of it if the queue is full."""
        try:
            size = len(batch)
            if self._closed and self.writes_late_events:
                self._write_late(batch)
                return
            if self._dropped and batch and self._worker.has_room(size):
                batch = [*self._dropped.take(batch[0].context.stream_id), *batch]
                self._worker.put(batch, weight=len(batch), required=True)
            elif not self._worker.put(batch, weight=size):
                self._drop(batch, size)
        except Exception as error:  # noqa: BLE001  # no exception may reach the agent
            self._boundary.log_failure("queueing events", error)

    @property
    def is_unused(self) -> bool:
        """True if nothing was put in this process."""
        return not self._worker.is_running and not self._worker.waiting

    @property
    def queued_events(self) -> int:
        """Approximate number of events that wait in the queue, or for a sink that takes none now."""
        return max(0, self._worker.waiting - self._written_events) + self._sinks.waiting_events

    @property
    def progress(self) -> ProgressCounter | None:
        """Counts the events that were put, and those that every sink has stored."""
        return self._worker.progress

    @progress.setter
    def progress(self, counter: ProgressCounter | None) -> None:
        self._worker.progress = (
            None if counter is None else _StoredProgress(counter, lambda: self._sinks.unstored_events)
        )

    def listen(self, event_type: str, listener: Listener) -> None:
        """Call *listener* on the worker with every event of a type, after the sinks; exceptions are contained."""
        self._listeners[event_type] = (*self._listeners.get(event_type, ()), listener)

    def flush(self, timeout_seconds: float = FLUSH_SECONDS) -> bool:
        """Return True if every event put so far is durably in every sink.

        False if some are not within *timeout_seconds*: they wait and are retried. Also False, once, after events
        were lost: dropped, refused by a sink, or stored in a file that was deleted.
        """
        return self._worker.flush(timeout_seconds)

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
        ended = self._worker.stop(writing.remaining)
        has_ended = ended.done.wait(writing.remaining + limit.share(SPOOL_SHARE) / 4)
        written = has_ended and ended.is_handled and ended.is_complete
        if has_ended:
            self._worker.join(limit.remaining)
        if not self._worker.is_running:
            self._write(self._worker.take_waiting())
            written = self._sinks.settle() and (written or not has_ended)
        self._worker.abandon()
        if not run_within(limit.remaining, self._spool_rest):
            _log.error("events are still being spooled; they are lost if the process ends now")
        return written

    def before_fork(self) -> None:
        """Wait for the write in progress, and start no other until the fork is done."""
        self._writing.before_fork()
        for runner in self._sinks:
            with self._boundary.contain(f"preparing sink {runner.name}"):
                runner.call("before_fork")

    def after_fork_in_parent(self) -> None:
        """Resume writing."""
        for runner in self._sinks:
            with self._boundary.contain(f"resuming sink {runner.name}"):
                runner.call("after_fork_in_parent")
        self._writing.after_fork_in_parent()

    def after_fork(self) -> None:
        """Start over in a forked child, where the sinks reopen what must not be shared."""
        self._writing.after_fork()
        self._written_events = 0
        self._dropped = DropReport("queue_full")
        if self._engine is not None:
            self._engine = AlertEngine(self._engine.rules, with_subjects=self._engine.with_subjects)
        for runner in self._sinks:
            with self._boundary.contain(f"reopening sink {runner.name}"):
                runner.after_fork()

    def _write_late(self, batch: list[Event]) -> None:
        if not self._writing.acquire(FLUSH_SECONDS):  # the worker hangs in a write
            self._drop(batch, len(batch))
            return
        try:
            self._deliver(batch)
            self._sinks.settle()
            self._spool_rest()
            for runner in self._sinks:
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
        self._worker.record_loss()
        if events and self._count_drops is not None:
            with self._boundary.contain("counting lost events"):
                self._count_drops(sink, reason, events)

    # -- run by the worker ------------------------------------------------------------------------------------

    def _write(self, batches: list[list[Event]]) -> None:
        if not batches:
            return
        events = [event for batch in batches for event in batch]
        with self._writing.lock:
            self._written_events = len(events)
            try:
                self._deliver(events)
            finally:
                self._written_events = 0

    def _retry(self) -> float | None:
        """Report drops, and write to the sinks whose pause is over; return the seconds to the next."""
        with self._writing.lock:
            if self._dropped:
                self._report_drops()
            seconds = self._sinks.retry()
        self._worker.record_progress()
        return seconds

    def _settle_within(self, limit: TimeLimit, is_last: bool) -> bool:  # noqa: FBT001
        """Have every sink take everything, waiting for one that is only locked; return False if one does not."""
        while True:
            with self._writing.lock:
                if self._dropped:
                    self._report_drops()
                settled = self._sinks.settle()
            if settled or not self._sinks.is_busy or not limit.remaining or (self._closed and not is_last):
                break
            time.sleep(BUSY_PAUSE_SECONDS)
        self._worker.record_progress()
        return settled

    def _record_failure(self, failure: Failure) -> None:
        self._boundary.log_failure(f"sink {failure.sink}", failure.error)
        if failure.means_loss:
            self._lose(failure.sink, "error", failure.lost)

    def _report_drops(self) -> None:
        """Report drops of streams that may never put again, in the order of their numbers."""
        reports = self._dropped.take_all()
        queued = [event for batch in self._worker.take_waiting() for event in batch]
        queued += reports
        queued.sort(key=lambda event: (event.context.stream_id, event.n))
        self._deliver(queued)
        self._boundary.warn("full", "the queue was full: events of %d streams were dropped", len(reports))

    def _deliver(self, events: list[Event]) -> None:
        events = self._prepared(events)
        self._sinks.write(events)
        if self._listeners:
            self._notify(events)

    def _prepared(self, events: list[Event]) -> list[Event]:
        """Return the events that sinks can use, with the alerts they cause."""
        admission = _admit(events)
        if admission.refused:
            self._boundary.warn("refused", "%d events were refused: %s", admission.refused, admission.problem)
            self._lose("queue", "invalid", admission.refused)
        alerts = [] if self._engine is None else self._engine.evaluate(admission.events, failed=self._log_alerts)
        return [*admission.events, *alerts]

    def _spool_rest(self) -> None:
        """Spool what the sinks have not taken, the queue included; count it as lost where that fails."""
        queued = self._prepared([event for batch in self._worker.take_waiting() for event in batch])
        for runner in self._sinks:
            rest = [*runner.take_waiting(), *queued]
            failure = runner.spool(rest) if rest else None
            if failure is not None:
                _log.error("%d events of %s are lost: %s", failure.lost, runner.name, failure.error)
                self._lose(runner.name, "error", failure.lost)

    def _log_alerts(self, error: Exception) -> None:
        self._boundary.log_failure("evaluating alerts", error)

    def _notify(self, events: Sequence[Event]) -> None:
        for event in events:
            for listener in self._listeners.get(event.data.type, ()):
                with self._boundary.contain(f"listener of {event.data.type}"):
                    listener(event)


# -- the check of events: a malformed envelope would break a sink for other sessions too -----------------------

_TEXTS: Final = ("session_id", "agent", "model", "source", "stream_id")
_OPTIONAL_TEXTS: Final = ("parent_session_id", "trace_id", "span_id")
_NUMBERS: Final = ("turn", "window_id")


class _Admission(NamedTuple):
    """Events that sinks can use, and the others."""

    events: list[Event]
    refused: int
    problem: str
    """Why the last of the others was refused; empty if there are none."""


def _admit(events: Iterable[object]) -> _Admission:
    """Separate the well-formed events from the others; the context is checked once per turn."""
    admitted: list[Event] = []
    refused, last_problem = 0, ""
    context: EventContext | None = None
    context_problem = ""
    for event in events:
        if not isinstance(event, Event):
            problem = f"a {type(event).__name__} is not an event"
        else:
            if event.context is not context:  # another turn
                context = event.context
                context_problem = _problem_of(context)
            problem = context_problem or _number_problem(event)
            if not problem:
                admitted.append(event)
                continue
        refused, last_problem = refused + 1, problem
    return _Admission(admitted, refused, last_problem)


def _problem_of(context: Any) -> str:
    if not isinstance(context, EventContext):
        return f"its context is a {type(context).__name__}"
    for name in _TEXTS:
        value = getattr(context, name)
        if not isinstance(value, str):
            return f"{name} must be text, it is a {type(value).__name__}"
    for name in _NUMBERS:
        value = getattr(context, name)
        if not isinstance(value, int):
            return f"{name} must be a whole number, it is a {type(value).__name__}"
    for name in _OPTIONAL_TEXTS:
        value = getattr(context, name)
        if not isinstance(value, str | None):
            return f"{name} must be text, it is a {type(value).__name__}"
    return "" if context.session_id and context.stream_id else "session_id and stream_id must not be empty"


def _number_problem(event: Any) -> str:
    if not isinstance(event.n, int):
        return f"its number is a {type(event.n).__name__}"
    if event.at is not None and not isinstance(event.at, int | float):
        return f"its time is a {type(event.at).__name__}"
    return ""


follow_forks(_pipelines)
