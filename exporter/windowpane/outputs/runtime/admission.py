"""The check of events before they reach a sink: a malformed envelope would break it for other sessions too."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from windowpane.core.events import Event, EventContext

_TEXTS: Final = ("session_id", "agent", "model", "source", "stream_id")
_OPTIONAL_TEXTS: Final = ("parent_session_id", "trace_id", "span_id")
_NUMBERS: Final = ("turn", "window_id")


class Admission(NamedTuple):
    """Events that sinks can use, and the others."""

    events: list[Event]
    refused: int
    problem: str
    """Why the last of the others was refused; empty if there are none."""


def admit(events: Iterable[object]) -> Admission:
    """Separate the well-formed events from the others; the context is checked once per turn."""
    admitted: list[Event] = []
    refused, last_problem = 0, ""
    context: EventContext | None = None
    context_problem = ""
    for event in events:
        if not isinstance(event, Event):
            problem = f"a {type(event).__name__} is not an event"
        else:
            if event.context is not context:  # another turn
                context = event.context
                context_problem = _problem_of(context)
            problem = context_problem or _number_problem(event)
            if not problem:
                admitted.append(event)
                continue
        refused, last_problem = refused + 1, problem
    return Admission(admitted, refused, last_problem)


def _problem_of(context: Any) -> str:
    if not isinstance(context, EventContext):
        return f"its context is a {type(context).__name__}"
    for name in _TEXTS:
        value = getattr(context, name)
        if not isinstance(value, str):
            return f"{name} must be text, it is a {type(value).__name__}"
    for name in _NUMBERS:
        value = getattr(context, name)
        if not isinstance(value, int):
            return f"{name} must be a whole number, it is a {type(value).__name__}"
    for name in _OPTIONAL_TEXTS:
        value = getattr(context, name)
        if not isinstance(value, str | None):
            return f"{name} must be text, it is a {type(value).__name__}"
    return "" if context.session_id and context.stream_id else "session_id and stream_id must not be empty"


def _number_problem(event: Any) -> str:
    if not isinstance(event.n, int):
        return f"its number is a {type(event.n).__name__}"
    if event.at is not None and not isinstance(event.at, int | float):
        return f"its time is a {type(event.at).__name__}"
    return ""
