"""A reader's result for rows or for a file, shared by the tests of the readers of JSON Lines."""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Any

from windowpane.sources.transcripts.reader import FileStats, Problem, Reader
from windowpane.sources.transcripts.records import (
    ContentAdded,
    LimitStated,
    Record,
    SessionDescribed,
    SessionOpened,
)

Json = dict[str, Any]


class WordCounter:
    """A token counter for tests: one token per word."""

    source = "estimate"

    def count(self, text: str) -> int:
        return len(text.split())


def digest(text: str) -> str:
    """Return an unkeyed digest; good enough for tests."""
    return blake2b(text.encode(), digest_size=8).hexdigest()


class Read:
    """The records of one file, with what was counted and complained of."""

    def __init__(self, reader: Reader, path: Path) -> None:
        self.stats = FileStats()
        self.problems: list[Problem] = []
        self.records: list[Record] = list(reader.read(path, stats=self.stats, problems=self.problems))

    def of(self, *kinds: type[Record]) -> list[Any]:
        return [record for record in self.records if isinstance(record, kinds)]

    @property
    def order(self) -> list[str]:
        """Content types and other records in order, without sessions, their names and limits."""
        return [
            record.content_type if isinstance(record, ContentAdded) else type(record).__name__
            for record in self.records
            if not isinstance(record, SessionOpened | SessionDescribed | LimitStated)
        ]


def read_rows(reader: Reader, folder: Path, rows: Iterable[Json], *, tail: bytes = b"") -> Read:
    """Return the result of *reader* for *rows* in a file, and for the bytes after them."""
    path = folder / "transcript.jsonl"
    path.write_bytes(b"".join(json.dumps(row).encode() + b"\n" for row in rows) + tail)
    return Read(reader, path)
