"""JSON Lines as they are found on disk: one object a line, mostly.

Memory is bounded by the longest line, and that by a cap. Lines are decoded by msgspec; what it refuses gets a
second look with the standard library, so everything `json` accepts is accepted here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import msgspec

from windowpane.exceptions import SourceError
from windowpane.sources.base import MAXIMUM_RECORD_BYTES
from windowpane.sources.reading import Reading

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_SKIP_BYTES: Final = 2**20
HEAD_LINES: Final = 50
"""Lines of a file that its format is told by."""

_decode: Final = msgspec.json.Decoder().decode
_slow: Final = json.JSONDecoder()


class Row(NamedTuple):
    """One JSON object of a file, or the place where one was lost."""

    line: int
    value: dict[str, Any] | None
    """None where the line could not be used."""
    lost: str = ""
    """Why the line could not be used."""
    last: bool = False
    """The lost line has no end: the file was cut, or is still being written."""


def rows_of_head(head: bytes) -> list[dict[str, Any]]:
    """The objects on the first lines of a file, for telling its format; anything else is passed over."""
    lines = head.removeprefix(_BYTE_ORDER_MARK).split(b"\n")[:HEAD_LINES]
    found = []
    for line in lines:
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            value = _decode(line)
            if isinstance(value, dict):
                found.append(value)
    return found


def rows(path: Path, reading: Reading, *, limit_bytes: int = MAXIMUM_RECORD_BYTES) -> Iterator[Row]:
    """The objects of *path* in order; what is wrong goes to *reading*.

    Raises `SourceError` when the file cannot be opened.
    """
    try:
        file = path.open("rb")
    except OSError as error:
        raise SourceError(str(path), error.strerror or "cannot be opened") from error
    with file:
        yield from _rows(file, reading, limit_bytes)


def rows_in(lines: bytes, reading: Reading, *, after_line: int) -> Iterator[Row]:
    """The objects of whole *lines*, the first of which follows line number *after_line* of its file."""
    return _rows(BytesIO(lines), reading, MAXIMUM_RECORD_BYTES, after_line)


def _rows(file: BinaryIO, reading: Reading, limit_bytes: int, after_line: int = 0) -> Iterator[Row]:
    number = after_line
    readline = file.readline
    while True:
        try:
            raw = readline(limit_bytes + 1)
        except OSError as error:
            reading.bad_line(number + 1, f"cannot be read: {error.strerror}")
            yield Row(number + 1, None, "cannot be read")
            return
        if not raw:
            return
        number += 1
        if number == 1 and raw.startswith(_BYTE_ORDER_MARK):
            raw = raw[len(_BYTE_ORDER_MARK) :]
        if len(raw) > limit_bytes and not raw.endswith(b"\n"):
            del raw
            yield _too_long(file, reading, number, limit_bytes)
            continue
        try:
            value = _decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            yield from _second_look(raw, reading, number)
            continue
        if isinstance(value, dict):
            yield Row(number, value)
        else:
            reading.odd_line(number, "", f"expected a JSON object, got {_kind(value)}")


def _too_long(file: BinaryIO, reading: Reading, number: int, limit_bytes: int) -> Row:
    """Skip the rest of a line over the cap without keeping it."""
    while True:
        piece = file.readline(_SKIP_BYTES)
        if not piece or piece.endswith(b"\n"):
            break
    problem = f"line of more than {limit_bytes:,} bytes skipped"
    reading.bad_line(number, problem)
    return Row(number, None, problem)


def _second_look(raw: bytes, reading: Reading, number: int) -> Iterator[Row]:
    """Save what can be saved of a line that is not one plain JSON text."""
    stripped = raw.strip(b"\0 \t\r\n")
    if not stripped:
        if b"\0" in raw:
            reading.bad_line(number, "NUL bytes, no text")
        return
    remarks = []
    if b"\0" in stripped:
        reading.bad_line(number, "NUL bytes within the line: binary data, not text")
        yield Row(number, None, "binary data")
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
        reading.bad_line(number, "; ".join(remarks), used=not problem)
    for value in objects:
        if isinstance(value, dict):
            yield Row(number, value)
        else:
            reading.odd_line(number, "", f"expected a JSON object, got {_kind(value)}")
    if problem:
        yield Row(number, None, remarks[-1], last=not raw.endswith(b"\n"))


class _Objects(NamedTuple):
    values: list[Any]
    problem: str
    """Why the rest of the line could not be decoded; empty where all of it could."""


def _objects(line: str) -> _Objects:
    values: list[Any] = []
    start = 0
    while start < len(line):
        try:
            value, end = _slow.raw_decode(line, start)
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
    """Replace lone surrogates, which JSON can escape and no encoding can write."""
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
