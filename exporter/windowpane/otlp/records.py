"""Events as log records: a name, a severity, and figures; never content.

Numbers of a payload become attributes under its field's name. Of its words only those of our own vocabulary do,
so that no text of an agent, a tool or a model leaves this way. What belongs to the GenAI conventions has
their names; everything else is in the namespace `context_window`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

from windowpane.core.events import AlertFired, AlertResolved, BlockAdded, Event, EventContext, TurnEnded
from windowpane.core.window.blocks import Block

Value = str | int | float | bool

NAMESPACE: Final = "context_window"
TEXT_CHARACTERS: Final = 200
"""Longest text of an attribute; names and ids come from outside."""
TABLE_ITEMS: Final = 32
"""Most entries of a table in a payload; those we write have at most one for each component or zone."""

_WORDS: Final = frozenset({
    "action", "alert", "category", "cause", "channel", "component", "content_type", "count_source", "form",
    "from_zone", "limit_source", "match", "method", "outcome", "phase", "policy", "repair", "scope", "severity",
    "state", "strategy", "to_zone", "trigger", "where", "zone",
})  # fmt: skip
"""Fields whose text is a word of ours; recordings can bring others, so only what looks like one is taken."""

_WORD: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/-]{0,63}")

_QUIET: Final = frozenset({"block.added", "blocks.referenced", "turn.started"})
"""What happens many times a turn and says little alone."""
_LOUD: Final = frozenset(
    {"overflow.detected", "notification.failed", "telemetry.dropped", "breaker.opened", "checkpoint.rejected",
     "budget.blocked", "session.incomplete", "usage.rejected"}
)  # fmt: skip


class LogSeverity(NamedTuple):
    """A severity as OpenTelemetry's log data model has it."""

    number: int
    text: str


DEBUG: Final = LogSeverity(5, "DEBUG")
INFO: Final = LogSeverity(9, "INFO")
WARN: Final = LogSeverity(13, "WARN")
ERROR: Final = LogSeverity(17, "ERROR")
_OF_ALERTS: Final = {"info": INFO, "warning": WARN, "critical": ERROR}


def name_of(event: Event) -> str:
    """The event's name in OpenTelemetry, such as `context_window.zone.changed`."""
    return f"{NAMESPACE}.{event.data.type}"


def severity_of(event: Event) -> LogSeverity:
    """An alert's own severity; what went wrong is a warning, what happens all the time is for debugging."""
    data = event.data
    if isinstance(data, AlertFired):
        return _OF_ALERTS.get(data.severity, WARN)
    if data.type in _LOUD:
        return WARN
    return DEBUG if data.type in _QUIET else INFO


def body_of(event: Event) -> str:
    """A sentence for people where an alert comes with one, else the event's name; made of figures only."""
    data = event.data
    if isinstance(data, AlertFired) and data.summary:
        return data.summary[:TEXT_CHARACTERS]
    if isinstance(data, AlertResolved):
        return f"{data.alert} resolved"[:TEXT_CHARACTERS]
    return data.type


def attributes_of(event: Event) -> dict[str, Value]:
    """What the record says: whose event it is, then the figures of its payload."""
    data = event.data
    attributes = {**_identity(event.context), f"{NAMESPACE}.event.id": event.event_id}
    if isinstance(data, TurnEnded):
        attributes |= _usage(data)
    payload = data.block if isinstance(data, BlockAdded) else data
    for name, value in _figures(payload):
        attributes[f"{NAMESPACE}.{name}"] = value
    return attributes


@lru_cache(maxsize=256)
def _identity(context: EventContext) -> Mapping[str, Value]:
    """What all events of one turn share."""
    named: dict[str, Value] = {
        "gen_ai.conversation.id": plain(context.session_id),
        "gen_ai.agent.name": plain(context.agent),
        f"{NAMESPACE}.turn": context.turn,
        f"{NAMESPACE}.window.id": context.window_id,
        f"{NAMESPACE}.source": plain(context.source),
    }
    if context.model:
        named["gen_ai.request.model"] = plain(context.model)
    if context.parent_session_id:
        named[f"{NAMESPACE}.parent.conversation.id"] = plain(context.parent_session_id)
    return named


def plain(name: str) -> str:
    """A name from outside as an attribute: not long, and Unicode text even where half a surrogate pair came."""
    return name[:TEXT_CHARACTERS].encode("utf-8", "replace").decode()


def _usage(data: TurnEnded) -> dict[str, Value]:
    """The provider's report under the conventions' names; its input total includes what the cache served."""
    usage = data.usage
    if usage is None:
        return {}
    return {
        "gen_ai.usage.input_tokens": usage.input_total,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
    }


def _figures(payload: Any, prefix: str = "") -> Iterator[tuple[str, Value]]:
    for name in _names(type(payload)):
        value = getattr(payload, name)
        if isinstance(value, bool | int | float):
            if not isinstance(value, float) or not math.isnan(value):
                yield prefix + name, value
        elif isinstance(value, str):
            if name in _WORDS and _WORD.fullmatch(value):
                yield prefix + name, value
        elif isinstance(value, Mapping):
            yield from _table(prefix + name, value)
        elif isinstance(value, tuple):
            yield f"{prefix}{name}.count", len(value)
        elif is_dataclass(value) or isinstance(value, Block):
            yield from _figures(value, f"{prefix}{name}.")


def _table(name: str, table: Mapping[str, object]) -> Iterator[tuple[str, Value]]:
    for key, value in list(table.items())[:TABLE_ITEMS]:
        if isinstance(value, int | float) and _WORD.fullmatch(key):
            yield f"{name}.{key}", value


def _names(kind: type[Any]) -> tuple[str, ...]:
    """The payload's fields, without what says nothing to a reader of logs."""
    names = _known_names.get(kind)
    if names is None:
        names = tuple(field.name for field in fields(kind) if field.name not in ("exchange", "chars", "usage"))
        _known_names[kind] = names
    return names


_known_names: dict[type[Any], tuple[str, ...]] = {}
