"""Request bodies in the protobuf encoding of OTLP, read with the library `opentelemetry-proto`."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, Final

from windowpane.sources.telemetry.records import (
    MAXIMUM_DEPTH,
    NANOSECONDS,
    LogRecord,
    Span,
    SpanEvent,
    Telemetry,
    UnreadableBodyError,
    event_name,
)

_ERROR: Final = 2
"""The status code of a failed span."""


def read_traces(body: bytes) -> Telemetry:
    """Return the spans of a request. Raises `UnreadableBodyError`."""
    request = _parsed("traces", body)
    telemetry = Telemetry()
    for resource_spans in request.resource_spans:
        resource = attributes_of(resource_spans.resource.attributes)
        for scope_spans in resource_spans.scope_spans:
            scope = scope_spans.scope.name
            for span in scope_spans.spans:
                telemetry.items += 1
                if len(span.trace_id) != 16 or len(span.span_id) != 8:
                    telemetry.reject("a span needs a trace id of 16 bytes and a span id of 8")
                    continue
                telemetry.spans.append(_span(span, scope, resource))
    return telemetry


def read_logs(body: bytes) -> Telemetry:
    """Return the log records of a request. Raises `UnreadableBodyError`."""
    request = _parsed("logs", body)
    telemetry = Telemetry()
    for resource_logs in request.resource_logs:
        resource = attributes_of(resource_logs.resource.attributes)
        for scope_logs in resource_logs.scope_logs:
            scope = scope_logs.scope.name
            for record in scope_logs.log_records:
                telemetry.items += 1
                attributes = attributes_of(record.attributes)
                telemetry.logs.append(
                    LogRecord(
                        event_name(attributes, record.event_name),
                        (record.time_unix_nano or record.observed_time_unix_nano) / NANOSECONDS,
                        scope,
                        attributes,
                        resource,
                        _value(record.body, 0),
                        record.trace_id.hex(),
                        record.span_id.hex(),
                    )
                )
    return telemetry


def read_metrics(body: bytes) -> Telemetry:
    """Check the metrics of a request, which are not read further. Raises `UnreadableBodyError`."""
    request = _parsed("metrics", body)
    metrics = (
        metric
        for resource_metrics in request.resource_metrics
        for scope_metrics in resource_metrics.scope_metrics
        for metric in scope_metrics.metrics
    )
    return Telemetry(items=sum(1 for _ in metrics))


def attributes_of(pairs: Iterable[Any], depth: int = 0) -> dict[str, Any]:
    """Return repeated key-value messages as a dictionary."""
    attributes = {}
    for pair in pairs:
        value = pair.value
        attributes[pair.key] = value.string_value or _value(value, depth)  # most are texts, read at once
    return attributes


def _span(span: Any, scope: str, resource: dict[str, Any]) -> Span:
    failed = span.status.code == _ERROR
    return Span(
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        span.name,
        scope,
        span.start_time_unix_nano / NANOSECONDS,
        span.end_time_unix_nano / NANOSECONDS,
        attributes_of(span.attributes),
        resource,
        tuple(SpanEvent(event.name, attributes_of(event.attributes)) for event in span.events)
        if span.events
        else (),
        (span.status.message or "error") if failed else "",
    )


def _value(value: Any, depth: int) -> Any:
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    content = getattr(value, kind)
    if kind == "array_value":
        return None if depth >= MAXIMUM_DEPTH else [_value(item, depth + 1) for item in content.values]
    if kind == "kvlist_value":
        return None if depth >= MAXIMUM_DEPTH else attributes_of(content.values, depth + 1)
    return content


def _parsed(signal: str, body: bytes) -> Any:
    from google.protobuf.message import DecodeError

    request = _types()[signal]()
    try:
        request.ParseFromString(body)
    except (DecodeError, RecursionError) as error:
        name = type(request).__name__
        raise UnreadableBodyError(f"the body is not a protobuf {name}: {error}") from error
    return request


@cache
def _types() -> dict[str, Any]:
    """Return the request of each signal; the library is loaded when the first request comes."""
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    return {
        "traces": ExportTraceServiceRequest,
        "logs": ExportLogsServiceRequest,
        "metrics": ExportMetricsServiceRequest,
    }
