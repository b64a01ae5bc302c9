"""Recordings that are one JSON document: loading them whole, telling them apart, and reading their fields.

Nothing a document holds is trusted: an object is wrapped as a `JsonObject`, which knows its path in the document,
and a field of the wrong type is reported as a `Problem` and read as absent. Problems name types and paths, never
values: the content of a conversation is private.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, NoReturn

from windowpane.core.limits import MAXIMUM_TOKENS
from windowpane.exceptions import SourceError
from windowpane.sources.transcripts.json_lines import bounded_integer
from windowpane.sources.transcripts.reader import MAXIMUM_DOCUMENT_BYTES, FileStats, Problem, ProblemLog

MAXIMUM_PROBLEMS: Final = 200
"""Problems listed for one document, the last of which reports that there are more."""
MAXIMUM_COUNT: Final = 2**53
"""A larger integer is not a token count."""
MAXIMUM_NAME_CHARS: Final = 200
MAXIMUM_KEY_CHARS: Final = 150
_LATEST_SECONDS: Final = 4_102_444_800.0
"""The year 2100: a larger time is in another unit."""

_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class DocumentLog(ProblemLog):
    """Lists what is wrong with one document; each entry counts as a bad or an odd line."""

    def __init__(self, path: Path, stats: FileStats, problems: list[Problem]) -> None:
        super().__init__(path, stats, problems, maximum=MAXIMUM_PROBLEMS)

    def bad(self, field: str, problem: str) -> None:
        """List something that was skipped."""
        self.stats.bad_lines += 1
        self._list(None, field, problem, "bad")

    def unusual(self, field: str, problem: str, *, line: int | None = None) -> None:
        """List something that was read although it is not as expected."""
        self.stats.odd_lines += 1
        self.odd(line, field, problem)

    def fail(self, problem: str, *, line: int | None = None) -> NoReturn:
        """Report that nothing of the document can be read. Raises `SourceError`."""
        self.stats.bad_lines += 1
        self._problems.append(Problem(self.file, line, "", problem))
        raise SourceError(self.file if line is None else f"{self.file}:{line}", problem)


@dataclass(frozen=True, slots=True)
class JsonObject:
    """One JSON object and its path in the document, such as `simulations[2].messages[0]`."""

    value: dict[str, Any]
    path: str
    log: DocumentLog

    def has(self, key: str) -> bool:
        """Return whether the field has a value other than null."""
        return self.value.get(key) is not None

    def text(self, key: str) -> str | None:
        """Return a text field; None where it is absent or invalid."""
        value = self.value.get(key)
        if value is None or isinstance(value, str):
            return value
        self.wrong(key, "text", value)
        return None

    def name(self, key: str) -> str | None:
        """Return a short identifier, given as text or as an integer; longer ones are cut at 200 characters."""
        value = self.value.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) < MAXIMUM_COUNT:
            value = str(value)
        if value is None or isinstance(value, str):
            return value[:MAXIMUM_NAME_CHARS] if value else None
        self.wrong(key, "text or an integer", value)
        return None

    def count(self, key: str) -> int | None:
        """Return a non-negative integer; None where it is absent or invalid."""
        value = self.value.get(key)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAXIMUM_TOKENS:
            self.wrong(key, f"an integer from 0 to {MAXIMUM_TOKENS}", value)
            return None
        return value

    def count_at(self, path: tuple[str, ...]) -> int | None:
        """Return a non-negative integer of a nested object; None where it is absent or invalid."""
        holder = self
        for name in path[:-1]:
            holder = holder.item(name)
        return holder.count(path[-1])

    def amount(self, key: str) -> float | None:
        """Return a finite number from 0, such as dollars; None where it is absent or invalid."""
        value = self.value.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < MAXIMUM_COUNT:
            self.wrong(key, "a finite number from 0", value)
            return None
        return float(value)

    def time(self, key: str) -> float | None:
        """Return seconds since the epoch, given as a number or as ISO 8601 (UTC where it names no zone)."""
        value = self.value.get(key)
        if value is None:
            return None
        seconds = _seconds(value)
        if seconds is None or not 0 <= seconds < _LATEST_SECONDS:
            self.wrong(key, "seconds since the epoch or an ISO 8601 time", value)
            return None
        return seconds

    def item(self, key: str) -> JsonObject:
        """Return a nested object; an empty one where it is absent or invalid."""
        value = self.value.get(key)
        if value is not None and not isinstance(value, dict):
            self.wrong(key, "an object", value)
        return JsonObject(value if isinstance(value, dict) else {}, self.at(key), self.log)

    def items(self, key: str) -> Iterator[JsonObject]:
        """Return the objects of a list; other entries are reported and skipped."""
        value = self.value.get(key)
        if value is None:
            return iter(())
        if not isinstance(value, list):
            self.wrong(key, "a list", value)
            return iter(())
        return items_of(value, self.at(key), self.log)

    def at(self, key: str) -> str:
        """Return the path of a field."""
        return f"{self.path}.{key}" if self.path else key

    def wrong(self, key: str, expected: str, value: object) -> None:
        """Report that a field is not what was expected."""
        self.log.bad(self.at(key), f"expected {expected}, got {kind_of(value)}")


def items_of(values: list[Any], path: str, log: DocumentLog) -> Iterator[JsonObject]:
    """Return the objects of a list; other entries are reported and skipped."""
    for index, value in enumerate(values):
        location = f"{path}[{index}]"
        if isinstance(value, dict):
            yield JsonObject(value, location, log)
        else:
            log.bad(location, f"expected an object, got {kind_of(value)}")


def kind_of(value: object) -> str:
    """Return the name of a JSON value's type, which reveals nothing of the value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number out of range" if not -MAXIMUM_COUNT < value <= MAXIMUM_TOKENS else "a number"
    if isinstance(value, str):
        return "text"
    return "a list" if isinstance(value, list) else "an object"


def load_document(path: Path, log: DocumentLog, *, several: bool = False) -> Any:
    """Return the document as plain JSON types. Raises `SourceError`, with line and column, for invalid JSON.

    With *several* documents one after the other are returned as a list.
    """
    text = _text(_raw(path, log), log)
    try:
        return _loads(text)
    except json.JSONDecodeError as error:
        if several and error.msg == "Extra data":
            return list(_documents(text, log))
        cut = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string")
        problem = f"line {error.lineno} column {error.colno}: {error.msg}"
        log.fail(f"the JSON document is cut off at {problem}" if cut else problem, line=error.lineno)
    except RecursionError:
        log.fail("the JSON document is nested too deeply")
    except ValueError as error:
        log.fail(f"not a JSON document: {error}")


def _documents(text: str, log: DocumentLog) -> Iterator[Any]:
    """Yield the documents of a text up to the first that is damaged, which is reported."""
    decoder = json.JSONDecoder(parse_int=bounded_integer)
    start, end = 0, len(text)
    while start < end:
        if text[start].isspace():
            start += 1
            continue
        try:
            document, start = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            log.bad(f"line {text.count(chr(10), 0, start) + 1}", "not JSON; the rest of the file is not read")
            return
        yield _repaired(document)


def _loads(text: str) -> Any:
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        raise
    except ValueError:  # a number with more digits than Python converts
        value = json.loads(text, parse_int=bounded_integer)
    return _repaired(value) if "\\u" in text else value


def parse_embedded(text: str) -> Any:
    """Return the JSON value that a text field holds; None where the text is not one JSON value."""
    try:
        return _loads(text)
    except (ValueError, RecursionError):
        return None


def parse_object(text: object, path: str, log: DocumentLog) -> JsonObject:
    """Return the object that *text* holds, such as a column of a database; an empty one, reported, for others."""
    value = {} if text is None else _parsed(text, path, log)
    if value is not None and not isinstance(value, dict):
        log.bad(path, f"expected an object, got {kind_of(value)}")
    return JsonObject(value if isinstance(value, dict) else {}, path, log)


def parse_list(text: object, path: str, log: DocumentLog) -> list[Any]:
    """Return the list that *text* holds; an empty one, reported, for others."""
    value = _parsed(text, path, log)
    if value is not None and not isinstance(value, list):
        log.bad(path, f"expected a list, got {kind_of(value)}")
    return value if isinstance(value, list) else []


def _parsed(text: object, path: str, log: DocumentLog) -> Any:
    """Return the value of a JSON text; None, reported, where it is not one."""
    if isinstance(text, str):
        try:
            return _loads(text)
        except (ValueError, RecursionError):
            pass
    log.bad(path, "expected a JSON text")
    return None


def load_list(path: Path, log: DocumentLog, *, of: str) -> JsonObject:
    """Return a document that holds a list named *of*; a document that is that list becomes such an object.

    Raises `SourceError` where there is no such list; an empty one is reported.
    """
    document = load_document(path, log)
    holder = JsonObject(document if isinstance(document, dict) else {of: document}, "", log)
    values = holder.value.get(of)
    if not isinstance(values, list):
        log.fail(f"expected a list of {of}, or an object with one, got {kind_of(document)}")
    if not values:
        log.unusual(of, f"the list of {of} is empty")
    return holder


def _raw(path: Path, log: DocumentLog) -> bytes:
    try:
        if not path.is_file():
            log.fail("no such file" if not path.exists() else "not a file")
        with path.open("rb") as file:
            size = path.stat().st_size
            raw = file.read(MAXIMUM_DOCUMENT_BYTES + 1) if size <= MAXIMUM_DOCUMENT_BYTES else None
    except OSError as error:
        log.fail(f"cannot be read: {error.strerror or error}")
    if raw is None or len(raw) > MAXIMUM_DOCUMENT_BYTES:
        log.fail(f"skipped: larger than {MAXIMUM_DOCUMENT_BYTES // 2**20} MB, the most that is read at once")
    if not raw.strip():
        log.fail("the file is empty")
    return raw


def _text(raw: bytes, log: DocumentLog) -> str:
    """Return the document's text; bytes that its encoding does not have are replaced and reported."""
    encoding = json.detect_encoding(raw)
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        log.unusual("", f"byte {error.start} is not {encoding}; such bytes are replaced", line=line)
        return raw.decode(encoding, "replace")


def _repaired(value: Any) -> Any:
    """Replace halves of surrogate pairs, which are valid in JSON but cannot be encoded."""
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
    """Return the key of a session without an id, short enough to be part of a session id uncut."""
    parts = [(name or "unnamed")[:MAXIMUM_KEY_CHARS], *([trial[:20]] if trial else []), digest]
    return "-".join(parts)


def compact(value: object) -> str:
    """Return the value as JSON in Python's default form."""
    try:
        return json.dumps(value)
    except RecursionError:
        return ""


def record_digest(value: object) -> str:
    """Return a short digest of a record, to distinguish documents without ids; unkeyed and never shown."""
    return blake2b(compact(value).encode(), digest_size=8).hexdigest()


MAXIMUM_DEPTH: Final = 4

_SYMBOL: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],:"]', re.DOTALL)


@lru_cache(maxsize=1)  # every reader asks about the same file in turn
def shape_of(head: bytes) -> frozenset[str]:
    """Return the paths of the fields in *head*, such as `info.exit_status` or `[].traj[].role`.

    Only the first entry of a list is read, and nothing deeper than four levels. Empty when *head* is not the
    start of one JSON object or list, or when more than one document starts in it (JSON Lines).
    """
    text = head.decode(json.detect_encoding(head), "replace").lstrip()
    paths: set[str] = set()
    if text[:1] not in ("{", "["):
        return frozenset()
    stack: list[str | None] = []
    """Prefix of the fields of each open container; None in a container that is not read."""
    key = pending = ""
    opened = False
    for match in _SYMBOL.finditer(text):
        symbol = match.group()
        if symbol == '"':
            break
        if not stack and opened:
            return frozenset()
        if symbol in "{[":
            opened = True
            stack.append(_prefix(stack, key, opens_list=symbol == "["))
            key = pending = ""
        elif symbol in "}]":
            if not stack:
                return frozenset()
            stack.pop()
        elif symbol == ",":
            _next_entry(stack)
        elif symbol == ":":
            key = pending
            if stack and stack[-1] is not None:
                paths.add(stack[-1] + key)
        else:
            pending = symbol[1:-1]
    return frozenset(paths)


def _prefix(stack: list[str | None], key: str, *, opens_list: bool) -> str | None:
    """Return the prefix of the fields in a new container; None below the depth or the first entry."""
    outer = stack[-1] if stack else ""
    if outer is None or len(stack) >= MAXIMUM_DEPTH:
        return None
    here = outer if outer.endswith("[]") else outer + key
    if opens_list:
        return here + "[]"
    return here + "." if here else ""


def _next_entry(stack: list[str | None]) -> None:
    """Skip the entries of a list after the first."""
    if stack and stack[-1] is not None and stack[-1].endswith("[]"):
        stack[-1] = None
