"""Events of other programs, read within limits, so that one record harms neither the store nor its readers.

Both databases, their sums and dates hold every value within these limits. Every door that takes events from
elsewhere reads through `read_document` and `foreign_event`; the reason of a refusal names the field.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from windowpane.core.codec import Document, from_document
from windowpane.core.decoders import json_decoder
from windowpane.core.events import Event
from windowpane.core.redaction import LONGEST_NAME_BYTES
from windowpane.core.stored_payloads import stored_context, stored_payload
from windowpane.exceptions import EventFormatError

LARGEST_NUMBER: Final = 10**10
"""Sums over hundreds of millions of events stay below 64 bits; as seconds, a time in the year 2286."""
LARGEST_DOLLARS: Final = 10**4
LARGEST_POSITION: Final = 10**7
"""Turns, exchanges and windows of a session."""
LONGEST_TEXT: Final = 100_000
"""Characters of one text in an event; content is never part of one."""

_NAMES: Final = (
    "session_id", "stream_id", "agent", "model", "source", "parent_session_id", "trace_id", "span_id",
)  # fmt: skip
_REQUIRED_NAMES: Final = ("session_id", "stream_id")
_DATA_NAMES: Final = ("id", "alert", "channel", "label", "agent_version", "child_session_id", "same_as")
_POSITIONS: Final = ("turn", "window_id")
_DATA_POSITIONS: Final = (
    "turn", "exchange", "crossing_turn", "fired_turn", "turn_left", "from_window", "to_window",
)  # fmt: skip
_DOLLARS: Final = ("cost_dollars", "dollars")

_Scalar = (
    None
    | bool
    | Annotated[int, Meta(ge=-LARGEST_NUMBER, le=LARGEST_NUMBER)]
    | Annotated[float, Meta(ge=-float(LARGEST_NUMBER), le=float(LARGEST_NUMBER))]
    | Annotated[str, Meta(max_length=LONGEST_TEXT)]
)
_Flat = _Scalar | list[_Scalar] | dict[str, _Scalar]
_Nested = _Scalar | list[_Flat] | dict[str, _Flat]
_Deep = _Scalar | list[_Nested] | dict[str, _Nested]
_Deepest = _Scalar | list[_Deep] | dict[str, _Deep]
_LEVELS: Final = 5
"""Containers within each other in an event: the event, its data, the evicted blocks, a block, its terms."""
_bounded: Final = json_decoder(dict[str, _Deepest])
_unbounded: Final = json_decoder(dict[str, Any])


def read_document(line: bytes) -> Document:
    """Return the JSON object on a line. Raises `EventFormatError` if it is damaged or beyond the limits."""
    try:
        return _bounded.decode(line)
    except msgspec.ValidationError as error:
        raise EventFormatError(_explained(line) or f"not a JSON object: {error}") from error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise EventFormatError(f"not a JSON object: {error}") from error


def foreign_event(document: Document) -> Event:
    """Return the event of a document from `read_document`, its names without secrets.

    Raises `EventFormatError` that names the field.
    """
    event = from_document(document)
    if event.n < 0:
        raise EventFormatError(f"n: expected a whole number from 0, got {event.n!r}")
    if event.at is not None and event.at < 0:
        raise EventFormatError(f"at: expected seconds since the epoch, got {event.at!r}")
    for name in _NAMES:
        check_name(name, document.get(name), required=name in _REQUIRED_NAMES)
    for name in _POSITIONS:
        _check_position(name, document[name])
    data = document["data"]
    for name in data.keys() & _CHECKED_DATA:
        _CHECKED_DATA[name](f"data.{name}", data[name])
    return event._replace(context=stored_context(event.context), data=stored_payload(event.data))


def check_name(path: str, value: str | None, *, required: bool = True) -> None:
    """Raise `EventFormatError` about *path* unless *value* is a name that fits into an index."""
    if not value and not required:
        return
    if not value or "\0" in value:
        raise EventFormatError(f"{path}: expected a name, got {value!r:.80}")
    if len(value.encode()) > LONGEST_NAME_BYTES:
        raise EventFormatError(
            f"{path}: expected a name of at most {LONGEST_NAME_BYTES} bytes, got {value!r:.80}"
        )


def _check_position(path: str, value: Any) -> None:
    if value is not None and not 0 <= value <= LARGEST_POSITION:
        raise EventFormatError(f"{path}: expected a whole number from 0 to {LARGEST_POSITION:,}, got {value!r}")


def _check_dollars(path: str, value: Any) -> None:
    if value is not None and not 0 <= value <= LARGEST_DOLLARS:
        raise EventFormatError(f"{path}: expected dollars from 0 to {LARGEST_DOLLARS:,}, got {value!r}")


_CHECKED_DATA: Final[dict[str, Callable[[str, Any], None]]] = {
    **dict.fromkeys(_DATA_NAMES, partial(check_name, required=False)),
    **dict.fromkeys(_DATA_POSITIONS, _check_position),
    **dict.fromkeys(_DOLLARS, _check_dollars),
}


def _explained(line: bytes) -> str:
    """Return which value of a document is beyond the limits; empty where none is found."""
    try:
        document = _unbounded.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ""
    except RecursionError:
        return f"not an event: expected at most {_LEVELS} levels"
    return _first_problem(document, "", 1)


def _first_problem(value: object, path: str, level: int) -> str:
    if isinstance(value, dict | list) and level > _LEVELS:
        return f"{path}: expected at most {_LEVELS} levels"
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        return f"{path}: expected a text of at most {LONGEST_TEXT:,} characters, got {len(value):,}"
    if isinstance(value, int | float) and not abs(value) <= LARGEST_NUMBER:
        size = f"one of {value.bit_length()} bits" if isinstance(value, int) else repr(value)
        return f"{path}: expected a number of at most {LARGEST_NUMBER:,}, got {size}"
    if isinstance(value, dict):
        items = [(f"{path}.{key}" if path else key, item) for key, item in value.items()]
    elif isinstance(value, list):
        items = [(f"{path}[{index}]", item) for index, item in enumerate(value)]
    else:
        return ""
    return next(filter(None, (_first_problem(item, key, level + 1) for key, item in items)), "")
