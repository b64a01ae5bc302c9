"""Payloads and contexts of events as they may be stored: without secrets, their names within bounds.

Every door to a store uses this: the emitters of this process, and the border that foreign events pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final, TypeVar

from windowpane.core.events import PAYLOADS, BlocksReferenced, Event, EventContext
from windowpane.core.redaction import bounded_name, stored_id, stored_name

_IDS: Final = frozenset({"id", "group", "digest", "replaces", "handle", "by", "same_as"})
_NAMES: Final = frozenset({"alert", "channel", "label", "agent_version", "agent", "model", "source"})
_NO_NAMES: Final = frozenset({"text"})
"""The text of a block is never part of a stored event."""
_CONTEXT_FIELDS: Final = tuple(
    field.name for field in fields(EventContext) if field.name not in ("turn", "window_id")
)
_TEXTS: Final = re.compile(r"str\b|tuple\[|dict\[str|.*\b(?:Block|TrendReport)\b")
"""Types of fields that hold any text; the ones of a payload's classes are names or the types themselves."""
_T = TypeVar("_T")


def _named_fields(cls: type) -> tuple[str, ...]:
    """Return the fields of *cls* that hold any text, also within other values: reasons, names and ids."""
    return tuple(
        field.name
        for field in fields(cls)
        if field.name not in _NO_NAMES and _TEXTS.match("str" if field.type is str else str(field.type))
    )


_FIELDS: Final[dict[type, tuple[str, ...]]] = {cls: _named_fields(cls) for cls in PAYLOADS.values()}
"""The fields of payloads, and of values within them, that hold any text."""
MADE_BY_TRACKER: Final = frozenset({BlocksReferenced, *(cls for cls, names in _FIELDS.items() if not names)})
"""The payloads of a tracker in which all text is its own: none, or ids that it gave to blocks."""


def stored_payload(payload: _T) -> _T:
    """Return *payload* as it may be stored; the same object if nothing in it has to change."""
    names = _FIELDS.get(type(payload))
    if names is None:
        names = _FIELDS[type(payload)] = _named_fields(type(payload))
    changed = {}
    for name in names:
        value = getattr(payload, name)
        if value and (clean := _stored(name, value)) != value:
            changed[name] = clean
    return replace(payload, **changed) if changed else payload  # type: ignore[type-var]  # a data class


def stored_events(events: list[Event], unchecked: Iterable[int]) -> list[Event]:
    """Return *events* as they may be stored, of which those at the positions *unchecked* may have to change."""
    for position in unchecked:
        event = events[position]
        payload = stored_payload(event.data)
        if payload is not event.data:
            events[position] = event._replace(data=payload)
    return events


def stored_context(context: EventContext) -> EventContext:
    """Return *context* as it may be stored; the same object if nothing in it has to change."""
    changed: dict[str, Any] = {}
    for name in _CONTEXT_FIELDS:
        value = getattr(context, name)
        if value and (clean := stored_text(name, value)) != value:
            changed[name] = clean
    return replace(context, **changed) if changed else context


def stored_text(name: str, value: str) -> str:
    """Return the *value* of the field *name* as it may be stored."""
    if name in _IDS or name.endswith("_id"):
        return stored_id(value)
    clean = stored_name(value)
    return bounded_name(clean) if name in _NAMES else clean


def _stored(name: str, value: Any) -> Any:
    if isinstance(value, str):
        return stored_text(name, value)
    if isinstance(value, tuple):
        items = tuple(stored_id(item) if isinstance(item, str) else _stored(name, item) for item in value)
        return value if items == value else items
    if isinstance(value, dict):
        keys = {stored_name(key): item for key, item in value.items()}
        return value if keys.keys() == value.keys() else keys
    return stored_payload(value) if is_dataclass(value) else value
