"""Request bodies in the JSON encoding of OTLP, and the dumps that tools write in it.

The specification writes ids in hexadecimal and 64-bit integers as text. Dumps made with protobuf's own JSON have
base64 ids, names of enumeration values and integers as numbers: these are read too.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Iterator
from typing import Any, Final

import msgspec

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

MAXIMUM_INTEGER: Final = 2**64
_HEX: Final = frozenset("0123456789abcdefABCDEF")
_KINDS: Final = ("stringValue", "intValue", "doubleValue", "boolValue", "arrayValue", "kvlistValue", "bytesValue")
_KINDS_BY_NAME: Final = {
    **{kind: kind for kind in _KINDS},
    **{f"{kind.removesuffix('Value')}_value": kind for kind in _KINDS},
}
"""The kinds of values by their names, which dumps may write with underscores."""


def read_traces(body: bytes) -> Telemetry:
    """Return the spans of a request. Raises `UnreadableBodyError`."""
    return traces_of(_document(body))


def read_logs(body: bytes) -> Telemetry:
    """Return the log records of a request. Raises `UnreadableBodyError`."""
    return logs_of(_document(body))


def read_metrics(body: bytes) -> Telemetry:
    """Check the metrics of a request, which are not read further. Raises `UnreadableBodyError`."""
    telemetry = Telemetry()
    for resource in _objects(_document(body), "resourceMetrics", "resource_metrics"):
        for scope in _objects(resource, "scopeMetrics", "scope_metrics"):
            telemetry.items += sum(1 for _ in _objects(scope, "metrics"))
    return telemetry


def traces_of(document: dict[str, Any]) -> Telemetry:
    """Return the spans of a decoded request."""
    telemetry = Telemetry()
    for resource_spans in _objects(document, "resourceSpans", "resource_spans"):
        resource = attributes_of(_field(mapping_of(resource_spans, "resource"), "attributes"))
        for scope_spans in _objects(resource_spans, "scopeSpans", "scope_spans", "instrumentationLibrarySpans"):
            scope = _scope(scope_spans)
            for item in _items(scope_spans, "spans"):
                telemetry.items += 1
                span = _span(item, scope, resource) if isinstance(item, dict) else None
                if span is None:
                    telemetry.reject("a span needs traceId, spanId, startTimeUnixNano and endTimeUnixNano")
                else:
                    telemetry.spans.append(span)
    return telemetry


def logs_of(document: dict[str, Any]) -> Telemetry:
    """Return the log records of a decoded request."""
    telemetry = Telemetry()
    for resource_logs in _objects(document, "resourceLogs", "resource_logs"):
        resource = attributes_of(_field(mapping_of(resource_logs, "resource"), "attributes"))
        for scope_logs in _objects(resource_logs, "scopeLogs", "scope_logs", "instrumentationLibraryLogs"):
            scope = _scope(scope_logs)
            for item in _items(scope_logs, "logRecords", "log_records"):
                telemetry.items += 1
                if isinstance(item, dict):
                    telemetry.logs.append(_log_record(item, scope, resource))
                else:
                    telemetry.reject(f"a log record must be an object, got {type(item).__name__}")
    return telemetry


def attributes_of(pairs: Any, depth: int = 0) -> dict[str, Any]:
    """Return a list of key-value objects as a dictionary; also accepts a plain object."""
    if isinstance(pairs, dict):
        return pairs
    if not isinstance(pairs, list):
        return {}
    return {
        pair["key"]: _value(pair.get("value"), depth)
        for pair in pairs
        if isinstance(pair, dict) and isinstance(pair.get("key"), str)
    }


def _document(body: bytes) -> dict[str, Any]:
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise UnreadableBodyError(f"the body is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise UnreadableBodyError(f"expected a JSON object, got {type(document).__name__}")
    return document


def _span(item: dict[str, Any], scope: str, resource: dict[str, Any]) -> Span | None:
    trace_id, span_id = identifier(item, "traceId", 32), identifier(item, "spanId", 16)
    started, ended = _seconds(item, "startTimeUnixNano"), _seconds(item, "endTimeUnixNano")
    if not trace_id or not span_id or started is None or ended is None:
        return None
    status = mapping_of(item, "status")
    failed = _field(status, "code") in (2, "STATUS_CODE_ERROR")
    name = _field(item, "name")
    return Span(
        trace_id,
        span_id,
        identifier(item, "parentSpanId", 16),
        name if isinstance(name, str) else "",
        scope,
        started,
        ended,
        attributes_of(_field(item, "attributes")),
        resource,
        tuple(
            SpanEvent(str(event.get("name") or ""), attributes_of(event.get("attributes")))
            for event in events_of(item)
        ),
        (str(_field(status, "message") or "") or "error") if failed else "",
    )


def _log_record(item: dict[str, Any], scope: str, resource: dict[str, Any]) -> LogRecord:
    attributes = attributes_of(_field(item, "attributes"))
    at = _seconds(item, "timeUnixNano") or _seconds(item, "observedTimeUnixNano") or 0.0
    return LogRecord(
        event_name(attributes, _field(item, "eventName", "event_name")),
        at,
        scope,
        attributes,
        resource,
        _value(item.get("body"), 0),
        identifier(item, "traceId", 32),
        identifier(item, "spanId", 16),
    )


def events_of(item: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the events on a span."""
    events = item.get("events")
    return [event for event in events if isinstance(event, dict)] if isinstance(events, list) else []


def _value(value: Any, depth: int) -> Any:
    """Return an `AnyValue`; a value that is not wrapped is taken as it is."""
    if not isinstance(value, dict):
        return value
    name = next((name for name in value if name in _KINDS_BY_NAME), None)
    if name is None or depth >= MAXIMUM_DEPTH:
        return None
    kind, content = _KINDS_BY_NAME[name], value[name]
    if kind == "arrayValue":
        items = _field(content, "values") if isinstance(content, dict) else content
        return [_value(item, depth + 1) for item in items] if isinstance(items, list) else []
    if kind == "kvlistValue":
        return attributes_of(_field(content, "values") if isinstance(content, dict) else content, depth + 1)
    return _integer(content) if kind == "intValue" else content


def _integer(content: Any) -> int | None:
    if isinstance(content, str) and len(content) <= 20:
        try:
            content = int(content)
        except ValueError:
            return None
    return content if isinstance(content, int) and abs(content) < MAXIMUM_INTEGER else None


def _seconds(item: dict[str, Any], name: str) -> float | None:
    value = _field(item, name, _snake(name))
    nanoseconds = _integer(int(value) if isinstance(value, float) and math.isfinite(value) else value)
    return None if nanoseconds is None or nanoseconds < 0 else nanoseconds / NANOSECONDS


def identifier(item: dict[str, Any], name: str, digits: int) -> str:
    """Return an id in hexadecimal, which dumps may write in base64; empty where it is neither."""
    value = _field(item, name, _snake(name))
    if not isinstance(value, str) or not value:
        return ""
    if len(value) == digits and _HEX.issuperset(value):
        return value.lower()
    try:
        decoded = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return ""
    return decoded.hex() if len(decoded) * 2 == digits else ""


def _scope(holder: dict[str, Any]) -> str:
    scope = mapping_of(holder, "scope") or mapping_of(holder, "instrumentationLibrary")
    name = scope.get("name")
    return name if isinstance(name, str) else ""


def _objects(holder: dict[str, Any], *names: str) -> Iterator[dict[str, Any]]:
    for number, item in enumerate(_items(holder, *names)):
        if not isinstance(item, dict):
            raise UnreadableBodyError(f"{names[0]}[{number}]: expected an object, got {type(item).__name__}")
        yield item


def _items(holder: dict[str, Any], *names: str) -> list[Any]:
    """Return a list field, empty where it is absent. Raises `UnreadableBodyError` for anything else."""
    items = _field(holder, *names)
    if items is not None and not isinstance(items, list):
        raise UnreadableBodyError(f"{names[0]}: expected a list, got {type(items).__name__}")
    return items or []


def mapping_of(holder: dict[str, Any], name: str) -> dict[str, Any]:
    """Return an object field; an empty one where it is absent or of another kind."""
    value = holder.get(name)
    return value if isinstance(value, dict) else {}


def _field(holder: dict[str, Any], *names: str) -> Any:
    return next((holder[name] for name in names if name in holder), None)


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
