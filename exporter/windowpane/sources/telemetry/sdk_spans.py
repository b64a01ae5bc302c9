"""Spans as the SDKs of JavaScript and Python hold them, which tools dump, and as Phoenix returns them.

Python's console exporter and Phoenix write the same fields, with times as text; Phoenix's ids have no prefix.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from windowpane.sources.telemetry.json_bodies import MAXIMUM_INTEGER, events_of, identifier, mapping_of
from windowpane.sources.telemetry.records import NANOSECONDS, Span, SpanEvent, Telemetry

_JAVASCRIPT_ERROR: Final = 2


def sdk_spans_of(items: list[Any]) -> Telemetry:
    """Return the spans of a dump."""
    telemetry = Telemetry()
    for item in items:
        telemetry.items += 1
        holder = item if isinstance(item, dict) else {}
        span = _python_span(holder) if "context" in holder else _javascript_span(holder)
        if span is None:
            telemetry.reject("a span needs its context (or spanContext), start and end")
        else:
            telemetry.spans.append(span)
    return telemetry


def _javascript_span(item: dict[str, Any]) -> Span | None:
    context, parent = mapping_of(item, "spanContext"), mapping_of(item, "parentSpanContext")
    trace_id, span_id = identifier(context, "traceId", 32), identifier(context, "spanId", 16)
    started, ended = _pair_seconds(item.get("startTime")), _pair_seconds(item.get("endTime"))
    if not trace_id or not span_id or started is None or ended is None:
        return None
    status = mapping_of(item, "status")
    failed = status.get("code") == _JAVASCRIPT_ERROR
    scope = mapping_of(item, "instrumentationScope") or mapping_of(item, "instrumentationLibrary")
    return Span(
        trace_id,
        span_id,
        identifier(item, "parentSpanId", 16) or identifier(parent, "spanId", 16),
        _text(item.get("name")),
        _text(scope.get("name")),
        started,
        ended,
        mapping_of(item, "attributes"),
        mapping_of(mapping_of(item, "resource"), "attributes"),
        _events(item),
        (str(status.get("message") or "") or "error") if failed else "",
    )


def _python_span(item: dict[str, Any]) -> Span | None:
    context, status = mapping_of(item, "context"), mapping_of(item, "status")
    trace_id, span_id = _plain_id(context.get("trace_id")), _plain_id(context.get("span_id"))
    started, ended = _seconds(item.get("start_time")), _seconds(item.get("end_time"))
    if not trace_id or not span_id or started is None or ended is None:
        return None
    code = status.get("status_code", item.get("status_code"))
    message = status.get("description", item.get("status_message"))
    return Span(
        trace_id,
        span_id,
        _plain_id(item.get("parent_id")),
        _text(item.get("name")),
        "",
        started,
        ended,
        mapping_of(item, "attributes"),
        mapping_of(mapping_of(item, "resource"), "attributes"),
        _events(item),
        (_text(message) or "error") if code == "ERROR" else "",
    )


def _events(item: dict[str, Any]) -> tuple[SpanEvent, ...]:
    return tuple(
        SpanEvent(str(event.get("name") or ""), mapping_of(event, "attributes")) for event in events_of(item)
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _plain_id(value: Any) -> str:
    return _text(value).removeprefix("0x")


def _seconds(value: Any) -> float | None:
    """Return a time of ISO 8601, which is UTC where it names no zone."""
    try:
        moment = datetime.fromisoformat(_text(value))
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def _pair_seconds(value: Any) -> float | None:
    """Return a time of seconds and nanoseconds."""
    if not isinstance(value, list) or len(value) != 2 or not all(isinstance(part, int) for part in value):
        return None
    seconds, nanoseconds = value
    if not 0 <= seconds < MAXIMUM_INTEGER / NANOSECONDS or not 0 <= nanoseconds < NANOSECONDS:
        return None
    return float(seconds + nanoseconds / NANOSECONDS)
