"""The history that a forked session repeats from the file of the session that it came from.

Its content is in the window of the fork from the start. Its calls, costs and compactions are those of the other
session, which counts them, whichever of the two files is read first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import msgspec

from windowpane.exceptions import SourceError
from windowpane.sources.transcripts.json_lines import read_rows
from windowpane.sources.transcripts.reader import FileStats, ProblemLog
from windowpane.sources.transcripts.records import (
    Cleared,
    Compacted,
    ContentAdded,
    ContentRemoved,
    LimitStated,
    Record,
    Rewound,
    SessionDescribed,
    SessionOpened,
)

MAXIMUM_ROWS: Final = 1_000_000
"""Rows of the other file that are compared, the first."""
MAXIMUM_CONTENTS: Final = 50_000
"""Content that is inherited, the latest."""

_encoder: Final = msgspec.json.Encoder(order="sorted")


class InheritedHistory:
    """The repeated rows at the start of a fork, and the content that remains of them."""

    def __init__(self, is_copy: Callable[[dict[str, Any]], bool], *, is_required: bool = True) -> None:
        """*is_copy* returns whether a row is one of the other file; *is_required* is whether one must be."""
        self._is_copy = is_copy
        self.is_required = is_required
        self.repeated = 0
        """Number of rows that were repeated."""
        self._all: dict[str, list[ContentAdded]] = {}
        """All content by its key, for a return to what was removed."""
        self._contents: list[ContentAdded] = []

    @classmethod
    def of(cls, parent: Path | None, child: Path, *, key: str, ignored: str = "") -> InheritedHistory | None:
        """Return the history that *child*, the session *key*, repeats from *parent*; None without that file.

        *ignored* is a field that a copied row has another value of.
        """
        if parent is None or not parent.is_file() or parent.resolve() == child.resolve():
            return None
        log = ProblemLog(parent, FileStats(), [])
        rows = set[bytes]()
        try:
            for row in read_rows(parent, log):
                if row.line == 1 and row.value is not None and key in _strings(row.value):
                    return None  # each names the other: neither came first
                if row.value is not None:
                    rows.add(_digest(row.value, ignored))
                if len(rows) >= MAXIMUM_ROWS:
                    break
        except SourceError:
            return None
        return cls(lambda row: _digest(row, ignored) in rows)

    def repeats(self, row: dict[str, Any]) -> bool:
        """Return whether *row* is one of the other file."""
        repeated = self._is_copy(row)
        self.repeated += repeated
        return repeated

    def add(self, records: Iterable[Record]) -> Iterator[Record]:
        """Take the records of repeated rows; yields those that describe the fork itself."""
        for record in records:
            if isinstance(record, SessionOpened | SessionDescribed | LimitStated):
                yield record
            elif isinstance(record, ContentAdded):
                self._add(record)
            else:
                self._change(record)

    def contents(self) -> list[ContentAdded]:
        """Return the content that the fork starts with."""
        return self._contents[-MAXIMUM_CONTENTS:]

    # -- inside -----------------------------------------------------------------------------------------------

    def _add(self, content: ContentAdded) -> None:
        self._contents.append(content)
        if content.key:
            self._all.setdefault(content.key, []).append(content)
        if len(self._contents) > 2 * MAXIMUM_CONTENTS:
            del self._contents[:-MAXIMUM_CONTENTS]

    def _change(self, record: Record) -> None:
        """Apply a change of the window; calls change nothing."""
        if isinstance(record, Cleared):
            self._contents = []
        elif isinstance(record, ContentRemoved):
            keys = frozenset(record.keys)
            self._contents = [
                one
                for one in self._contents
                if one.key not in keys and not (one.content_type == "tool_result" and one.tool_call_id in keys)
            ]
        elif isinstance(record, Compacted):
            self._compact(record)
        elif isinstance(record, Rewound):
            self._rewind(record)

    def _compact(self, record: Compacted) -> None:
        retained, last = frozenset(record.kept_keys), record.keep_last or 0
        end = len(self._contents) - last
        self._contents = [one for n, one in enumerate(self._contents) if n >= end or one.key in retained]
        if record.summary:
            self._add(ContentAdded("summary", record.summary, key=record.key, at=record.at))

    def _rewind(self, record: Rewound) -> None:
        if record.content_keys is not None:
            self._contents = [one for key in record.content_keys for one in self._all.get(key, ())]
            return
        key = record.last_kept_key
        last = max((n for n, one in enumerate(self._contents) if key is not None and one.key == key), default=-1)
        del self._contents[last + 1 :]


def _digest(row: dict[str, Any], ignored: str) -> bytes:
    compared = {name: value for name, value in row.items() if name != ignored} if ignored in row else row
    return blake2b(_encoder.encode(compared), digest_size=8).digest()


def _strings(value: object) -> Iterator[str]:
    """Yield the texts in a header."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
