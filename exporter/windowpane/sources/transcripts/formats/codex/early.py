"""The recordings of Codex's first releases, until July 2025: one JSON document per session, with its items."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from windowpane.sources.transcripts.formats.codex.reader import CodexReader
from windowpane.sources.transcripts.json_document import DocumentLog, load_list, shape_of
from windowpane.sources.transcripts.reader import FileStats, Problem
from windowpane.sources.transcripts.records import Record


class CodexDocumentReader:
    """Reads the documents of the first releases, `rollout-DATE-ID.json`."""

    format: ClassVar[str] = "codex"

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        """Return whether the file is an object with a session, its instructions and items."""
        del path
        return {"session.id", "session.timestamp", "items"} <= shape_of(head)

    def read(self, path: Path, *, stats: FileStats, problems: list[Problem]) -> Iterator[Record]:
        """Yield the records of the session. Raises `SourceError` when the file holds no items."""
        document = load_list(path, DocumentLog(path, stats, problems), of="items")
        transcript = CodexReader(complete=True).transcript(path, stats=stats, problems=problems)
        transcript.read_row({"type": "session_meta", "payload": document.item("session").value})
        for item in document.items("items"):
            transcript.read_row(item.value)
        transcript.finish()
        yield from transcript.out
