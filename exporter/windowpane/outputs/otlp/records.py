"""Events as log records: a name, a severity and numbers, never content.

The numbers of a payload become attributes under the names of their fields. Text becomes an attribute only if it
is a word of our vocabulary, so no text of an agent, a tool or a model is sent. Attributes that the GenAI
conventions define have their names; all others are in the namespace `context_window`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple

from windowpane.core.events import AlertFired, AlertResolved, BlockAdded, Event, EventContext, TurnEnded
from windowpane.core.window.blocks import Block
from windowpane.outputs.otlp.conventions import OLD, Forms

Value = str | int | float | bool

NAMESPACE: Final = "context_window"
TEXT_CHARACTERS: Final = 200
"""Longest text of an attribute; names and ids come from outside."""
TABLE_ITEMS: Final = 32
"""Most entries of a table in a payload; our tables have at most one for each component or zone."""

_ENUMERATED_FIELDS: Final = frozenset({
    "action", "alert", "category", "cause", "channel", "component", "content_type", "count_source", "form",
    "from_zone", "limit_source", "match", "method", "outcome", "phase", "policy", "repair", "scope", "severity",
    "state", "strategy", "to_zone", "trigger", "where", "zone",
})  # fmt: skip
"""Fields with a word of our vocabulary. Recordings may contain others, so the text must also match `_WORD`."""

_WORD: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/-]{0,63}")

_DEBUG_TYPES: Final = frozenset(
    {"block.added", "blocks.referenced", "reply.discarded", "static_content.removed", "turn.started"}
)
"""Types of events that occur many times per turn."""
_WARN_TYPES: Final = frozenset(
    {"overflow.detected", "notification.failed", "telemetry.dropped", "breaker.opened", "checkpoint.rejected",
     "budget.blocked", "session.incomplete", "usage.rejected"}
)  # fmt: skip


class LogSeverity(NamedTuple):
    """A severity of OpenTelemetry's log data model."""

    number: int
    text: str


DEBUG: Final = LogSeverity(5, "DEBUG")
INFO: Final = LogSeverity(9, "INFO")
WARN: Final = LogSeverity(13, "WARN")
ERROR: Final = LogSeverity(17, "ERROR")
_ALERT_SEVERITIES: Final = {"info": INFO, "warning": WARN, "critical": ERROR}


def event_name(event: Event) -> str:
    """Return the event's name in OpenTelemetry, such as `context_window.zone.changed`."""
    return f"{NAMESPACE}.{event.data.type}"


def event_severity(event: Event) -> LogSeverity:
    """Return an alert's severity; WARN for failures, DEBUG for frequent events, INFO for the rest."""
    data = event.data
    if isinstance(data, AlertFired):
        return _ALERT_SEVERITIES.get(data.severity, WARN)
    if data.type in _WARN_TYPES:
        return WARN
    return DEBUG if data.type in _DEBUG_TYPES else INFO


def event_body(event: Event) -> str:
    """Return the summary of an alert, which contains numbers but no content; else the event's type."""
    data = event.data
    if isinstance(data, AlertFired) and data.summary:
        return data.summary[:TEXT_CHARACTERS]
    if isinstance(data, AlertResolved):
        return f"{data.alert} resolved"[:TEXT_CHARACTERS]
    return data.type


def event_attributes(event: Event, *, forms: Forms = OLD) -> dict[str, Value]:
    """Return the identity of the session and the numbers of the payload, usage in the *forms* of its names."""
    data = event.data
    attributes = {**_identity(event.context), f"{NAMESPACE}.event.id": event.event_id}
    if isinstance(data, TurnEnded):
        attributes |= _usage(data, forms)
    payload = data.block if isinstance(data, BlockAdded) else data
    for name, value in _numbers(payload):
        attributes[f"{NAMESPACE}.{name}"] = value
    return attributes


@lru_cache(maxsize=256)
def _identity(context: EventContext) -> Mapping[str, Value]:
    """Return the attributes that all events of one turn share."""
    attributes: dict[str, Value] = {
        "gen_ai.conversation.id": attribute_text(context.session_id),
        "gen_ai.agent.name": attribute_text(context.agent),
        f"{NAMESPACE}.turn": context.turn,
        f"{NAMESPACE}.window.id": context.window_id,
        f"{NAMESPACE}.source": attribute_text(context.source),
    }
    if context.model:
        attributes["gen_ai.request.model"] = attribute_text(context.model)
    if context.parent_session_id:
        attributes[f"{NAMESPACE}.parent.conversation.id"] = attribute_text(context.parent_session_id)
    return attributes


def attribute_text(name: str) -> str:
    """Return a name from outside as an attribute: shortened, and valid Unicode even with lone surrogates."""
    return name[:TEXT_CHARACTERS].encode("utf-8", "replace").decode()


def _usage(data: TurnEnded, forms: Forms) -> dict[str, Value]:
    """Return the provider's usage under the conventions' names; the input total includes cached input."""
    usage = data.usage
    if usage is None:
        return {}
    return {
        "gen_ai.usage.input_tokens": usage.input_total,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
        **dict.fromkeys(forms.cache_write, usage.cache_write_tokens),
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
    }


def _numbers(payload: Any, prefix: str = "") -> Iterator[tuple[str, Value]]:
    for name in _field_names(type(payload)):  # type: ignore[arg-type]  # a type is hashable
        value = getattr(payload, name)
        if isinstance(value, bool | int | float):
            if not isinstance(value, float) or not math.isnan(value):
                yield prefix + name, value
        elif isinstance(value, str):
            if name in _ENUMERATED_FIELDS and _WORD.fullmatch(value):
                yield prefix + name, value
        elif isinstance(value, Mapping):
            yield from _table_numbers(prefix + name, value)
        elif isinstance(value, tuple):
            yield f"{prefix}{name}.count", len(value)
        elif is_dataclass(value) or isinstance(value, Block):
            yield from _numbers(value, f"{prefix}{name}.")


def _table_numbers(name: str, table: Mapping[str, object]) -> Iterator[tuple[str, Value]]:
    for key, value in list(table.items())[:TABLE_ITEMS]:
        if isinstance(value, int | float) and _WORD.fullmatch(key):
            yield f"{name}.{key}", value


@cache
def _field_names(kind: type[Any]) -> tuple[str, ...]:
    """Return the fields of a payload, without those that do not help a reader of logs."""
    return tuple(field.name for field in fields(kind) if field.name not in ("exchange", "chars", "usage"))
