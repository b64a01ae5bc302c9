"""Writing to the sinks of the pipeline: events that wait for one, and the report of those it missed.

A sink that is `atomic` accepts a batch whole or not at all, so a batch that it rejects can be written again.
While it takes nothing (a full disk, a lock), batches wait and are retried with growing pauses. When it rejects a
batch because of its data, the batch is divided by session, then halved, until only the faulty events are dropped:
one bad event costs one event, one bad session never another.

A report explains a gap in a stream's numbering, which an audit would otherwise suspect to be a cut. It is written
with later events of the same stream or alone, never with those of other sessions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from windowpane.core.events import Event, EventContext, TelemetryDropped
from windowpane.core.protocols import EventSink, EventsSkippedError
from windowpane.exceptions import (
    EventsRefusedError,
    SessionRefusedError,
    StoreBusyError,
    StoreReplacedError,
)

MAXIMUM_STREAMS: Final = 10_000
MAXIMUM_GAPS: Final = 64
"""Gaps per stream; further ones widen the last."""
CHUNK_EVENTS: Final = 2_000
"""Events written at once."""
WAITING_EVENTS: Final = 100_000
"""Events that wait for one sink; further ones are dropped."""
SHORTEST_PAUSE_SECONDS: Final = 0.25
LONGEST_PAUSE_SECONDS: Final = 30.0
BUSY_SECONDS: Final = 10.0
"""Time for which a sink may be locked without a report: other processes write to it, too."""
BAD_DATA: Final = (ValueError, TypeError, OverflowError, LookupError, EventsRefusedError)
"""Errors of a sink about its events. After any other error it may accept the same events later."""


@dataclass(frozen=True, slots=True)
class _Gap:
    context: EventContext
    first_n: int
    last_n: int
    at: float | None


class DropReport:
    """Dropped events by stream, until they are reported as `telemetry.dropped`.

    Every read removes its entry in one step, so a producer and the worker never report the same gap twice; a
    stream's events are dropped by one thread at a time.
    """

    def __init__(self, reason: str) -> None:
        self._reason = reason
        self._gaps: dict[str, list[_Gap]] = {}

    def __len__(self) -> int:
        """Return the number of streams with an unreported gap."""
        return len(self._gaps)

    def add(self, events: Sequence[Event]) -> None:
        """Record that *events* were dropped."""
        for event in events:
            stream_id = event.context.stream_id
            gaps = self._gaps.pop(stream_id, [])
            if not gaps and len(self._gaps) >= MAXIMUM_STREAMS:
                continue
            data = event.data
            first_n = data.first_n if isinstance(data, TelemetryDropped) else event.n
            if gaps and (first_n == gaps[-1].last_n + 1 or len(gaps) >= MAXIMUM_GAPS):
                first_n = gaps.pop().first_n
            self._gaps[stream_id] = [*gaps, _Gap(event.context, first_n, event.n, event.at)]

    def take(self, stream_id: str) -> list[Event]:
        """Remove and return the events that report the gaps of one stream.

        Each has the number of the last event of its gap, which no other event has.
        """
        return [
            Event(gap.context, gap.last_n, gap.at, TelemetryDropped(gap.first_n, gap.last_n, self._reason))
            for gap in self._gaps.pop(stream_id, [])
        ]

    def take_all(self) -> list[Event]:
        """Remove and return the events that report every gap."""
        return [event for stream_id in list(self._gaps) for event in self.take(stream_id)]


class Failure(NamedTuple):
    """A sink that did not accept every event."""

    sink: str
    """Name of the sink."""
    error: Exception
    """The last of the errors."""
    lost: int
    """Events that it will never have; the others wait."""

    @property
    def means_loss(self) -> bool:
        """True if events are missing in the sink for good."""
        return self.lost > 0 or isinstance(self.error, StoreReplacedError)


class SinkRunner:
    """A sink with its name, the batches that wait for it, and the report of the events it missed."""

    def __init__(self, name: str, sink: EventSink) -> None:
        self.name = name
        self.sink = sink
        self._atomic = getattr(sink, "atomic", False)
        self._start_over()

    def _start_over(self) -> None:
        self._dropped = DropReport("sink_failed")
        self._batches: list[list[Event]] = []
        self._pause = 0.0
        self._retry_at = 0.0
        self._busy_since: float | None = None

    def after_fork(self) -> None:
        """Discard the parent's batches and report in a forked child, and let the sink start over."""
        self._start_over()
        self.call("after_fork")

    def call(self, hook: str) -> None:
        """Call the optional method *hook* of the sink: `flush`, or one about a fork. Raises what it raises."""
        method = getattr(self.sink, hook, None)
        if method is not None:
            method()

    @property
    def is_busy(self) -> bool:
        """True while the sink is only locked: an attempt in a moment may succeed."""
        return self._busy_since is not None

    @property
    def is_reportable(self) -> bool:
        """True unless the sink is only locked, and not for long."""
        return self._busy_since is None or time.monotonic() - self._busy_since >= BUSY_SECONDS

    @property
    def waiting_events(self) -> int:
        """Number of events that the sink has not accepted yet."""
        return sum(map(len, self._batches))

    @property
    def unstored_events(self) -> int:
        """Number of events that the sink has not stored yet."""
        return self.waiting_events + int(getattr(self.sink, "unsent_events", 0))

    @property
    def retry_seconds(self) -> float | None:
        """Seconds until the next attempt to write what waits; None if nothing does."""
        return max(0.0, self._retry_at - time.monotonic()) if self._batches else None

    def write(self, events: Sequence[Event]) -> Failure | None:
        """Write *events* after those that wait; return what failed."""
        for batch in self._with_reports(events):
            self._batches += [batch[start : start + CHUNK_EVENTS] for start in range(0, len(batch), CHUNK_EVENTS)]
        failure = self.retry()
        excess = self.waiting_events - WAITING_EVENTS
        if excess > 0:
            error = OverflowError(f"more than {WAITING_EVENTS:,} events wait for it")
            failure = self._joined(failure, error, self._remove_newest(excess))
        return failure

    def retry(self, *, at_once: bool = False) -> Failure | None:
        """Write what waits, if it is time or *at_once*; return what failed."""
        batches = self._batches  # closing may take what waits from a thread that hangs in a write
        if not batches or (not at_once and time.monotonic() < self._retry_at):
            return None
        failure: Failure | None = None
        was_replaced = False
        while batches:
            batch = batches[0]
            try:
                self.sink.write(batch)
            except EventsSkippedError as error:
                lost = self._drop(error.events)
                failure = self._joined(failure, error, lost)
            except Exception as error:  # noqa: BLE001  # a failure of one sink must not affect the others
                if isinstance(error, StoreReplacedError) and not was_replaced:
                    was_replaced = True
                    failure = self._joined(failure, error, 0)
                    continue
                if self._atomic and not isinstance(error, BAD_DATA):
                    self._postpone(error)
                    return self._joined(failure, error, 0)
                parts = _divided(batch, error) if self._atomic else []
                if parts:
                    batches[:1] = parts
                    continue
                lost = self._drop(batch, report=not isinstance(error, SessionRefusedError))
                failure = self._joined(failure, error, lost)
            del batches[0]
        self._pause, self._busy_since = 0.0, None
        return failure

    def flush(self) -> Failure | None:
        """Have the sink make durable what it accepted; return a failure."""
        try:
            self.call("flush")
        except EventsSkippedError as error:
            return Failure(self.name, error, self._drop(error.events))
        except Exception as error:  # noqa: BLE001  # a failure of one sink must not affect the others
            self._record_lock(error)
            return Failure(self.name, error, 0)
        self._busy_since = None
        return None

    def spool(self, events: list[Event]) -> Failure | None:
        """Have the sink spool *events* for the next process; return a failure with those that are lost."""
        spool = getattr(self.sink, "spool", None)
        if spool is None:
            return Failure(self.name, TimeoutError("it was closed before it took all events"), len(events))
        try:
            spooled = spool(events)
        except Exception as error:  # noqa: BLE001  # a failure of one sink must not affect the others
            return Failure(self.name, error, len(events))
        lost = len(events) - spooled
        return Failure(self.name, OverflowError("the spool is full"), lost) if lost else None

    def take_waiting(self) -> list[Event]:
        """Remove and return the events that wait, one that is being written now included."""
        batches, self._batches = self._batches, []
        return [event for batch in batches for event in batch]

    def _postpone(self, error: Exception) -> None:
        self._pause = min(max(2 * self._pause, SHORTEST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS)
        self._retry_at = time.monotonic() + self._pause
        self._record_lock(error)

    def _record_lock(self, error: Exception) -> None:
        """Record since when the sink is locked, if that is the *error* of the last attempt."""
        if not isinstance(error, StoreBusyError):
            self._busy_since = None
        elif self._busy_since is None:
            self._busy_since = time.monotonic()

    def _with_reports(self, events: Sequence[Event]) -> list[list[Event]]:
        """Return *events* with the reports of their streams before them, and the other reports by stream.

        A report gets context and time of a later event of its stream, if there is one.
        """
        if not self._dropped:
            return [list(events)] if events else []
        later = {event.context.stream_id: event for event in reversed(events)}
        joined: list[Event] = []
        alone: dict[str, list[Event]] = {}
        for report in self._dropped.take_all():
            event = later.get(report.context.stream_id)
            if event is None:
                alone.setdefault(report.context.stream_id, []).append(report)
            else:
                joined.append(report._replace(context=event.context, at=event.at))
        return [*alone.values(), *([[*joined, *events]] if events else [])]

    def _remove_newest(self, excess: int) -> int:
        lost = 0
        while excess > 0 and self._batches:
            batch = self._batches.pop()
            if len(batch) > excess:
                self._batches.append(batch[:-excess])
                batch = batch[-excess:]
            excess -= len(batch)
            lost += self._drop(batch)
        return lost

    def _drop(self, batch: Sequence[Event], *, report: bool = True) -> int:
        """Record that *batch* is lost, in a report unless that cannot be stored either; return the events."""
        if report:
            self._dropped.add([event for event in batch if not _is_report(event) or len(batch) > 1])
        return sum(not _is_report(event) for event in batch)

    def _joined(self, failure: Failure | None, error: Exception, lost: int) -> Failure:
        """Return one failure for two; an error that means loss is the one that is reported."""
        if failure is None:
            return Failure(self.name, error, lost)
        return Failure(self.name, failure.error if failure.means_loss else error, failure.lost + lost)


class SinkGroup:
    """The sinks of one pipeline, which take the same events in turn; none affects another.

    *failed* is called at once for each sink that did not accept every event, unless it is only
    locked for a moment.
    """

    def __init__(self, sinks: Mapping[str, EventSink], *, failed: Callable[[Failure], object]) -> None:
        self._runners = [SinkRunner(name, sink) for name, sink in sinks.items()]
        self._failed = failed

    def __iter__(self) -> Iterator[SinkRunner]:
        return iter(self._runners)

    @property
    def waiting_events(self) -> int:
        """The most events that wait for one of the sinks."""
        return max((runner.waiting_events for runner in self._runners), default=0)

    @property
    def unstored_events(self) -> int:
        """The most events that one of the sinks has not stored yet."""
        return max((runner.unstored_events for runner in self._runners), default=0)

    @property
    def is_busy(self) -> bool:
        """True while one of the sinks is only locked."""
        return any(runner.is_busy for runner in self._runners)

    def write(self, events: Sequence[Event]) -> None:
        """Write *events* to every sink, after those that wait for it."""
        for runner in self._runners:
            self._report(runner, runner.write(events))

    def retry(self) -> float | None:
        """Write to each sink what waits for it, if it is time; return the seconds to the next attempt, if any."""
        for runner in self._runners:
            self._report(runner, runner.retry())
        pauses = [runner.retry_seconds for runner in self._runners]
        return min((pause for pause in pauses if pause is not None), default=None)

    def settle(self) -> bool:
        """Write what waits for each sink, and have it flush; return False if one does not take everything."""
        settled = True
        for runner in self._runners:
            self._report(runner, runner.retry(at_once=True))
            failure = None if runner.waiting_events else runner.flush()
            self._report(runner, failure)
            settled = settled and failure is None and not runner.waiting_events
        return settled

    def _report(self, runner: SinkRunner, failure: Failure | None) -> None:
        if failure is not None and (failure.means_loss or runner.is_reportable):
            self._failed(failure)


def _divided(batch: list[Event], error: Exception) -> list[list[Event]]:
    """Return a rejected batch by session, or halved; empty if it is to be dropped."""
    sessions: dict[str, list[Event]] = {}
    for event in batch:
        sessions.setdefault(event.context.session_id, []).append(event)
    if len(sessions) > 1:
        return list(sessions.values())
    if len(batch) == 1 or isinstance(error, SessionRefusedError):
        return []
    middle = len(batch) // 2
    return [batch[:middle], batch[middle:]]


def _is_report(event: Event) -> bool:
    return isinstance(event.data, TelemetryDropped)
