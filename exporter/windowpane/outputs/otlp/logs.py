"""Events pushed as OTLP log records on a separate thread.

The pipeline's worker only puts events into a bounded queue; making records, encoding and sending happen here, in
batches, so a slow receiver holds up neither the store nor the metrics. Events that do not fit the queue, or that
the receiver rejects, are dropped and counted; the store still has them. Needs the `otel` extra.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExporter, LogRecordExportResult
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

from windowpane.core.events import Event, EventContext
from windowpane.core.protocols import Clock
from windowpane.core.version import PACKAGE, package_version
from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.effects.worker import Worker
from windowpane.outputs.otlp.conventions import OLD, Forms
from windowpane.outputs.otlp.records import event_attributes, event_body, event_name, event_severity

QUEUE_EVENTS: Final = 20_000
BATCH_EVENTS: Final = 500
"""Records per request; at about 1 KB each far below the limit of receivers."""
LINGER_SECONDS: Final = 1.0
"""Longest wait for more events before a batch is sent."""

CountUnsent = Callable[[str, int], None]
"""Reason (`full`, `error` or `closed`) and number of events that were not sent."""

MAXIMUM_SECONDS = 2.0**64 / 1e9 - 1
_log = logging.getLogger(__name__)


class EventLogs:
    """A sink that sends every event as a log record; a forked child creates another."""

    def __init__(
        self,
        exporter: LogRecordExporter,
        *,
        resource: Resource,
        count_drops: CountUnsent | None = None,
        forms: Forms = OLD,
        clock: Clock = time.time,
        queue_events: int = QUEUE_EVENTS,
        linger_seconds: float = LINGER_SECONDS,
    ) -> None:
        self._exporter = exporter
        self._resource = resource
        self._scope = InstrumentationScope(PACKAGE, package_version())
        self._forms = forms
        self._count_drops = count_drops
        self._clock = clock
        self._boundary = ErrorBoundary(_log)
        self._worker: Worker[Event] = Worker(
            "otlp-logs",
            lambda batch: self._send(self._records(batch)),
            capacity=queue_events,
            batch=BATCH_EVENTS,
            urgent=BATCH_EVENTS,
            linger_seconds=linger_seconds,
            on_drop=self._drop,
        )

    def write(self, batch: Sequence[Event]) -> None:
        """Queue a batch; never waits. Events that do not fit are dropped and counted."""
        for event in batch:
            self._worker.put(event)

    def close(self, timeout_seconds: float = 5.0) -> None:
        """Send pending events for at most *timeout_seconds*, then stop; the rest is counted as dropped."""
        self._worker.close(timeout_seconds)
        with self._boundary.contain("closing the exporter"):
            self._exporter.shutdown()  # type: ignore[no-untyped-call]  # ends a request in progress, too
        self._worker.join(1.0)

    def _drop(self, reason: str, events: int) -> None:
        self._boundary.warn(reason, "%d events were not sent as log records (%s)", events, reason)
        if self._count_drops is not None:
            self._count_drops(reason, events)

    def _send(self, records: list[ReadableLogRecord]) -> None:
        sent = False
        with self._boundary.contain("sending log records"):
            sent = self._exporter.export(records) is LogRecordExportResult.SUCCESS
        if not sent:
            self._drop("error", len(records))

    def _records(self, batch: Sequence[Event]) -> list[ReadableLogRecord]:
        records = []
        for event in batch:
            with self._boundary.contain("making a log record", failed=lambda: self._drop("error", 1)):
                records.append(ReadableLogRecord(self._record(event), self._resource, self._scope))
        return records

    def _record(self, event: Event) -> LogRecord:
        severity = event_severity(event)
        observed = _nanoseconds(self._clock())
        return LogRecord(
            timestamp=observed if event.at is None else _nanoseconds(event.at),
            observed_timestamp=observed,
            context=_span_of(event.context),
            severity_text=severity.text,
            severity_number=SeverityNumber(severity.number),
            body=event_body(event),
            attributes=event_attributes(event, forms=self._forms),
            event_name=event_name(event),
        )


def _nanoseconds(at: float) -> int:
    """Return a time in the 64 bits that OTLP has for it, which end in the year 2554."""
    return int(max(0.0, min(at, MAXIMUM_SECONDS)) * 1e9)


def logs_exporter(
    url: str | None = None, *, headers: Mapping[str, str] | None = None, timeout_seconds: float = 10.0
) -> LogRecordExporter:
    """Return an exporter over OTLP/HTTP; *url* is the whole URL, by default from `OTEL_EXPORTER_OTLP_*`."""
    return OTLPLogExporter(
        endpoint=url, headers=dict(headers) if headers is not None else None, timeout=timeout_seconds
    )


_NO_SPAN: Final = set_span_in_context(NonRecordingSpan(SpanContext(0, 0, is_remote=False)), Context())
"""A context without a span; with no context the record would take the span of the sending thread."""


def _span_of(context: EventContext) -> Context:
    """Return a context with the span of a turn, from which the SDK reads it."""
    if not context.trace_id or not context.span_id:
        return _NO_SPAN
    try:
        trace, span = int(context.trace_id, 16), int(context.span_id, 16)
    except ValueError:  # a recording may have other kinds of ids
        return _NO_SPAN
    identity = SpanContext(trace, span, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    return set_span_in_context(NonRecordingSpan(identity), Context())
