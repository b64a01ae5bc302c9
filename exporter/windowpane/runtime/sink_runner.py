"""Writing to one sink of the pipeline, and the report of the events it missed.

A report explains a gap in a stream's numbering, which an audit would otherwise suspect to be a cut. A sink that
is `atomic` accepts a batch whole or not at all: when it rejects a batch because of its data, the batch is halved
until only the faulty events are dropped, so one bad event costs one event.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from windowpane.core.events import Event, EventContext, TelemetryDropped
from windowpane.core.protocols import EventSink

MAXIMUM_STREAMS: Final = 10_000
MAXIMUM_GAPS: Final = 64
"""Gaps per stream; further ones widen the last."""
BAD_DATA: Final = (ValueError, TypeError, OverflowError, LookupError)
"""Errors of a sink about an event. After any other error halving the batch would not help."""


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
    """Events that a sink did not accept."""

    error: Exception
    """The last of the errors."""
    events: int


class SinkRunner:
    """A sink with its name and the report of the events it missed."""

    def __init__(self, name: str, sink: EventSink) -> None:
        self.name = name
        self.sink = sink
        self._dropped = DropReport("sink_failed")

    def after_fork(self) -> None:
        """Discard the parent's report in a forked child, and let the sink start over."""
        self._dropped = DropReport("sink_failed")
        self.call("after_fork")

    def call(self, hook: str) -> None:
        """Call the optional method *hook* of the sink: `flush`, or one about a fork. Raises what it raises."""
        method = getattr(self.sink, hook, None)
        if method is not None:
            method()

    def write(self, events: Sequence[Event]) -> Failure | None:
        """Write *events*, preceded by a report of those that failed before; returns what failed now."""
        batch = [*self._reports(events), *events] if self._dropped else events
        return self._attempt(batch, divisible=getattr(self.sink, "atomic", False))

    def _reports(self, events: Sequence[Event]) -> list[Event]:
        """Return the reports, with context and time of a later event of the same stream if there is one."""
        later = {event.context.stream_id: event for event in reversed(events)}
        reports = []
        for report in self._dropped.take_all():
            event = later.get(report.context.stream_id, report)
            reports.append(report._replace(context=event.context, at=event.at))
        return reports

    def _attempt(self, batch: Sequence[Event], *, divisible: bool) -> Failure | None:
        try:
            self.sink.write(batch)
        except BAD_DATA as error:
            if not divisible:
                return self._drop(batch, error)
            if len(batch) == 1:
                return self._drop([event for event in batch if not _is_report(event)], error)
        except Exception as error:  # noqa: BLE001  # a failure of one sink must not affect the others
            return self._drop(batch, error)
        else:
            return None
        middle = len(batch) // 2
        halves = [self._attempt(part, divisible=True) for part in (batch[:middle], batch[middle:])]
        failures = [failure for failure in halves if failure is not None]
        return Failure(failures[-1].error, sum(failure.events for failure in failures)) if failures else None

    def _drop(self, batch: Sequence[Event], error: Exception) -> Failure:
        self._dropped.add(batch)
        return Failure(error, sum(not _is_report(event) for event in batch))


def _is_report(event: Event) -> bool:
    return isinstance(event.data, TelemetryDropped)
