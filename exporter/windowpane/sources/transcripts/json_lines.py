"""JSON Lines as found on disk, mostly one object per line, and defensive reading of their values.

Memory is bounded by the longest line, and that by a cap. Lines are decoded by msgspec; what it refuses gets a
second look with the standard library, so everything `json` accepts is accepted here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import msgspec

from windowpane.core.limits import MAXIMUM_TOKENS
from windowpane.exceptions import SourceError
from windowpane.sources.transcripts import compressed
from windowpane.sources.transcripts.reader import MAXIMUM_RECORD_BYTES, ProblemLog

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_SKIP_BYTES: Final = 2**20
HEAD_LINES: Final = 50
"""Lines of a file that are read to recognize its format."""

_decode: Final = msgspec.json.Decoder().decode
MAXIMUM_DIGITS: Final = 400


def bounded_integer(digits: str) -> int | float:
    """Return an integer of JSON text; one of more than 400 digits, which no field can mean, becomes infinite.

    Python refuses the whole text where a number has more than 4,300.
    """
    if len(digits) <= MAXIMUM_DIGITS:
        return int(digits)
    return -math.inf if digits.startswith("-") else math.inf


_lenient: Final = json.JSONDecoder(parse_int=bounded_integer)

EARLIEST: Final = 0.0
LATEST: Final = 32_503_680_000.0
"""The year 3000: a later time is a broken record."""

_NOTHING: Final[dict[str, Any]] = {}
_encoder: Final = json.JSONEncoder(ensure_ascii=False)


class JsonRow(NamedTuple):
    """One JSON object of a file, or a line that was lost."""

    line: int
    value: dict[str, Any] | None
    """None where the line was lost."""
    lost: str = ""
    """The reason why the line was lost."""
    last: bool = False
    """The lost line has no end: the file was cut, or is still being written."""


@lru_cache(maxsize=1)  # every reader looks at the same lines
def head_rows(head: bytes) -> tuple[dict[str, Any], ...]:
    """Return the objects on the first lines of a file, to recognize its format; other lines are skipped."""
    lines = head.removeprefix(_BYTE_ORDER_MARK).split(b"\n")[:HEAD_LINES]
    objects = []
    for line in lines:
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            value = _decode(line)
            if isinstance(value, dict):
                objects.append(value)
    return tuple(objects)


def is_lines(path: Path) -> bool:
    """Return whether a file holds JSON Lines: by its name, or because its first line of several is one object."""
    if path.name.lower().endswith((".jsonl", ".ndjson", compressed.SUFFIX)):
        return True
    try:
        with path.open("rb") as file:
            first = file.readline(_SKIP_BYTES)
            return bool(head_rows(first)) and bool(file.readline(_SKIP_BYTES).strip())
    except OSError:
        return False


def read_rows(path: Path, log: ProblemLog, *, limit_bytes: int = MAXIMUM_RECORD_BYTES) -> Iterator[JsonRow]:
    """Yield the objects of *path* in order; defects are reported to *log*.

    Raises `SourceError` when the file cannot be opened.
    """
    try:
        file = compressed.open_recording(path)
    except OSError as error:
        raise SourceError(str(path), error.strerror or "cannot be opened") from error
    with file:
        yield from _rows(file, log, limit_bytes)


def parse_rows(lines: bytes, log: ProblemLog, *, after_line: int) -> Iterator[JsonRow]:
    """Yield the objects of whole *lines*, the first of which follows line number *after_line* of its file."""
    return _rows(BytesIO(lines), log, MAXIMUM_RECORD_BYTES, after_line)


def _rows(file: BinaryIO, log: ProblemLog, limit_bytes: int, after_line: int = 0) -> Iterator[JsonRow]:
    number = after_line
    readline = file.readline
    while True:
        try:
            raw = readline(limit_bytes + 1)
        except compressed.reading_errors() as error:
            log.bad_line(number + 1, f"cannot be read: {getattr(error, 'strerror', None) or 'damaged'}")
            yield JsonRow(number + 1, None, "cannot be read")
            return
        if not raw:
            return
        number += 1
        if number == 1 and raw.startswith(_BYTE_ORDER_MARK):
            raw = raw[len(_BYTE_ORDER_MARK) :]
        if len(raw) > limit_bytes and not raw.endswith(b"\n"):
            del raw
            yield _too_long(file, log, number, limit_bytes)
            continue
        try:
            value = _decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            yield from _recover(raw, log, number)
            continue
        if isinstance(value, dict):
            yield JsonRow(number, value)
        else:
            log.odd_line(number, "", f"expected a JSON object, got {_kind(value)}")


def _too_long(file: BinaryIO, log: ProblemLog, number: int, limit_bytes: int) -> JsonRow:
    """Skip the rest of a line over the cap without storing it."""
    while True:
        piece = file.readline(_SKIP_BYTES)
        if not piece or piece.endswith(b"\n"):
            break
    problem = f"line of more than {limit_bytes:,} bytes skipped"
    log.bad_line(number, problem)
    return JsonRow(number, None, problem)


def _recover(raw: bytes, log: ProblemLog, number: int) -> Iterator[JsonRow]:
    """Recover the objects of a line that is not one plain JSON text."""
    stripped = raw.strip(b"\0 \t\r\n")
    if not stripped:
        if b"\0" in raw:
            log.bad_line(number, "NUL bytes, no text")
        return
    remarks = []
    if b"\0" in stripped:
        log.bad_line(number, "NUL bytes within the line: binary data, not text")
        yield JsonRow(number, None, "binary data")
        return
    if len(stripped) < len(raw.strip()):
        remarks.append("NUL bytes around the record dropped")
    try:
        line = stripped.decode()
    except UnicodeDecodeError as error:
        line = stripped.decode(errors="replace")
        remarks.append(f"invalid UTF-8 replaced (byte {error.start})")
    objects, problem = _objects(line)
    if problem:
        whole = raw.endswith(b"\n")
        remarks.append(problem if whole else f"cut off in the middle: {problem}")
    elif len(objects) > 1:
        remarks.append(f"{len(objects)} JSON values on one line, split")
    if remarks:
        log.bad_line(number, "; ".join(remarks), used=not problem)
    for value in objects:
        if isinstance(value, dict):
            yield JsonRow(number, value)
        else:
            log.odd_line(number, "", f"expected a JSON object, got {_kind(value)}")
    if problem:
        yield JsonRow(number, None, remarks[-1], last=not raw.endswith(b"\n"))


class _Objects(NamedTuple):
    values: list[Any]
    problem: str
    """The reason why the rest of the line could not be decoded; empty where all of it could."""


def _objects(line: str) -> _Objects:
    values: list[Any] = []
    start = 0
    while start < len(line):
        try:
            value, end = _lenient.raw_decode(line, start)
            value = _clean(value)
        except (ValueError, RecursionError) as error:
            return _Objects(values, _reason(error))
        values.append(value)
        start = end
        while start < len(line) and line[start] in " \t\r\n":
            start += 1
    return _Objects(values, "")


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"not JSON: {error.msg} at character {error.pos + 1}"
    if isinstance(error, RecursionError):
        return "not JSON: nested too deeply"
    return f"not JSON: {error}"


def _clean(value: Any) -> Any:
    """Replace lone surrogates, which are valid in JSON but cannot be encoded."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return value.encode(errors="replace").decode()
        return value
    if isinstance(value, dict):
        return {_clean(key): _clean(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return value


def _kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, str):
        return "a string"
    return "an array" if isinstance(value, list) else "a number"


def mapping(value: object) -> dict[str, Any]:
    """Return *value* where it is an object, else an empty one (not to be modified)."""
    return value if isinstance(value, dict) else _NOTHING


def sequence(value: object) -> list[Any]:
    """Return *value* where it is an array, else an empty one."""
    return value if isinstance(value, list) else []


def text(value: object) -> str:
    """Return *value* where it is a string, else the empty one."""
    return value if isinstance(value, str) else ""


def texts(value: object) -> tuple[str, ...]:
    """Return the non-empty strings of an array."""
    return tuple(item for item in sequence(value) if isinstance(item, str) and item)


def count(value: object) -> int:
    """Return *value* where it is a possible number of tokens, else 0."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAXIMUM_TOKENS:
        return value
    return 0


def dollars(value: object) -> float | None:
    """Return *value* where it is a possible amount of money, else None."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9:
        return float(value)
    return None


def instant(value: object) -> float | None:
    """Return the seconds since the epoch of an ISO 8601 time (UTC where it names no zone), else None."""
    if not isinstance(value, str) or not value:
        return None
    try:
        moment = datetime.fromisoformat(value)
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
    return seconds if EARLIEST <= seconds <= LATEST else None


def milliseconds(value: object) -> float | None:
    """Return the seconds since the epoch of a number of milliseconds, else None."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not EARLIEST <= value <= LATEST * 1000:
        return None
    return value / 1000


def duration_seconds(value: object) -> float | None:
    """Return the seconds of a duration in milliseconds; None where it is absent, 0 or impossible."""
    duration = count(value)
    return duration / 1000 if duration else None


def as_json(value: object) -> str:
    """Return *value* as JSON in Python's default form, except that non-ASCII characters are not escaped."""
    try:
        return _encoder.encode(value)
    except RecursionError:
        return "{}"
