"""One event of each type, with a value for every field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from windowpane.core.events import PAYLOADS, Event, EventContext

NOT_WRITTEN = "text"
"""Field that holds content, which no event contains when it is encoded."""


def made_events() -> Iterator[Event]:
    """Yield an event of each type, in the order of their names."""
    context = filled(EventContext)
    for number, name in enumerate(sorted(PAYLOADS)):
        yield Event(context, number, 1_700_000_000.5, filled(PAYLOADS[name]))


def filled(cls: Any) -> Any:
    """Return an instance with a value for every field that is written."""
    hints = get_type_hints(cls)
    names = [field.name for field in fields(cls) if field.init and field.name != NOT_WRITTEN]
    return cls(**{name: value_of(hints[name], name) for name in names})


def value_of(hint: Any, name: str) -> Any:
    """Return a value of a type; a text is the name of its field."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return value_of(next(one for one in arguments if one is not type(None)), name)
    if origin is Literal:
        return arguments[0]
    if origin is tuple:
        items = [one for one in arguments if one is not Ellipsis]
        return tuple(value_of(one, name) for one in items)
    if origin in (dict, Mapping):
        return {value_of(arguments[0], name): value_of(arguments[1], name)}
    if is_dataclass(hint):
        return filled(hint)
    plain = {bool: True, int: 7, float: 0.5, str: name, Any: 1}
    return plain[hint]
