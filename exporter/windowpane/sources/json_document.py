"""Recordings that are one JSON document: loading them whole, telling them apart, and reading their fields.

Nothing a document holds is trusted: an object is wrapped as a `JsonObject`, which knows its path in the document,
and a field of the wrong type is reported as a `Problem` and read as absent. Problems name types and paths, never
values: what an agent said is private.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, NoReturn

from windowpane.exceptions import SourceError
from windowpane.sources.reader import MAXIMUM_DOCUMENT_BYTES, FileStats, Problem

MAXIMUM_PROBLEMS: Final = 200
"""Reported for one document; the rest is counted in the statistics only."""
MAXIMUM_COUNT: Final = 2**53
"""Larger integers are no token count."""
MAXIMUM_NAME_CHARS: Final = 200
MAXIMUM_KEY_CHARS: Final = 150
_LATEST_SECONDS: Final = 4_102_444_800.0
"""The year 2100: a larger time is in another unit."""

_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class DocumentLog:
    """What is wrong with one document, collected for its reader's caller."""

    def __init__(self, path: Path, stats: FileStats, problems: list[Problem]) -> None:
        self.file = str(path)
        self._stats = stats
        self._problems = problems
        self._listed = 0

    def bad(self, field: str, problem: str) -> None:
        """Something was skipped."""
        self._stats.bad_lines += 1
        self._note(Problem(self.file, None, field, problem))

    def odd(self, field: str, problem: str, *, line: int | None = None) -> None:
        """Something was unusual and understood all the same."""
        self._stats.odd_lines += 1
        self._note(Problem(self.file, line, field, problem, "odd"))

    def fail(self, problem: str, *, line: int | None = None) -> NoReturn:
        """Nothing of the document can be read. Raises `SourceError`."""
        self._stats.bad_lines += 1
        self._problems.append(Problem(self.file, line, "", problem))
        raise SourceError(self.file if line is None else f"{self.file}:{line}", problem)

    def _note(self, problem: Problem) -> None:
        self._listed += 1
        if self._listed <= MAXIMUM_PROBLEMS:
            self._problems.append(problem)
        elif self._listed == MAXIMUM_PROBLEMS + 1:
            self._problems.append(Problem(self.file, None, "", "further problems are counted and not listed"))


@dataclass(frozen=True, slots=True)
class JsonObject:
    """One JSON object and its place in the document, such as `simulations[2].messages[0]`."""

    value: dict[str, Any]
    where: str
    notes: DocumentLog

    def has(self, key: str) -> bool:
        """Whether the field is there with any value but null."""
        return self.value.get(key) is not None

    def text(self, key: str) -> str | None:
        """A text field; None when it is absent or something else."""
        value = self.value.get(key)
        if value is None or isinstance(value, str):
            return value
        self.wrong(key, "text", value)
        return None

    def name(self, key: str) -> str | None:
        """A short identifier, given as text or as an integer; longer ones are cut at 200 characters."""
        value = self.value.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) < MAXIMUM_COUNT:
            value = str(value)
        if value is None or isinstance(value, str):
            return value[:MAXIMUM_NAME_CHARS] if value else None
        self.wrong(key, "text or an integer", value)
        return None

    def count(self, key: str) -> int | None:
        """A non-negative integer; None when it is absent or something else."""
        value = self.value.get(key)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < MAXIMUM_COUNT:
            self.wrong(key, "an integer from 0 below 2^53", value)
            return None
        return value

    def amount(self, key: str) -> float | None:
        """A finite number that is not negative, such as dollars; None when it is absent or something else."""
        value = self.value.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < MAXIMUM_COUNT:
            self.wrong(key, "a finite number from 0", value)
            return None
        return float(value)

    def time(self, key: str) -> float | None:
        """Seconds since the epoch from a number or an ISO 8601 text; a time without a zone is taken as UTC."""
        value = self.value.get(key)
        if value is None:
            return None
        seconds = _seconds(value)
        if seconds is None or not 0 <= seconds < _LATEST_SECONDS:
            self.wrong(key, "seconds since the epoch or an ISO 8601 time", value)
            return None
        return seconds

    def item(self, key: str) -> JsonObject:
        """A nested object; an empty one when it is absent or something else."""
        value = self.value.get(key)
        if value is not None and not isinstance(value, dict):
            self.wrong(key, "an object", value)
        return JsonObject(value if isinstance(value, dict) else {}, self.at(key), self.notes)

    def items(self, key: str) -> Iterator[JsonObject]:
        """The objects of a list; entries that are none are noted and skipped."""
        value = self.value.get(key)
        if value is None:
            return iter(())
        if not isinstance(value, list):
            self.wrong(key, "a list", value)
            return iter(())
        return items_of(value, self.at(key), self.notes)

    def at(self, key: str) -> str:
        """The place of a field."""
        return f"{self.where}.{key}" if self.where else key

    def wrong(self, key: str, expected: str, value: object) -> None:
        """Note that a field is not what was expected."""
        self.notes.bad(self.at(key), f"expected {expected}, got {kind_of(value)}")


def items_of(values: list[Any], where: str, notes: DocumentLog) -> Iterator[JsonObject]:
    """The objects of a list; entries that are none are noted and skipped."""
    for index, value in enumerate(values):
        place = f"{where}[{index}]"
        if isinstance(value, dict):
            yield JsonObject(value, place, notes)
        else:
            notes.bad(place, f"expected an object, got {kind_of(value)}")


def kind_of(value: object) -> str:
    """What a JSON value is, in words that reveal nothing of it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number out of range" if not -MAXIMUM_COUNT < value < MAXIMUM_COUNT else "a number"
    if isinstance(value, str):
        return "text"
    return "a list" if isinstance(value, list) else "an object"


def load_document(path: Path, notes: DocumentLog) -> Any:
    """The document as plain JSON types. Raises `SourceError`, with line and column, when it is none."""
    text = _text(_raw(path, notes), notes)
    try:
        document = json.loads(text)
        return _repaired(document) if "\\u" in text else document
    except json.JSONDecodeError as error:
        cut = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string")
        problem = f"line {error.lineno} column {error.colno}: {error.msg}"
        notes.fail(f"the JSON document is cut off at {problem}" if cut else problem, line=error.lineno)
    except RecursionError:
        notes.fail("the JSON document is nested too deeply")
    except ValueError as error:
        notes.fail(f"not a JSON document: {error}")


def load_list(path: Path, notes: DocumentLog, *, of: str) -> JsonObject:
    """A document that holds a list named *of*, or is that list; the list is a field of the object either way.

    Raises `SourceError` when there is no such list; an empty one is noted.
    """
    document = load_document(path, notes)
    holder = JsonObject(document if isinstance(document, dict) else {of: document}, "", notes)
    values = holder.value.get(of)
    if not isinstance(values, list):
        notes.fail(f"expected a list of {of}, or an object with one, got {kind_of(document)}")
    if not values:
        notes.odd(of, f"the list of {of} is empty")
    return holder


def _raw(path: Path, notes: DocumentLog) -> bytes:
    try:
        if not path.is_file():
            notes.fail("no such file" if not path.exists() else "not a file")
        with path.open("rb") as file:
            size = path.stat().st_size
            raw = file.read(MAXIMUM_DOCUMENT_BYTES + 1) if size <= MAXIMUM_DOCUMENT_BYTES else None
    except OSError as error:
        notes.fail(f"cannot be read: {error.strerror or error}")
    if raw is None or len(raw) > MAXIMUM_DOCUMENT_BYTES:
        notes.fail(f"skipped: larger than {MAXIMUM_DOCUMENT_BYTES // 2**20} MB, the most that is read at once")
    if not raw.strip():
        notes.fail("the file is empty")
    return raw


def _text(raw: bytes, notes: DocumentLog) -> str:
    """The document's text; bytes that are not of its encoding are replaced and noted."""
    encoding = json.detect_encoding(raw)
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        notes.odd("", f"byte {error.start} is not {encoding}; what is not was replaced", line=line)
        return raw.decode(encoding, "replace")


def _repaired(value: Any) -> Any:
    """The value with halves of surrogate pairs replaced: they are legal in JSON but are no text."""
    if isinstance(value, str):
        return value if value.isascii() else _LONE_SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_repaired(item) for item in value]
    if isinstance(value, dict):
        return {_repaired(key): _repaired(item) for key, item in value.items()}
    return value


def _seconds(value: object) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value) if -MAXIMUM_COUNT < value < MAXIMUM_COUNT and math.isfinite(value) else None
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def document_key(name: str | None, *, digest: str, trial: str | None = None) -> str:
    """The key of a session without an id of its own, short enough to be kept whole as a session id."""
    parts = [(name or "unnamed")[:MAXIMUM_KEY_CHARS], *([trial[:20]] if trial else []), digest]
    return "-".join(parts)


def compact(value: object) -> str:
    """The value as JSON, as Python writes it by default."""
    try:
        return json.dumps(value)
    except RecursionError:
        return ""


def record_digest(value: object) -> str:
    """A short digest of a record, to tell documents without ids apart. It is not keyed and never shown."""
    return blake2b(compact(value).encode(), digest_size=8).hexdigest()


MAXIMUM_DEPTH: Final = 4

_MARK: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],:"]', re.DOTALL)


def shape_of(head: bytes) -> frozenset[str]:
    """The paths of the fields in *head*, such as `info.exit_status` or `[].traj[].role`.

    Only the first entry of a list is looked into, and nothing deeper than four levels. Empty when *head* does not
    begin one JSON object or list, or when more than one document begins in it (JSON Lines).
    """
    text = head.decode(json.detect_encoding(head), "replace").lstrip()
    paths: set[str] = set()
    if text[:1] not in ("{", "["):
        return frozenset()
    stack: list[str | None] = []
    """Prefix of the fields of each open container; None in what is not looked into."""
    key = pending = ""
    opened = False
    for match in _MARK.finditer(text):
        mark = match.group()
        if mark == '"':
            break
        if not stack and opened:
            return frozenset()
        if mark in "{[":
            opened = True
            stack.append(_prefix(stack, key, opens_list=mark == "["))
            key = pending = ""
        elif mark in "}]":
            if not stack:
                return frozenset()
            stack.pop()
        elif mark == ",":
            _next_entry(stack)
        elif mark == ":":
            key = pending
            if stack and stack[-1] is not None:
                paths.add(stack[-1] + key)
        else:
            pending = mark[1:-1]
    return frozenset(paths)


def _prefix(stack: list[str | None], key: str, *, opens_list: bool) -> str | None:
    """The prefix of the fields in a container that opens; None below the depth or the first entry."""
    outer = stack[-1] if stack else ""
    if outer is None or len(stack) >= MAXIMUM_DEPTH:
        return None
    here = outer if outer.endswith("[]") else outer + key
    if opens_list:
        return here + "[]"
    return here + "." if here else ""


def _next_entry(stack: list[str | None]) -> None:
    """After the first entry of a list, the others are not looked into."""
    if stack and stack[-1] is not None and stack[-1].endswith("[]"):
        stack[-1] = None
