"""Spans and log records in plain form, whatever encoding they came in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from windowpane.core.fast_dataclass import FastDataclass

MAXIMUM_DEPTH: Final = 32
"""Levels of lists and maps in an attribute; what is deeper is read as None."""
NANOSECONDS: Final = 1_000_000_000
Attributes = Mapping[str, Any]
"""Attributes by name: texts, numbers, booleans, lists and dictionaries."""


class SpanEvent(NamedTuple):
    """An event on a span."""

    name: str
    attributes: Attributes


class Span(FastDataclass, frozen=True):
    """One ended span. Ids are hexadecimal; times are seconds since 1970."""

    trace_id: str
    span_id: str
    parent_id: str
    """Empty for the root of a trace."""
    name: str
    scope: str
    """The instrumentation that made it."""
    started_at: float
    ended_at: float
    attributes: Attributes
    resource: Attributes
    """Attributes of the process that sent it."""
    events: tuple[SpanEvent, ...] = ()
    error: str = ""
    """The message of a failed span, or `error`; empty for one that did not fail."""


class LogRecord(FastDataclass, frozen=True):
    """One log record, with the span it belongs to, if any."""

    name: str
    """The name of the event; empty for a plain log line."""
    at: float
    scope: str
    attributes: Attributes
    resource: Attributes
    body: Any = None
    trace_id: str = ""
    span_id: str = ""


def event_name(attributes: Attributes, field: object) -> str:
    """Return the name of an event: its attribute, which older SDKs write, else its *field*.

    Codex puts the line of its source into the field.
    """
    names = (attributes.get("event.name"), field)
    return next((name for name in names if isinstance(name, str) and name), "")


@dataclass(slots=True)
class Telemetry:
    """The content of one request."""

    spans: list[Span] = field(default_factory=list)
    logs: list[LogRecord] = field(default_factory=list)
    items: int = 0
    """Spans, log records or metric points in it."""
    rejected: int = 0
    """Of them, those that could not be read."""
    problem: str = ""
    """The reason for the first of those."""

    def reject(self, problem: str) -> None:
        """Count an item that cannot be read."""
        self.rejected += 1
        self.problem = self.problem or problem


class UnreadableBodyError(ValueError):
    """A request body is not of its content type; the message names the position and what was expected."""
