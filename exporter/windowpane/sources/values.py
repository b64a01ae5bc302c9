"""Values of a recording taken for what they should be: in a bad file every shape is possible."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import Any, Final

MAXIMUM_TOKENS: Final = 2**40
"""A larger count is a broken record, not a window."""

EARLIEST: Final = 0.0
LATEST: Final = 32_503_680_000.0
"""The year 3000: a later time is a broken record."""

_NOTHING: Final[dict[str, Any]] = {}
_encoder: Final = json.JSONEncoder(ensure_ascii=False)


def mapping(value: object) -> dict[str, Any]:
    """*value* where it is an object, else an empty one (not to be written to)."""
    return value if isinstance(value, dict) else _NOTHING


def sequence(value: object) -> list[Any]:
    """*value* where it is an array, else an empty one."""
    return value if isinstance(value, list) else []


def text(value: object) -> str:
    """*value* where it is a string, else the empty one."""
    return value if isinstance(value, str) else ""


def texts(value: object) -> tuple[str, ...]:
    """The non-empty strings of an array."""
    return tuple(item for item in sequence(value) if isinstance(item, str) and item)


def count(value: object) -> int:
    """*value* where it is a possible number of tokens, else 0."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAXIMUM_TOKENS:
        return value
    return 0


def dollars(value: object) -> float | None:
    """*value* where it is a possible amount of money, else None."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9:
        return float(value)
    return None


def instant(value: object) -> float | None:
    """Seconds since the epoch of an ISO 8601 time (UTC where it names no zone), else None."""
    if not isinstance(value, str) or not value:
        return None
    try:
        moment = datetime.fromisoformat(value)
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
    return seconds if EARLIEST <= seconds <= LATEST else None


def milliseconds(value: object) -> float | None:
    """Seconds since the epoch of a number of milliseconds, else None."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        return None
    seconds = value / 1000
    return seconds if EARLIEST <= seconds <= LATEST else None


def as_json(value: object) -> str:
    """*value* as JSON text, as Python writes it by default but for non-ASCII characters, which stay."""
    try:
        return _encoder.encode(value)
    except RecursionError:
        return "{}"
